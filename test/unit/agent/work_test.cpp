// SPDX-License-Identifier: Apache-2.0
#include "agent/work.h"

#include <doctest/doctest.h>

#include <limits>

#include "agent/texts.h"
#include "agent_bed.h"

using namespace lpp;
using namespace lpp::agent;
using namespace lpp::testing;
using operation::Directory;
using operation::Kind;
using operation::Operation;
using operation::Progress;
using State = operation::Progress::State;

namespace {

Progress run(const BaseFolder& base, const Operation& operation) {
  node::Kernel kernel;
  const auto done = do_work(base.volumes(kernel), operation, {});
  return done.ok() ? *done : Progress{.message = done.error().message};
}

bool refuses(const BaseFolder& base, const Operation& operation, const std::string& word) {
  const auto progress = run(base, operation);
  CAPTURE(progress.message);
  CHECK(base.content().empty());
  return progress.state == State::kFailed && progress.reason == "Refused" &&
         progress.message.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("a make is told as a helper pod tells it, and what it finds is found") {
  const BaseFolder base;
  auto make = operation_of(base, Kind::kMake);
  make.user = std::to_string(::geteuid());
  const auto made = run(base, make);
  CHECK_MESSAGE(made.state == State::kSucceeded, made.message);
  CHECK(made.directory == Directory::kMade);
  CHECK(made.space.has_value());
  CHECK(made.kept.size == BaseFolder::has_limits());
  CHECK(made.kept.bytes == (BaseFolder::has_limits() ? make.size_bytes : 0));
  struct stat status {};
  REQUIRE(::stat(base.at("web/pvc-1").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0750);
  auto again = run(base, make);
  again.space = made.space;  // others use the disk, too
  CHECK(again == made);
  make.owner_uid = "another";
  CHECK(run(base, make).directory == Directory::kFound);
}

TEST_CASE("texts of a make that are not right are refused in words, and nothing is made") {
  const BaseFolder base;
  const auto make = operation_of(base, Kind::kMake);
  for (const char* text : {"root", "-1", "4294967295", "0x10", " 1", "1 "}) {
    CAPTURE(text);
    auto with = make;
    with.user = text;
    CHECK(refuses(base, with, "user"));
    with = make;
    with.group = text;
    CHECK(refuses(base, with, "group"));
  }
  for (const char* text : {"10000", "8", "rwx", "-1"}) {
    CAPTURE(text);
    auto with = make;
    with.perm = text;
    CHECK(refuses(base, with, "perm"));
  }
  for (const char* text : {"%", "100%", "101%", "-1%", "lots", "-5Gi", "16Ei"}) {
    CAPTURE(text);
    auto with = make;
    with.limits.reserve = text;
    CHECK(refuses(base, with, "reserve"));
  }
  auto with = make;
  with.limits.hard = true;
  with.size_bytes = 0;
  CHECK(refuses(base, with, "size"));
  with.limits.inodes = 100;  // would be a limit of files, and none of bytes
  CHECK(refuses(base, with, "size"));
  with.size_bytes = std::numeric_limits<std::int64_t>::max();
  CHECK(refuses(base, with, "8Ei"));
}

TEST_CASE(
    "a base path that is full is unfit for a make, and a resize that does not fit infeasible") {
  const BaseFolder base;
  auto make = operation_of(base, Kind::kMake);
  make.limits.reserve = "7Ei";
  const auto refused = run(base, make);
  CHECK(refused.state == State::kFailed);
  CHECK(refused.unfit);
  CHECK(refused.reason == "Unfit");
  CHECK(refused.message.find("no room") != std::string::npos);
  CHECK_FALSE(base.has("web"));

  make.limits.reserve = "0%";
  make.limits.overcommit = false;
  const auto made = run(base, make);
  CHECK_MESSAGE(made.state == State::kSucceeded, made.message);
  CHECK(made.kept.reserve);
  CHECK(made.kept.overcommit);
  auto resize = operation_of(base, Kind::kResize);
  resize.limits = make.limits;
  resize.limits.reserve = "7Ei";
  resize.size_bytes = std::int64_t{1} << 60;
  const auto too_much = run(base, resize);
  CHECK(too_much.state == State::kFailed);
  CHECK(too_much.infeasible);
  CHECK_FALSE(too_much.unfit);
}

TEST_CASE("a resize of what has no limit changes nothing, and one that must hold is infeasible") {
  const BaseFolder base;
  auto resize = operation_of(base, Kind::kResize);
  resize.limits = {};
  const auto unknown = run(base, resize);
  CHECK(unknown.state == State::kSucceeded);
  CHECK(unknown.kept.size == false);
  CHECK(base.content().empty());
  resize.limits.hard = true;
  const auto missing = run(base, resize);
  CHECK(missing.state == State::kFailed);
  CHECK_FALSE(missing.infeasible);
  auto make = operation_of(base, Kind::kMake);
  make.limits = {};
  REQUIRE(run(base, make).state == State::kSucceeded);
  CHECK(run(base, resize).infeasible);
}

TEST_CASE("a removal tells whether the directory went, was not there, or was kept") {
  const BaseFolder base;
  const auto make = operation_of(base, Kind::kMake);
  const auto remove = operation_of(base, Kind::kRemove);
  auto take_back = operation_of(base, Kind::kTakeBack);
  CHECK(run(base, take_back).directory == Directory::kAbsent);

  REQUIRE(run(base, make).state == State::kSucceeded);
  base.write("web/pvc-1/file");
  take_back.only_if_empty = true;
  CHECK(run(base, take_back).directory == Directory::kKept);
  take_back.only_if_empty = false;
  CHECK(run(base, take_back).directory == Directory::kKept);
  std::filesystem::remove(base.at("web/pvc-1/file"));
  CHECK(run(base, take_back).directory == Directory::kRemoved);
  CHECK_FALSE(base.has("web"));

  base.write("web/pvc-1/file");
  REQUIRE(run(base, operation_of(base, Kind::kMake)).state ==
          (BaseFolder::has_limits() ? State::kFailed : State::kSucceeded));
  CHECK(run(base, take_back).directory == Directory::kKept);
  CHECK(base.has("web/pvc-1/file"));
  CHECK(run(base, remove).directory == Directory::kRemoved);
  CHECK_FALSE(base.has("web"));
}

TEST_CASE("a directory is found below its base path only, under one id whoever works at it") {
  const BaseFolder base;
  auto operation = operation_of(base, Kind::kMake);
  CHECK(place_of(operation)->path == "web/pvc-1");
  CHECK(place_of(operation)->volume_id == node::id_of_path("web/pvc-1"));
  operation.path = base.at("pvc-1");
  CHECK(place_of(operation)->volume_id == "pvc-1");
  for (const char* path : {"", "/", "/etc", "relative"}) {
    CAPTURE(path);
    operation.path = path;
    CHECK(place_of(operation).error().is(ErrorCode::kInvalid));
  }
  for (const char* tail : {"", "/", "/../etc", "/a/./b", "/.local-path-provisioner/lock", "x"}) {
    CAPTURE(tail);
    operation.path = base.path() + tail;
    CHECK(place_of(operation).error().is(ErrorCode::kInvalid));
  }
}

TEST_CASE("a removal that is stopped says so, and has lost nothing") {
  const BaseFolder base;
  node::Kernel kernel;
  REQUIRE(run(base, operation_of(base, Kind::kMake)).state == State::kSucceeded);
  base.write("web/pvc-1/file");
  std::stop_source stop;
  stop.request_stop();
  const auto done =
      do_work(base.volumes(kernel), operation_of(base, Kind::kRemove), {.stop = stop.get_token()});
  CHECK(done.error().is(ErrorCode::kCancelled));
  CHECK(*base.volumes(kernel).put_back(node::id_of_path("web/pvc-1")) == node::PutBack::kInPlace);
  CHECK(base.has("web/pvc-1/file"));
}

TEST_CASE("what a file system counts beyond all bounds is told as the most there is") {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t many = ~std::uint64_t{0};
  const node::Space space{.size_bytes = many,
                          .free_bytes = many,
                          .available_bytes = many,
                          .inodes = many,
                          .free_inodes = (std::uint64_t{1} << 63U)};
  const auto told = space_of(space);
  CHECK(told.size == kMost);
  CHECK(told.free == kMost);
  CHECK(told.inodes == kMost);
  CHECK(told.free_inodes == kMost);
  // A number below zero would have the whole work refused, and the node silenced.
  Work work{.operation = operation_of(BaseFolder(), Kind::kMake)};
  work.progress = {.state = State::kSucceeded, .space = told};
  const auto read = decode_work(encode(work));
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  CHECK(read->progress == work.progress);
}
