// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "node/record_folder.h"
#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// A test cannot take the power off. What has to be on the disk before the next call is told by the
// calls themselves.

namespace {

/// Those that change something, in their order.
class NotingKernel final : public Kernel {
 public:
  std::vector<std::string> calls{};

 private:
  void after(const char* call) override {
    const std::string name = call;
    for (const char* one : {"write", "fsync", "syncfs", "QGROUP_LIMIT", "renameat", "renameat2",
                            "unlinkat", "rmdir"}) {
      if (name == one) calls.push_back(name);
    }
  }
};

using Calls = std::vector<std::string>;

/// How often it stands between the two places.
std::ptrdiff_t count(const Calls& calls, Calls::const_iterator from, Calls::const_iterator to,
                     const char* call) {
  REQUIRE(from <= to);
  REQUIRE(to <= calls.end());
  return std::count(from, to, call);
}

/// Each record, and the file of the identity, before it takes the place of the one before.
void check_written(const Calls& calls) {
  bool is_written = false;
  for (const std::string& call : calls) {
    if (call == "write") is_written = true;
    if (call == "fsync") is_written = false;
    if (call == "renameat") CHECK_FALSE(is_written);
  }
}

/// XFS and ext4 write names in the order in which they were changed: one is as good as all before.
/// btrfs writes all at once when a subvolume, as a volume with a limit is one, has been moved.
bool keeps_order(const BaseFolder& base) {
  if (BaseFolder::has_subvolumes()) return true;
  Kernel kernel;
  const UniqueFd fd(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto records = RecordFolder::find_or_make(kernel, fd.get());
  REQUIRE(records.ok());
  return records->keeps_order();
}

}  // namespace

TEST_CASE("the record of a make is on the disk before the directory is in its place") {
  const BaseFolder base;
  const bool ordered = keeps_order(base);
  NotingKernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-1", "pvc-1")).ok());
  const Calls& calls = kernel.calls;
  check_written(calls);
  const auto recorded = std::find(calls.begin(), calls.end(), "renameat");
  const auto placed = std::find(calls.begin(), calls.end(), "renameat2");
  REQUIRE(recorded < placed);
  if (!ordered) CHECK(count(calls, recorded, placed, "fsync") >= 1);
  CHECK(count(calls, placed, calls.end(), "fsync") >= 1);
}

TEST_CASE("a directory is out of its place on the disk before anything in it goes") {
  const BaseFolder base;
  const bool ordered = keeps_order(base);
  NotingKernel kernel;
  const Volumes volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "pvc-1")).ok());
  base.write("pvc-1/file");
  kernel.calls.clear();
  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
  const Calls& calls = kernel.calls;
  const auto moved = std::find(calls.begin(), calls.end(), "renameat2");
  const auto emptied = std::find(moved, calls.end(), "unlinkat");
  REQUIRE(emptied != calls.end());
  // Both directories that it was moved between.
  if (!ordered) CHECK(count(calls, moved, emptied, "fsync") == 2);
  // That its record is gone, too.
  CHECK(calls.back() == "fsync");
}

TEST_CASE("what a volume has grown to is on the disk before that is told") {
  const BaseFolder base;
  NotingKernel kernel;
  const Volumes volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "pvc-1")).ok());
  kernel.calls.clear();
  const Limits limits = BaseFolder::has_limits() ? Limits{.bytes = 16U << 20U} : Limits{};
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = limits, .size = 16U << 20U}).ok());
  check_written(kernel.calls);
  const auto recorded = std::find(kernel.calls.begin(), kernel.calls.end(), "renameat");
  REQUIRE(recorded != kernel.calls.end());
  CHECK(count(kernel.calls, recorded, kernel.calls.end(), "fsync") >= 1);
}

TEST_CASE("an empty volume with a limit costs two fsyncs at most, where metadata keeps its order") {
  const BaseFolder base;
  const bool ordered = keeps_order(base);
  // Elsewhere each folder by itself.
  const std::ptrdiff_t most = ordered ? 2 : 3;
  NotingKernel kernel;
  const Volumes volumes = base.volumes(kernel);
  const Calls& calls = kernel.calls;
  // The first one makes the folder of the records, its identity and the spare folder, once.
  for (const char* const id : {"pvc-0", "pvc-1", "pvc-2"}) {
    CAPTURE(id);
    kernel.calls.clear();
    REQUIRE(volumes.make(make_request(id, id)).ok());
    const auto made = count(calls, calls.begin(), calls.end(), "fsync");
    if (std::string(id) != "pvc-0") CHECK(made <= most);
    kernel.calls.clear();
    REQUIRE(volumes.remove({.id = id, .uid = "u-1"}).ok());
    CHECK(count(calls, calls.begin(), calls.end(), "fsync") <= most);
  }
}

TEST_CASE("the first limit of a subvolume that is there is on the disk before that is told" *
          NeedsSubvolumes()) {
  const BaseFolder base;
  NotingKernel kernel;
  const Volumes volumes = base.volumes(kernel);
  base.make_directory("pvc-1");
  Limits limits{.bytes = 16U << 20U};
  bool is_recorded_last = true;
  SUBCASE("by a make") {
    MakeRequest request = make_request("pvc-1", "pvc-1");
    request.limits = limits;
    REQUIRE(volumes.make(request).ok());
  }
  SUBCASE("by an adoption") {
    REQUIRE(volumes.adopt({.id = "pvc-1", .path = "pvc-1", .limits = limits}).ok());
  }
  SUBCASE("after the quota was off") {
    const auto adopted = volumes.adopt({.id = "pvc-1", .path = "pvc-1", .limits = limits});
    REQUIRE(adopted.ok());
    const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
    REQUIRE(ProjectQuota::open(kernel, folder.get())->limit(adopted->project, {}).ok());
    kernel.calls.clear();
    is_recorded_last = false;  // what is asked for is on record first
    SUBCASE("to more") {
      limits.bytes *= 2;
      REQUIRE(volumes.resize({.id = "pvc-1", .limits = limits, .limited = true}).ok());
    }
    SUBCASE("to what it had, by a make") {
      MakeRequest request{.id = "pvc-1", .path = "pvc-1"};
      request.limits = limits;
      REQUIRE(volumes.make(request).ok());
    }
  }
  const Calls& calls = kernel.calls;
  const auto last = std::find(calls.rbegin(), calls.rend(), "QGROUP_LIMIT");
  REQUIRE(last != calls.rend());
  const auto committed = std::find(last.base(), calls.end(), "syncfs");
  REQUIRE(committed != calls.end());
  CHECK(count(calls, last.base(), committed, "renameat") == 0);
  CHECK(count(calls, committed, calls.end(), "renameat") == (is_recorded_last ? 1 : 0));
}
