// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sched.h>

#include <map>
#include <vector>

#include "busy_kernel.h"

// Several processes at the same volumes: each is worked at by one at a time, whoever comes late is
// told so and comes again.

namespace lpp::node::at_once {
namespace {

using testing::BaseFolder;
using testing::kMiB;
using testing::NeedsLimits;

constexpr int kProcesses = 4;
constexpr int kVolumes = 6;

std::string id_of(int volume) { return "pvc-" + std::to_string(volume); }

void plant(const BaseFolder& base, int volume) {
  for (int i = 0; i < 20; ++i) {
    base.write(id_of(volume) + "/folder-" + std::to_string(i % 4) + "/file-" + std::to_string(i));
  }
}
constexpr std::uint64_t kPlanted = 20 + 4 + 1;  // with the directory itself

/// Asks until nobody else is at it.
template <typename Ask>
auto patiently(const Ask& ask) {
  auto answer = ask();
  while (!answer.ok() && answer.error().is(ErrorCode::kConflict)) {
    ::sched_yield();
    answer = ask();
  }
  return answer;
}

/// Each process does the work with its number; the exit codes, by process.
std::vector<int> at_once(const BaseFolder& base,
                         const std::function<int(const Volumes&, int)>& work) {
  return testing::at_once(kProcesses, [&](int process) {
    Kernel kernel;
    return work(base.volumes(kernel), process);
  });
}

/// Each volume is there, with a record that tells of the limits that hold, in a project of its own.
void check_holds_what_is_on_record(const Volumes& volumes) {
  const auto usage = volumes.usage();
  REQUIRE(usage.ok());
  CHECK(usage->problems.empty());
  CHECK(usage->volumes.size() == kVolumes);
  std::map<std::uint32_t, int> projects;
  for (const VolumeUsage& entry : usage->volumes) {
    CAPTURE(entry.volume.id);
    CHECK(entry.volume.state == State::kPresent);
    CHECK_FALSE(entry.taken_out);
    if (entry.use) CHECK(entry.use->limits == entry.volume.limits);
    if (entry.volume.project != 0) CHECK(++projects[entry.volume.project] == 1);
  }
}

void check_leaves_nothing(const BaseFolder& base, const Volumes& volumes) {
  CHECK(volumes.list()->volumes.empty());
  CHECK(base.content().empty());
  if (!BaseFolder::has_limits()) return;
  Kernel kernel;
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto uses = ProjectQuota::open(kernel, folder.get())->uses();
  REQUIRE(uses.ok());
  for (const ProjectUse& use : *uses) {
    CHECK_MESSAGE((!ProjectQuota::is_own(use.project) || !use.limits.any()), use.project);
  }
}

}  // namespace

TEST_CASE("processes that remove the same volumes at once remove each of them once") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  for (int i = 0; i < kVolumes; ++i) {
    REQUIRE(volumes.make(testing::make_request(id_of(i), id_of(i))).ok());
    plant(base, i);
  }
  const auto codes = at_once(base, [](const Volumes& mine, int process) {
    int removed = 0;
    for (int i = 0; i < kVolumes; ++i) {
      const std::string id = id_of((i + process) % kVolumes);
      const auto done = patiently([&] { return mine.remove({.id = id, .path = id}); });
      if (!done.ok()) return 50;
      if (*done == Removed::kRemoved) ++removed;
    }
    return removed;
  });
  int all = 0;
  for (const int code : codes) all += code;
  CHECK(all == kVolumes);
  check_leaves_nothing(base, volumes);
}

TEST_CASE("processes that resize the same volumes at once leave limits as they are on record") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  for (int i = 0; i < kVolumes; ++i) {
    REQUIRE(volumes.make(testing::make_request(id_of(i), id_of(i))).ok());
  }
  const auto size_of = [](int process) {
    return 8 * kMiB + static_cast<std::uint64_t>(process + 1) * kMiB;
  };
  const auto codes = at_once(base, [&](const Volumes& mine, int process) {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < kVolumes; ++i) {
        ResizeRequest request{.id = id_of((i + process) % kVolumes), .size = size_of(process)};
        if (BaseFolder::has_limits()) request.limits.bytes = request.size;
        if (process % 2 == 0) request.room.overcommit = false;
        if (!patiently([&] { return mine.resize(request); }).ok()) return 1;
      }
    }
    return 0;
  });
  CHECK(codes == std::vector<int>(kProcesses, 0));
  check_holds_what_is_on_record(volumes);
  const auto listing = volumes.list();
  for (const Volume& volume : listing->volumes) {
    CHECK(volume.size > 8 * kMiB);
    CHECK(volume.size <= size_of(kProcesses - 1));
    if (BaseFolder::has_limits()) CHECK(volume.limits.bytes == volume.size);
  }
  for (int i = 0; i < kVolumes; ++i) CHECK(volumes.remove({.id = id_of(i)}).ok());
}

