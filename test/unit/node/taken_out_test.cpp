// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string_view>

#include "busy_kernel.h"
#include "node/held_limits.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

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

TEST_CASE("a volume that is removed and made anew during a look is not taken for taken out" *
          NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const MakeRequest request{.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 8 * kMiB}};
  REQUIRE(volumes.make(request).ok());
  const auto make_anew = [&] {
    REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
    REQUIRE(volumes.make(request).ok());
  };
  for (int place = 0;; ++place) {
    CAPTURE(place);
    BusyKernel busy(place, make_anew);
    const auto usage = base.volumes(busy).usage();
    if (usage.ok()) CHECK(limits_taken_off(*usage).empty());
    if (!busy.has_done()) break;
  }
  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
}

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

TEST_CASE("who looks again and again looks at few directories, and sees each within ten looks" *
          NeedsProjects()) {
  class CountingKernel final : public Kernel {
   public:
    int looks = 0;

   protected:
    int before(const char* call) override {
      if (std::string_view(call) == "FSGETXATTR") ++looks;
      return 0;
    }
  };
  const BaseFolder base;
  CountingKernel kernel;
  const auto volumes = base.volumes(kernel);
  for (int i = 0; i < 20; ++i) {
    const std::string id = "pvc-" + std::to_string(10 + i);
    REQUIRE(volumes.make({.id = id, .path = id, .limits = {.bytes = 8 * kMiB}}).ok());
  }
  LimitTurns turns(1);
  const auto look = [&] {
    kernel.looks = 0;
    return limits_taken_off(*volumes.usage(&turns));
  };
  CHECK(look().empty());
  CHECK(kernel.looks == 20);
  CHECK(look().empty());
  CHECK(kernel.looks == 2);

  const auto leave = [](fsxattr& attributes) { attributes.fsx_projid = 0; };
  REQUIRE(as_owner(base.at("pvc-15"), leave) == 0);
  int looks = 1;
  while (look().empty() && looks < 10) ++looks;
  CHECK(looks == 2);
  // And says so each time: without an alarm that comes and goes.
  for (int i = 0; i < 20; ++i) {
    CHECK(look() == Ids{"pvc-15"});
    CHECK(kernel.looks <= 3);
  }
  REQUIRE(volumes.adopt({.id = "pvc-15", .path = "pvc-15", .limits = {.bytes = 8 * kMiB}}).ok());
  CHECK(look().empty());
  // Who asks once is told at once.
  REQUIRE(as_owner(base.at("pvc-12"), leave) == 0);
  CHECK(limits_taken_off(*volumes.usage()) == Ids{"pvc-12"});
}

TEST_CASE("nothing of a former claim's limits stays with who has its directory now" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  MakeRequest request{.id = "pvc-1",
                      .path = "pvc-1",
                      .uid = "u-1",
                      .limits = {.bytes = 4 * kMiB, .inodes = 100},
                      .size = 4 * kMiB};
  REQUIRE(volumes.make(request).ok());
  const auto check_is_only = [&](const Limits& limits) {
    const auto usage = volumes.usage();
    REQUIRE(usage.ok());
    REQUIRE(usage->volumes.size() == 1);
    CHECK(usage->volumes[0].volume.uid == "u-2");
    CHECK(usage->volumes[0].volume.limits == limits);
    CHECK(usage->volumes[0].use->limits == limits);
  };
  SUBCASE("by an adoption, which says no size") {
    const auto adopted = volumes.adopt({.id = "pvc-1",
                                        .path = "pvc-1",
                                        .claim = "web/later",
                                        .uid = "u-2",
                                        .limits = {.bytes = 2 * kMiB}});
    REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
    CHECK(adopted->size == 0);
    check_is_only({.bytes = 2 * kMiB});
  }
  SUBCASE("by an adoption with a limit of files only") {
    REQUIRE(volumes.adopt({.id = "pvc-1", .path = "pvc-1", .uid = "u-2", .limits = {.inodes = 9}})
                .ok());
    check_is_only({.inodes = 9});
  }
  SUBCASE("by a make") {
    for (const std::uint64_t bytes : {4 * kMiB, 8 * kMiB}) {
      request.uid = "u-2";
      request.limits = {.bytes = bytes};
      REQUIRE(volumes.make(request).ok());
      check_is_only({.bytes = bytes});
    }
  }
}

