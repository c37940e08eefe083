// SPDX-License-Identifier: Apache-2.0
// What stands in a volume's place is another directory than its record tells of: put back from a
// backup, say, or copied with its disk.

#include <doctest/doctest.h>

#include <filesystem>

#include "everywhere.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace replaced {

void make_and_replace(const BaseFolder& base) {
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-1", "web/pvc-1")).ok());
  std::filesystem::rename(base.at("web/pvc-1"), base.at("old"));
  base.write("old/b");
  base.write("web/pvc-1/a");
}

TEST_CASE("what a removal on a full disk could not take away is not taken for removed") {
  /// No room, and nothing can be moved or removed.
  class StuckKernel final : public Kernel {
   protected:
    int before(const char* call) override {
      const std::string_view name(call);
      return name == "write" ? ENOSPC : name == "renameat2" || name == "unlinkat" ? EIO : 0;
    }
  };
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  make_and_replace(base);
  SUBCASE("by another record") {}
  SUBCASE("by no record") {
    std::filesystem::remove(base.at(BaseFolder::record("volume.pvc-1.json")));
  }
  StuckKernel full;
  const RemoveRequest request{.id = "pvc-1", .path = "web/pvc-1", .uid = "u-1"};
  REQUIRE_FALSE(base.volumes(full).remove(request).ok());
  CHECK(base.has("web/pvc-1/a"));
  CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
  CHECK(*volumes.remove(request) == Removed::kRemoved);
  CHECK_FALSE(base.has("web/pvc-1"));
}

TEST_CASE("what a removal on a full disk could not note is not taken for removed after a crash") {
  const auto remove = [](const Volumes& volumes) {
    return volumes.remove({.id = "pvc-1", .path = "web/pvc-1", .uid = "u-1"});
  };
  const auto check = [&](const BaseFolder& base, const Volumes& volumes) {
    const auto removed = remove(volumes);
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK_FALSE(base.has("web"));
    CHECK(base.has("old/b"));
    CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
  };
  const Work work = [&](const Volumes& volumes) { return remove(volumes).ok(); };
  CHECK(crash_everywhere<FullKernel>(make_and_replace, work, check) > 30);
  fail_everywhere<FullKernel>(make_and_replace, work, EIO, check);
}

TEST_CASE("a directory that is not the recorded one is in its place if nothing has left it") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  make_and_replace(base);
  const auto before = base.content();
  CHECK(*volumes.put_back("pvc-1", "web/pvc-1", "u-1") == PutBack::kInPlace);
  CHECK(base.content() == before);
  // Of one that has left its place, and was emptied, nothing is.
  std::filesystem::create_directory(base.at(BaseFolder::record("gone.pvc-1")));
  CHECK(*volumes.put_back("pvc-1", "web/pvc-1", "u-1") == PutBack::kNothing);
}

}  // namespace replaced