TEST_CASE("processes that adopt the same directories at once count all that is in each" *
          NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  for (int i = 0; i < kVolumes; ++i) {
    base.make_directory(id_of(i));
    plant(base, i);
  }
  const auto codes = at_once(base, [](const Volumes& mine, int process) {
    for (int i = 0; i < kVolumes; ++i) {
      const std::string id = id_of((i + process) % kVolumes);
      const auto adopted = patiently([&] {
        return mine.adopt({.id = id,
                           .path = id,
                           .limits = {.bytes = static_cast<std::uint64_t>(process + 2) * kMiB}});
      });
      if (!adopted.ok()) return 1;
    }
    return 0;
  });
  CHECK(codes == std::vector<int>(kProcesses, 0));
  check_holds_what_is_on_record(volumes);
  const auto usage = volumes.usage();
  for (const VolumeUsage& entry : usage->volumes) {
    CHECK(entry.volume.origin == Origin::kFound);
    if (BaseFolder::has_projects()) CHECK(entry.use->inodes == kPlanted);
  }
  for (int i = 0; i < kVolumes; ++i) CHECK(volumes.remove({.id = id_of(i)}).ok());
  check_leaves_nothing(base, volumes);
}

TEST_CASE("processes that make, adopt, resize and remove the same volumes at once lose nothing" *
          NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const Limits limits{.bytes = 8 * kMiB};
  const auto codes = at_once(base, [&](const Volumes& mine, int process) {
    const auto is_told = [](const auto& answer) {
      return answer.ok() || answer.error().is(ErrorCode::kConflict) ||
             answer.error().is(ErrorCode::kNotFound);
    };
    for (int round = 0; round < 40; ++round) {
      const std::string id = id_of(round % 2);
      const bool fine =
          process == 0   ? is_told(mine.make({.id = id, .path = id, .limits = limits}))
          : process == 1 ? is_told(mine.adopt({.id = id, .path = id, .limits = limits}))
          : process == 2 ? is_told(mine.resize({.id = id, .limits = {.bytes = 9 * kMiB}}))
                         : is_told(mine.remove({.id = id, .path = id}));
      if (!fine) return 1 + round;
    }
    return 0;
  });
  CHECK(codes == std::vector<int>(kProcesses, 0));
  const auto usage = volumes.usage();
  REQUIRE(usage.ok());
  for (const VolumeUsage& entry : usage->volumes) {
    CHECK(base.has(entry.volume.id));
    CHECK_FALSE(entry.taken_out);
    CHECK(entry.use->limits == entry.volume.limits);
  }
  for (int i = 0; i < 2; ++i) CHECK(volumes.remove({.id = id_of(i), .path = id_of(i)}).ok());
  check_leaves_nothing(base, volumes);
}

TEST_CASE("an adoption records no directory that was removed while it began" * NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const MakeRequest request{.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 8 * kMiB}};
  bool anew = false;
  SUBCASE("and not made again") {}
  SUBCASE("and made again") { anew = true; }
  for (int place = 0;; ++place) {
    CAPTURE(place);
    REQUIRE(volumes.make(request).ok());
    testing::BusyKernel busy(place, [&] {
      const auto removed = volumes.remove({.id = "pvc-1"});
      if (removed.ok() && anew) REQUIRE(volumes.make(request).ok());
    });
    const auto adopted =
        base.volumes(busy).adopt({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 9 * kMiB}});
    const auto usage = volumes.usage();
    REQUIRE(usage.ok());
    CHECK(usage->volumes.size() == (base.has("pvc-1") ? 1 : 0));
    for (const VolumeUsage& entry : usage->volumes) CHECK_FALSE(entry.taken_out);
    CHECK(volumes.remove({.id = "pvc-1", .path = "pvc-1"}).ok());
    if (!busy.has_done()) break;
  }
  check_leaves_nothing(base, volumes);
}

}  // namespace lpp::node::at_once