TEST_CASE("nothing of a former claim's limits stays with one that asks for none" * NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  MakeRequest request{.id = "pvc-1",
                      .path = "pvc-1",
                      .uid = "u-1",
                      .limits = {.bytes = 4 * kMiB},
                      .size = 4 * kMiB};
  const auto check_is_free = [&](const std::string& uid) {
    const auto usage = volumes.usage();
    REQUIRE(usage.ok());
    REQUIRE(usage->volumes.size() == 1);
    CHECK(usage->volumes[0].volume.uid == uid);
    CHECK_FALSE(usage->volumes[0].volume.limits.any());
    CHECK(usage->volumes[0].volume.size == 16 * kMiB);
    CHECK(limits_not_held(*usage).empty());
    CHECK(fill(base.at("pvc-1/more"), 8 * kMiB).error == 0);
  };
  const MakeRequest later{
      .id = "pvc-1", .path = "pvc-1", .claim = "web/later", .uid = "u-2", .size = 16 * kMiB};
  SUBCASE("when it comes") {
    REQUIRE(volumes.make(request).ok());
    const auto made = volumes.make(later);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK_FALSE(made->limits.any());
    check_is_free("u-2");
    REQUIRE(volumes.resize({.id = "pvc-1", .limits = {.bytes = kMiB}, .size = 16 * kMiB}).ok());
    check_is_free("u-2");
    std::filesystem::remove(base.at("pvc-1/more"));
    // Its number can be limited again.
    request.uid = "u-3";
    request.limits = {.bytes = 12 * kMiB};
    const auto limited = volumes.make(request);
    REQUIRE_MESSAGE(limited.ok(), limited.error().message);
    CHECK(limited->limits == request.limits);
    CHECK(fill(base.at("pvc-1/yet more"), 16 * kMiB).error != 0);
  }
  SUBCASE("wherever the make that takes it over ends") {
    for (int place = 0;; ++place) {
      CAPTURE(place);
      REQUIRE(volumes.make(request).ok());
      const int ended = in_process([&] {
        FaultyKernel crashing(place, 0);
        return base.volumes(crashing).make(later).ok() ? 0 : 1;
      });
      REQUIRE(volumes.make(later).ok());
      check_is_free("u-2");
      REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
      if (ended != FaultyKernel::kCrashed) break;
    }
  }
  SUBCASE("when a make of the former one has ended half done") {
    for (int place = 0;; ++place) {
      CAPTURE(place);
      base.make_directory("pvc-1");
      const int ended = in_process([&] {
        FaultyKernel crashing(place, 0);
        return base.volumes(crashing).make(request).ok() ? 0 : 1;
      });
      REQUIRE(volumes.make(later).ok());
      check_is_free("u-2");
      REQUIRE(volumes.remove({.id = "pvc-1", .path = "pvc-1"}).ok());
      if (ended != FaultyKernel::kCrashed) break;
    }
  }
  SUBCASE("but what was limited for nobody stays so") {
    request.uid.clear();
    REQUIRE(volumes.make(request).ok());
    const auto made = volumes.make(later);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK(made->limits == request.limits);
  }
}

