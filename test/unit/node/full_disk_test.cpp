// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "everywhere.h"

using namespace lpp;           // NOLINT(google-build-using-namespace): a test file
using namespace lpp::node;     // NOLINT(google-build-using-namespace): a test file
using namespace lpp::testing;  // NOLINT(google-build-using-namespace): a test file

// What removes must not need the room that it is to make.

namespace {

void fill_to_the_brim(const BaseFolder& base) {
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "web/pvc-1")).ok());
  base.write("web/pvc-1/file");
  base.write("web/pvc-1/folder/file");
}

bool remove_from_full(const Volumes& volumes) {
  return volumes.remove({.id = "pvc-1", .path = "web/pvc-1"}).ok();
}

/// Beside a volume of ours, one that a script made.
void put_beside(const BaseFolder& base) {
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-0", "pvc-0")).ok());
  base.write("web/pvc-1/file");
  base.write("web/pvc-1/folder/file");
}

std::string content_of(const BaseFolder& base) {
  std::string all;
  for (const std::string& name : base.content()) all += name + " ";
  return all;
}

void check_only_other(const BaseFolder& base) {
  CHECK(content_of(base) == BaseFolder::record("volume.pvc-0.json") + " pvc-0 ");
}

}  // namespace

TEST_CASE("volumes are removed one after the other where the disk is full") {
  const BaseFolder base;
  fill_to_the_brim(base);
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-2", "pvc-2")).ok());
  base.write("pvc-2/file");
  FullKernel full;
  const auto volumes = base.volumes(full);
  CHECK_FALSE(volumes.make(make_request("pvc-3", "pvc-3")).ok());
  for (const char* id : {"pvc-1", "pvc-2"}) {
    const auto removed = volumes.remove({.id = id});
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK(*removed == Removed::kRemoved);
  }
  CHECK(content_of(base) == "");
  CHECK(base.has(BaseFolder::record("spare")));
}

TEST_CASE("a removal on a full disk that crashes or fails anywhere is finished by the next one") {
  const auto check = [](const BaseFolder& base, const Volumes& /*volumes*/) {
    FullKernel full;
    const auto removed = base.volumes(full).remove({.id = "pvc-1"});
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK(content_of(base) == "");
  };
  CHECK(crash_everywhere<FullKernel>(fill_to_the_brim, remove_from_full, check) > 30);
  fail_everywhere<FullKernel>(fill_to_the_brim, remove_from_full, EIO, check);
}

TEST_CASE("a directory without a record is removed from a full disk, whatever crashes") {
  crash_everywhere<FullKernel>(put_beside, remove_from_full,
                               [](const auto& base, const auto& /*none*/) {
                                 FullKernel full;
                                 REQUIRE(remove_from_full(base.volumes(full)));
                                 check_only_other(base);
                               });
}

TEST_CASE("what a stopped removal has left of a directory without a record is put back by path") {
  const BaseFolder base;
  put_beside(base);
  FullKernel full;
  const auto volumes = base.volumes(full);
  std::stop_source stop;
  stop.request_stop();
  const auto removed =
      volumes.remove({.id = "pvc-1", .path = "web/pvc-1", .stop = stop.get_token()});
  REQUIRE_FALSE(removed.ok());
  REQUIRE(removed.error().is(ErrorCode::kCancelled));
  CHECK_FALSE(base.has("web/pvc-1"));
  CHECK_FALSE(volumes.put_back("pvc-1").ok());
  const auto back = volumes.put_back("pvc-1", "web/pvc-1");
  REQUIRE_MESSAGE(back.ok(), back.error().message);
  CHECK(*back == PutBack::kInPlace);
  CHECK(base.has("web/pvc-1/file"));
  CHECK(base.has("web/pvc-1/folder/file"));
}

TEST_CASE("a volume is removed from a file system that is full to the last block or inode" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  for (const char* id : {"pvc-1", "pvc-2"}) {
    REQUIRE(volumes.make(make_request(id, std::string("web/") + id)).ok());
    base.write(std::string("web/") + id + "/folder/file");
  }
  std::filesystem::create_directory(base.at("ballast"));
  int error = 0;
  SUBCASE("blocks") { error = fill(base.at("ballast/large"), UINT64_MAX).error; }
  SUBCASE("and inodes") { error = ENOSPC; }
  CHECK(error == ENOSPC);
  // What is left goes to small ones.
  constexpr int kMost = 2'000'000;
  int count = 0;
  for (error = 0; error == 0 && count < kMost; ++count) {
    const std::string name = base.at("ballast/" + std::to_string(count));
    if (::mkdir(name.c_str(), 0700) != 0) error = errno;
  }
  CHECK(error == ENOSPC);
  CHECK_FALSE(volumes.make(make_request("pvc-3", "web/pvc-3")).ok());
  for (const char* id : {"pvc-1", "pvc-2"}) {
    const auto removed = volumes.remove({.id = id});
    CHECK_MESSAGE(removed.ok(), removed.error().message);
    CHECK_FALSE(base.has(std::string("web/") + id));
    // Others are quicker to take what became free.
    for (error = 0; error == 0 && count < kMost; ++count) {
      const std::string name = base.at("ballast/" + std::to_string(count));
      if (::mkdir(name.c_str(), 0700) != 0) error = errno;
    }
  }
}
