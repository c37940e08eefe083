// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "node/held_limits.h"
#include "node_bed.h"

using namespace lpp;           // NOLINT(google-build-using-namespace): a test file
using namespace lpp::node;     // NOLINT(google-build-using-namespace): a test file
using namespace lpp::testing;  // NOLINT(google-build-using-namespace): a test file

namespace {

using Ids = std::vector<std::string>;

/// As `chattr -p 0` and `chattr -P` of whoever owns the directory, who needs no right for it.
int as_owner(const std::string& directory, const std::function<void(fsxattr&)>& change) {
  constexpr uid_t kOwner = 1000;
  if (::chown(directory.c_str(), kOwner, kOwner) != 0) return errno;
  return in_process([&] {
    Kernel kernel;
    const UniqueFd folder(kernel.open(directory.c_str(), O_RDONLY | O_DIRECTORY));
    if (::setresuid(kOwner, kOwner, kOwner) != 0) return 98;
    fsxattr attributes{};
    if (kernel.attributes(folder.get(), attributes) != 0) return 97;
    change(attributes);
    return kernel.set_attributes(folder.get(), attributes) == 0 ? 0 : errno;
  });
}

}  // namespace

TEST_CASE("a directory that its owner has taken out of its limit is seen, and adopted again" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  for (const char* const id : {"pvc-1", "pvc-2"}) {
    REQUIRE(volumes.make({.id = id, .path = id, .limits = {.bytes = 8 * kMiB}}).ok());
  }
  std::filesystem::create_directory(base.at("pvc-1/below"));
  CHECK(limits_not_held(*volumes.usage()).empty());

  const auto check_is_seen = [&] {
    CHECK(limits_not_held(*volumes.usage()) == Ids{"pvc-1"});
    CHECK(limits_taken_off(*volumes.usage()) == Ids{"pvc-1"});
    const auto grown =
        volumes.resize({.id = "pvc-1", .limits = {.bytes = 16 * kMiB}, .limited = true});
    REQUIRE_FALSE(grown.ok());
    CHECK(grown.error().message.find("node adopt") != std::string::npos);
    REQUIRE(volumes.adopt({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 8 * kMiB}}).ok());
    CHECK(limits_not_held(*volumes.usage()).empty());
    CHECK(fill(base.at("pvc-1/below/more"), 16 * kMiB).error != 0);
    std::filesystem::remove(base.at("pvc-1/below/more"));
  };
  SUBCASE("of its project") {
    const auto leave = [](fsxattr& attributes) { attributes.fsx_projid = 0; };
    REQUIRE(as_owner(base.at("pvc-1"), leave) == 0);
    REQUIRE(as_owner(base.at("pvc-1/below"), leave) == 0);
    check_is_seen();
  }
  SUBCASE("with what is made in it from now on") {
    const auto leave = [](fsxattr& attributes) {
      attributes.fsx_xflags &= ~static_cast<unsigned>(FS_XFLAG_PROJINHERIT);
    };
    REQUIRE(as_owner(base.at("pvc-1"), leave) == 0);
    REQUIRE(as_owner(base.at("pvc-1/below"), leave) == 0);
    check_is_seen();
  }
  SUBCASE("with another one in its place") {
    std::filesystem::rename(base.at("pvc-1"), base.at("former"));
    std::filesystem::create_directory(base.at("pvc-1"));
    CHECK(limits_not_held(*volumes.usage()) == Ids{"pvc-1"});
    CHECK(limits_taken_off(*volumes.usage()) == Ids{"pvc-1"});
  }
  SUBCASE("and one that is not there is another matter") {
    std::filesystem::remove_all(base.at("pvc-1"));
    CHECK(limits_not_held(*volumes.usage()).empty());
  }
}

TEST_CASE("a directory in the place of a limited subvolume is seen" * NeedsSubvolumes()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 8 * kMiB}}).ok());
  CHECK(limits_not_held(*volumes.usage()).empty());
  std::filesystem::rename(base.at("pvc-1"), base.at("former"));
  std::filesystem::create_directory(base.at("pvc-1"));
  CHECK(limits_not_held(*volumes.usage()) == Ids{"pvc-1"});
  CHECK(limits_taken_off(*volumes.usage()) == Ids{"pvc-1"});
}
