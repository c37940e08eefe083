// SPDX-License-Identifier: Apache-2.0
// Volumes of directories that were there before.

#include <doctest/doctest.h>

#include <string_view>

#include "node_bed.h"

namespace lpp::node::found {

using testing::BaseFolder;
using testing::make_request;

TEST_CASE("a directory that is found is on the disk for good before its record says so") {
  /// Whether something was synced after the mode was set and before a record was written.
  struct Order : Kernel {
    int before(const char* call) override {
      const std::string_view name = call;
      if (name == "fchmod") synced = written = false;
      if (name == "fsync" && !written) synced = true;
      if (name == "write") written = true;
      return 0;
    }
    bool synced = false;
    bool written = false;
  };
  const BaseFolder base;
  Order kernel;
  const auto volumes = base.volumes(kernel);
  base.write("web/data/mine");
  auto request = make_request("pvc-1", "web/data");
  request.limits = {};
  REQUIRE(volumes.make(request)->origin == Origin::kFound);
  CHECK(kernel.written);
  CHECK(kernel.synced);
}

}  // namespace lpp::node::found