TEST_CASE("a claim that asks for no limit gets a limited directory where the quota is off by now" *
          NeedsProjects()) {
  class QuotaOff : public FaultyKernel {
   public:
    QuotaOff() : FaultyKernel(-1, 0) {}

   protected:
    int before(const char* call) override {
      return std::string_view(call) == "quotactl" ? ESRCH : 0;
    }
  };
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(
      volumes.make({.id = "pvc-1", .path = "pvc-1", .uid = "u-1", .limits = {.bytes = 4 * kMiB}})
          .ok());
  const MakeRequest later{.id = "pvc-1", .path = "pvc-1", .uid = "u-2", .size = 16 * kMiB};
  QuotaOff off;
  const auto made = base.volumes(off).make(later);
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  CHECK_FALSE(made->limits.any());
  CHECK(base.volumes(off).resize({.id = "pvc-1", .size = 17 * kMiB}).ok());
  // It has come back with the former claim's limit.
  CHECK(volumes.usage()->volumes[0].use->limits.any());
  SUBCASE("and keeps it free when it is asked for again") { CHECK(volumes.make(later).ok()); }
  SUBCASE("and keeps it free when it grows") {
    CHECK(volumes.resize({.id = "pvc-1", .size = 18 * kMiB}).ok());
  }
  CHECK(fill(base.at("pvc-1/more"), 8 * kMiB).error == 0);
}

TEST_CASE("who was given a higher limit by hand keeps it when the claim grows" * NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes
              .make({.id = "pvc-1",
                     .path = "pvc-1",
                     .uid = "u-1",
                     .limits = {.bytes = 4 * kMiB, .inodes = 9},
                     .size = 4 * kMiB})
              .ok());
  const Limits by_hand{.bytes = 16 * kMiB, .inodes = 99};
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = by_hand, .size = 16 * kMiB}).ok());
  const auto order = [&](const Limits& limits) {
    const auto grown = volumes.resize({.id = "pvc-1",
                                       .uid = "u-1",
                                       .limits = limits,
                                       .size = limits.bytes,
                                       .limited = true,
                                       .lowers_nothing = true});
    REQUIRE_MESSAGE(grown.ok(), grown.error().message);
    CHECK(volumes.usage()->volumes[0].use->limits == grown->limits);
    CHECK(grown->size == grown->limits.bytes);
    return grown->limits;
  };
  CHECK(order({.bytes = 5 * kMiB, .inodes = 9}) == by_hand);
  CHECK(order({.bytes = 5 * kMiB}) == by_hand);
  CHECK(order({.bytes = 17 * kMiB, .inodes = 9}) == Limits{.bytes = 17 * kMiB, .inodes = 99});
  CHECK(volumes.resize({.id = "pvc-1", .limits = {.bytes = 4 * kMiB}})->limits.bytes == 4 * kMiB);
}

TEST_CASE("what has come in beside a limit is adopted under one that holds it" * NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const Limits before{.bytes = 4 * kMiB, .inodes = 3};
  REQUIRE(volumes.make({.id = "pvc-1", .path = "pvc-1", .limits = before}).ok());
  for (const char* const name : {"a", "b", "c", "d"}) {
    REQUIRE(fill(base.at(name), 2 * kMiB).error == 0);
    const UniqueFd file(kernel.open(base.at(name).c_str(), O_RDONLY));
    const UniqueFd top(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
    const UniqueFd volume(kernel.open(base.at("pvc-1").c_str(), O_RDONLY | O_DIRECTORY));
    const auto project = *ProjectQuota::project_of(kernel, volume.get());
    // As its owner can, who then moves into it what is of no project.
    REQUIRE(ProjectQuota::set_project(kernel, volume.get(), 0).ok());
    REQUIRE(kernel.move(top.get(), name, volume.get(), name) == 0);
    REQUIRE(ProjectQuota::set_project(kernel, volume.get(), project).ok());
  }
  const auto refused =
      volumes.adopt({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 5 * kMiB, .inodes = 99}});
  CHECK(refused.error().is(ErrorCode::kInvalid));
  const auto adopted =
      volumes.adopt({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 16 * kMiB, .inodes = 99}});
  REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
  CHECK(volumes.usage()->volumes[0].use->limits == Limits{.bytes = 16 * kMiB, .inodes = 99});
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
