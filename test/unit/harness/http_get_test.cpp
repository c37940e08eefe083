// SPDX-License-Identifier: Apache-2.0
#include "harness/http_get.h"

#include <doctest/doctest.h>

#include "harness/acceptor.h"

namespace lpp::testing {
namespace {

TEST_CASE("a port is free only when nothing listens there on any address") {
  const int free = free_port();
  CHECK(can_listen(free));
  {
    // As the kubelet of a cluster beside: on an address of its own only.
    const Listener other = listen_on("127.0.0.2", free).value();
    CHECK_FALSE(can_listen(free));
  }
  CHECK(can_listen(free));
}

}  // namespace
}  // namespace lpp::testing
