// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "everywhere.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

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

/// Not even for the file of locks, where none is there yet.
class BrimKernel : public FullKernel {
 public:
  explicit BrimKernel(int at = -1, int error = 0) : FullKernel(at, error) {}

 protected:
  int before(const char* call) override {
    const int error = FullKernel::before(call);
    return error == 0 && std::string_view(call) == "create" ? ENOSPC : error;
  }
};

/// There is a folder for what is removed, but nothing can be moved into it.
template <int kWhy>
class StuckKernel : public FullKernel {
 public:
  explicit StuckKernel(int at = -1, int error = 0) : FullKernel(at, error) {}

 protected:
  int before(const char* call) override {
    const int error = FullKernel::before(call);
    if (error != 0 || std::string_view(call) != "renameat2") return error;
    // The spare folder becomes that one.
    return moves_++ == 0 ? 0 : kWhy;
  }

 private:
  int moves_ = 0;
};

/// As a script made it, where our program has never been.
void put_alone(const BaseFolder& base) {
  base.write("web/pvc-1/file");
  base.write("web/pvc-1/folder/file");
}

/// The last inodes were those of the records' folder and the identity in it.
void put_beside_blank_records(const BaseFolder& base) {
  put_alone(base);
  base.write(BaseFolder::record("identity.json"), R"({"version":1,"disk":"d-1"})");
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

TEST_CASE("where a full disk has no room for records a directory is removed in its place") {
  const auto check = [](const Prepare& prepare) {
    const auto is_gone = [](const BaseFolder& base) {
      BrimKernel full;
      const auto removed = base.volumes(full).remove({.id = "pvc-1", .path = "web/pvc-1"});
      REQUIRE_MESSAGE(removed.ok(), removed.error().message);
      CHECK_FALSE(base.has("web"));
      CHECK(*base.volumes(full).remove({.id = "pvc-1", .path = "web/pvc-1"}) == Removed::kAbsent);
    };
    const BaseFolder base;
    prepare(base);
    is_gone(base);
    const auto after = [&](const BaseFolder& left, const Volumes& /*volumes*/) { is_gone(left); };
    CHECK(crash_everywhere<BrimKernel>(prepare, remove_from_full, after) > 30);
    fail_everywhere<BrimKernel>(prepare, remove_from_full, EIO, after);
  };
  SUBCASE("where our program has never been") { check(put_alone); }
  SUBCASE("where it could not even make the file of locks") { check(put_beside_blank_records); }
}

TEST_CASE("a removal goes on where a full disk has no room to move the directory away") {
  const auto without_spare = [](const Prepare& prepare) {
    return [prepare](const BaseFolder& base) {
      prepare(base);
      REQUIRE(std::filesystem::remove(base.at(BaseFolder::record("spare"))));
    };
  };
  const auto is_gone = [](const BaseFolder& base, const Volumes& /*volumes*/) {
    FullKernel full;
    REQUIRE(remove_from_full(base.volumes(full)));
    CHECK_FALSE(base.has("web"));
    CHECK_FALSE(base.has(BaseFolder::record("volume.pvc-1.json")));
  };
  for (const Prepare& prepare : {Prepare(fill_to_the_brim), Prepare(put_beside)}) {
    const Prepare scarce = without_spare(prepare);
    CHECK(crash_everywhere<FullKernel>(scarce, remove_from_full, is_gone) > 30);
    fail_everywhere<FullKernel>(scarce, remove_from_full, EIO, is_gone);
  }
}

TEST_CASE_TEMPLATE("a removal goes on in its place where nothing can be moved on a full disk",
                   Stuck, StuckKernel<ENOSPC>, StuckKernel<EDQUOT>, StuckKernel<EXDEV>) {
  const auto is_gone = [](const BaseFolder& base, const Volumes& /*volumes*/) {
    Stuck stuck;
    const auto removed = base.volumes(stuck).remove({.id = "pvc-1", .path = "web/pvc-1"});
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK_FALSE(base.has("web"));
    CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
    CHECK_FALSE(base.has(BaseFolder::record("volume.pvc-1.json")));
  };
  for (const Prepare& prepare : {Prepare(fill_to_the_brim), Prepare(put_beside)}) {
    CHECK(crash_everywhere<Stuck>(prepare, remove_from_full, is_gone) > 30);
    fail_everywhere<Stuck>(prepare, remove_from_full, EIO, is_gone);
  }
  // There is no room to note that the directory is another one by now, and it is stopped.
  const BaseFolder base;
  fill_to_the_brim(base);
  std::filesystem::rename(base.at("web/pvc-1"), base.at("former"));
  base.write("web/pvc-1/file");
  Stuck stuck;
  const auto volumes = base.volumes(stuck);
  std::stop_source stop;
  RemoveRequest request{.id = "pvc-1", .path = "web/pvc-1", .stop = stop.get_token()};
  request.may_begin = [&] { return stop.request_stop(); };
  CHECK(volumes.remove(request).error().is(ErrorCode::kCancelled));
  CHECK(base.has("web/pvc-1/file"));
  is_gone(base, volumes);
}

TEST_CASE("what is removed without records is looked at as what has one") {
  const BaseFolder base;
  BrimKernel full;
  const auto volumes = base.volumes(full);
  SUBCASE("no records") { put_alone(base); }
  SUBCASE("blank records") { put_beside_blank_records(base); }
  RemoveRequest request{.id = "pvc-1", .path = "web/pvc-1"};
  const auto all_is_there = [&] {
    return base.has("web/pvc-1/file") && base.has("web/pvc-1/folder/file");
  };

  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kAbsent);
  request.removal = Removal::kIfEmpty;
  CHECK(*volumes.remove(request) == Removed::kKept);
  request.removal = Removal::kTakeBack;
  CHECK(*volumes.remove(request) == Removed::kKept);
  request.removal = Removal::kReleased;
  request.may_begin = [] { return false; };
  CHECK(volumes.remove(request).error().is(ErrorCode::kCancelled));
  request.may_begin = nullptr;
  std::filesystem::create_directory_symlink("web", base.at("link"));
  request.path = "link/pvc-1";
  CHECK(volumes.remove(request).error().is(ErrorCode::kInvalid));
  CHECK(all_is_there());

  // Called off in the middle: what is left is where it was.
  std::stop_source stop;
  request.path = "web/pvc-1";
  request.stop = stop.get_token();
  request.may_begin = [&] { return stop.request_stop(); };
  CHECK(volumes.remove(request).error().is(ErrorCode::kCancelled));
  CHECK(*volumes.put_back("pvc-1", "web/pvc-1") == PutBack::kInPlace);
  CHECK(all_is_there());

  std::filesystem::create_directories(base.at("web/pvc-2"));
  request = {.id = "pvc-2", .path = "web/pvc-2", .removal = Removal::kTakeBack};
  CHECK(*volumes.remove(request) == Removed::kKept);
  request.removal = Removal::kIfEmpty;
  CHECK(*volumes.remove(request) == Removed::kRemoved);
  CHECK_FALSE(base.has("web/pvc-2"));
  CHECK(all_is_there());
}

