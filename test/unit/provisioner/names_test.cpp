// SPDX-License-Identifier: Apache-2.0
#include "provisioner/names.h"

#include <doctest/doctest.h>

namespace lpp::provisioner {
namespace {

TEST_CASE("a lease is called as its provisioner, as far as a lease may be") {
  CHECK(lease_name("rancher.io/local-path") == "rancher.io-local-path");
  CHECK(lease_name("Cluster.local/My_App") == "cluster.local-my-app");
  CHECK(lease_name("plain") == "plain");
}

}  // namespace
}  // namespace lpp::provisioner