TEST_CASE("what is on record is not removed as if nothing were, though the file of locks is gone") {
  const BaseFolder base;
  fill_to_the_brim(base);
  REQUIRE(std::filesystem::remove(base.at(BaseFolder::record("lock"))));
  BrimKernel full;
  const auto removed =
      base.volumes(full).remove({.id = "pvc-1", .path = "web/pvc-1", .uid = "another"});
  CHECK(removed.error().is(ErrorCode::kUnfit));
  CHECK(base.volumes(full).put_back("pvc-1", "web/pvc-1").error().is(ErrorCode::kUnfit));
  CHECK(base.has("web/pvc-1/folder/file"));
}

TEST_CASE("where the file of locks is there it takes no room") {
  const BaseFolder base;
  fill_to_the_brim(base);
  BrimKernel full;
  REQUIRE(remove_from_full(base.volumes(full)));
  CHECK(base.content().empty());
}

TEST_CASE("what was called off in its place of a directory without a record is in it") {
  const BaseFolder base;
  put_beside(base);
  StuckKernel<ENOSPC> stuck;
  const auto volumes = base.volumes(stuck);
  std::stop_source stop;
  RemoveRequest request{.id = "pvc-1", .path = "web/pvc-1", .stop = stop.get_token()};
  request.may_begin = [&] {
    stop.request_stop();
    return true;
  };
  CHECK(volumes.remove(request).error().is(ErrorCode::kCancelled));
  CHECK(*volumes.put_back("pvc-1", "web/pvc-1") == PutBack::kInPlace);
  CHECK(base.has("web/pvc-1/folder/file"));
}

TEST_CASE("however deep it is, it is removed in its place") {
  const BaseFolder base;
  std::string deep = "web/pvc-1";
  for (int i = 0; i < 100; ++i) deep += "/d";
  base.write(deep + "/far down");
  base.write("web/pvc-1/deep.0/file");
  BrimKernel full;
  REQUIRE(remove_from_full(base.volumes(full)));
  CHECK(base.content().empty());
}

TEST_CASE("a directory is removed from a full file system that has no records" * NeedsProjects()) {
  const BaseFolder base;
  put_alone(base);
  std::filesystem::create_directory(base.at("ballast"));
  int error = 0;
  if (fill(base.at("ballast/large"), UINT64_MAX).error != ENOSPC) error = EIO;
  for (int count = 0; error == 0 && count < 2'000'000; ++count) {
    if (::mkdir(base.at("ballast/" + std::to_string(count)).c_str(), 0700) != 0) error = errno;
  }
  REQUIRE(error == ENOSPC);
  Kernel kernel;
  const auto removed = base.volumes(kernel).remove({.id = "pvc-1", .path = "web/pvc-1"});
  REQUIRE_MESSAGE(removed.ok(), removed.error().message);
  CHECK_FALSE(base.has("web"));
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
