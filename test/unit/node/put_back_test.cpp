// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "everywhere.h"
#include "harness/file_text.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// Removals that were stopped and are called off.

namespace {

/// Asks for the stop when a call of this name is made for the n-th time.
class StoppingKernel final : public Kernel {
 public:
  StoppingKernel(std::string call, int times) : call_(std::move(call)), times_(times) {}
  std::stop_token token() const { return stop_.get_token(); }

 protected:
  void after(const char* call) override {
    if (call_ == call && --times_ == 0) stop_.request_stop();
  }

 private:
  const std::string call_;
  int times_;
  std::stop_source stop_{};
};

/// Of a volume with two files and one far down, stopped at that call.
void stop_removal(const BaseFolder& base, const std::string& call, int times) {
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-1", "web/pvc-1")).ok());
  base.write("web/pvc-1/a");
  base.write("web/pvc-1/folder/b");
  std::string deep = "web/pvc-1";
  for (int i = 0; i < 34; ++i) deep += "/d";
  base.write(deep + "/far down");
  StoppingKernel stopping(call, times);
  const auto removed = base.volumes(stopping).remove({.id = "pvc-1", .stop = stopping.token()});
  REQUIRE(removed.error().is(ErrorCode::kCancelled));
  REQUIRE(std::filesystem::remove(base.at("web")));
  CHECK(base.volumes(kernel).list()->volumes.at(0).state == State::kRemoving);
}

/// Before anything has been removed, and after something has been moved out of its depth.
void stop_at_once(const BaseFolder& base) { stop_removal(base, "renameat2", 1); }
void stop_with_pieces(const BaseFolder& base) { stop_removal(base, "renameat2", 2); }

bool put_back(const Volumes& volumes) {
  const auto done = volumes.put_back("pvc-1");
  return done.ok() && *done == PutBack::kInPlace;
}

std::set<std::string> files_of(const BaseFolder& base) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base.path())) {
    const std::string name = entry.path().filename();
    if (name == "a" || name == "b" || name == "far down") files.insert(name);
  }
  return files;
}

void check_in_place(const BaseFolder& base, const Volumes& volumes) {
  const auto listing = volumes.list();
  REQUIRE(listing.ok());
  REQUIRE(listing->volumes.size() == 1);
  const Volume& volume = listing->volumes[0];
  CHECK(volume.state == State::kPresent);
  CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
  struct stat status {};
  REQUIRE(::stat(base.at("web/pvc-1").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 02770);
  Kernel kernel;
  const UniqueFd there(kernel.open(base.at("web/pvc-1").c_str(), O_RDONLY | O_DIRECTORY));
  CHECK(*identity_of(kernel, there.get()) == volume.directory);
  const auto usage = volumes.usage();
  REQUIRE(usage.ok());
  if (!BaseFolder::has_limits()) return;
  REQUIRE(usage->volumes[0].use.has_value());
  CHECK(usage->volumes[0].use->limits == BaseFolder::limits());
}

}  // namespace

TEST_CASE("a removal that may not begin any more when all is prepared has taken nothing away") {
  const BaseFolder base;
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-1", "web/pvc-1")).ok());
  base.write("web/pvc-1/a");
  const auto before = base.content();
  int asked = 0;
  bool may = false;
  const auto remove = [&] {
    return base.volumes(kernel).remove({.id = "pvc-1", .may_begin = [&] {
                                          ++asked;
                                          CHECK_FALSE(base.has("web/pvc-1"));
                                          return may;
                                        }});
  };
  CHECK(remove().error().is(ErrorCode::kCancelled));
  CHECK(asked == 1);
  CHECK(base.content() == before);
  may = true;
  CHECK(*remove() == Removed::kRemoved);
  CHECK_FALSE(base.has("web/pvc-1"));
}

TEST_CASE("a removal that was stopped is called off: what is left is in its place again") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  stop_at_once(base);
  REQUIRE(put_back(volumes));
  check_in_place(base, volumes);
  CHECK(base.has("web/pvc-1/a"));
  CHECK(base.has("web/pvc-1/folder/b"));
  CHECK(files_of(base).size() == 3);
  REQUIRE(put_back(volumes));
  check_in_place(base, volumes);
  // Its volume is removed another day.
  CHECK(*volumes.remove({.id = "pvc-1", .path = "web/pvc-1"}) == Removed::kRemoved);
  CHECK(base.content().empty());
}

TEST_CASE("what a removal had moved out of its depth comes back into the directory") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  stop_with_pieces(base);
  // Nothing is moved from one subvolume to another: there it stays in the volume.
  const bool stays = BaseFolder::has_subvolumes();
  if (!stays) REQUIRE(base.has(BaseFolder::record("gone.pvc-1/deep.0")));
  const auto left = files_of(base);
  CHECK(left.count("far down") == 1);
  REQUIRE(put_back(volumes));
  check_in_place(base, volumes);
  if (!stays) CHECK(base.has("web/pvc-1/put-back.1"));
  CHECK(files_of(base) == left);
}

TEST_CASE("a removal that was never begun, or has ended, needs no way back") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  CHECK(*volumes.put_back("pvc-1") == PutBack::kNothing);
  CHECK(volumes.put_back("../pvc-1").error().is(ErrorCode::kInvalid));
  REQUIRE(volumes.make(make_request("pvc-1", "web/pvc-1")).ok());
  CHECK(*volumes.put_back("pvc-1") == PutBack::kInPlace);
  check_in_place(base, volumes);
  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
  CHECK(*volumes.put_back("pvc-1") == PutBack::kNothing);
  CHECK(base.content().empty());
}

TEST_CASE("what stands in the place by now is not touched, and what is left stays being removed") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  stop_with_pieces(base);
  const auto left = files_of(base);
  base.write("web/pvc-1/of somebody else");
  const auto refused = volumes.put_back("pvc-1");
  CHECK(refused.error().is(ErrorCode::kAlreadyExists));
  CHECK(refused.error().message.find("web/pvc-1") != std::string::npos);
  CHECK(base.has("web/pvc-1/of somebody else"));
  CHECK(files_of(base) == left);
  CHECK(volumes.list()->volumes.at(0).state == State::kRemoving);
  std::filesystem::remove_all(base.at("web"));
  REQUIRE(put_back(volumes));
  check_in_place(base, volumes);
  CHECK(files_of(base) == left);
}

TEST_CASE("a way back that crashes or fails anywhere loses nothing, and the next one ends it") {
  for (const auto stop : {stop_at_once, stop_with_pieces}) {
    std::set<std::string> before;
    const Prepare prepare = [&](const BaseFolder& base) {
      stop(base);
      before = files_of(base);
    };
    const Check check = [&](const BaseFolder& base, const Volumes& volumes) {
      CHECK(files_of(base) == before);
      const auto listing = volumes.list();
      REQUIRE(listing.ok());
      REQUIRE(listing->volumes.size() == 1);
      if (listing->volumes[0].state == State::kPresent) CHECK(base.has("web/pvc-1"));
      REQUIRE(put_back(volumes));
      check_in_place(base, volumes);
      CHECK(files_of(base) == before);
    };
    CHECK(crash_everywhere(prepare, put_back, check) > 30);
    for (const int error : {EIO, ENOSPC, EPERM, EINTR})
      fail_everywhere(prepare, put_back, error, check);
  }
}

TEST_CASE("a way back that crashes anywhere can be given up for the removal again") {
  crash_everywhere(stop_with_pieces, put_back, [](const BaseFolder& base, const Volumes& volumes) {
    const auto removed = volumes.remove({.id = "pvc-1", .path = "web/pvc-1"});
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK(base.content().empty());
    CHECK(volumes.list()->volumes.empty());
  });
}

TEST_CASE("recovery leaves a removal to the agent that has it on record") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  stop_at_once(base);
  const std::string work = BaseFolder::record(RecordFolder::work_name("pvc-1", "0a1b"));
  base.write(work);
  base.write(BaseFolder::record("work.of-no-volume.json"));
  const auto problems = volumes.recover({});
  REQUIRE(problems.ok());
  CHECK(problems->empty());
  CHECK(files_of(base).size() == 3);
  CHECK(volumes.list()->problems.empty());
  CHECK(volumes.list()->volumes.size() == 1);
  REQUIRE(volumes.usage().ok());
  std::filesystem::remove(base.at(work));
  std::filesystem::remove(base.at(BaseFolder::record("work.of-no-volume.json")));
  REQUIRE(volumes.recover({}).ok());
  CHECK(base.content().empty());
}

TEST_CASE("a disk with records has one identity for ever, and an earlier version's gets one") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  CHECK(volumes.identity()->empty());
  CHECK(base.content().empty());
  REQUIRE(volumes.make(make_request("pvc-1", "web/pvc-1")).ok());
  const auto identity = volumes.identity();
  REQUIRE_MESSAGE(identity.ok(), identity.error().message);
  CHECK(identity->size() == 36);
  CHECK(*base.volumes(kernel).identity() == *identity);
  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
  CHECK(*volumes.identity() == *identity);
  CHECK(volumes.list()->problems.empty());
  const BaseFolder other;
  REQUIRE(other.volumes(kernel).make(make_request("pvc-1", "web/pvc-1")).ok());
  CHECK(*other.volumes(kernel).identity() != *identity);
  // Another version's may hold more.
  base.write(BaseFolder::record("identity.json"), R"({"disk":"d-1","cluster":"c-1"})");
  CHECK(*volumes.identity() == "d-1");
  base.write(BaseFolder::record("identity.json"), R"({"disk":"../d"})");
  CHECK(volumes.identity().error().message.find("identity.json") != std::string::npos);
}

TEST_CASE("an identity that crashes or fails anywhere while it is made is made by the next") {
  const auto prepare = [](const BaseFolder& base) {
    Kernel kernel;
    REQUIRE(base.volumes(kernel).make(make_request("pvc-1", "web/pvc-1")).ok());
  };
  const auto work = [](const Volumes& volumes) { return volumes.identity().ok(); };
  const auto check = [](const BaseFolder& base, const Volumes& volumes) {
    const auto identity = volumes.identity();
    REQUIRE_MESSAGE(identity.ok(), identity.error().message);
    CHECK(identity->size() == 36);
    Kernel kernel;
    CHECK(*base.volumes(kernel).identity() == *identity);
  };
  crash_everywhere(prepare, work, check);
  fail_everywhere(prepare, work, EIO, check);
}

TEST_CASE("a record says whether a tenant may have seen the volume, and never takes that back") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("pvc-1", "web/pvc-1");
  request.published = false;
  REQUIRE(volumes.make(request).ok());
  CHECK_FALSE(volumes.list()->volumes.at(0).published);
  REQUIRE(volumes.make(request).ok());
  CHECK_FALSE(volumes.list()->volumes.at(0).published);
  request.published = true;
  CHECK(volumes.make(request)->published);
  CHECK(volumes.list()->volumes.at(0).published);
  request.published = false;
  REQUIRE(volumes.make(request).ok());
  CHECK(volumes.list()->volumes.at(0).published);
}

namespace {

/// The directory cannot leave its place, and at the n-th removal of a file somebody asks for the
/// stop, or it fails.
class StayingKernel final : public Kernel {
 public:
  StayingKernel(int files, int error) : files_(files), error_(error) {}
  std::stop_token token() const { return stop_.get_token(); }

 protected:
  int before(const char* call) override {
    const std::string_view name(call);
    if (name == "renameat2" && !std::exchange(stayed_, true)) return EXDEV;
    if (name != "unlinkat" || !stayed_ || files_-- != 0) return 0;
    if (error_ == 0) stop_.request_stop();
    return error_;
  }

 private:
  int files_;
  const int error_;
  bool stayed_ = false;
  std::stop_source stop_{};
};

State on_record(const BaseFolder& base) {
  const std::string text = text_of(base.at(BaseFolder::record("volume.pvc-1.json")));
  const auto volume = decode_record(text);
  REQUIRE_MESSAGE(volume.ok(), text);
  return volume->state;
}

/// All calls of a name fail, or the first so many.
class FailingKernel final : public Kernel {
 public:
  FailingKernel(std::string call, int error, int times = INT_MAX)
      : call_(std::move(call)), error_(error), times_(times) {}
  std::function<void()> at_first{};

 protected:
  int before(const char* call) override {
    if (call_ != call || times_-- <= 0) return 0;
    if (at_first) std::exchange(at_first, nullptr)();
    return error_;
  }

 private:
  const std::string call_;
  const int error_;
  int times_;
};

/// In its place, by all signs.
void check_present(const BaseFolder& base, const Volumes& volumes, std::size_t files) {
  CHECK(files_of(base).size() == files);
  CHECK(base.has("web/pvc-1"));
  CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
  CHECK(on_record(base) == State::kPresent);
  CHECK(volumes.list()->volumes.at(0).state == State::kPresent);
  CHECK(volumes.inventory(*volumes.usage(), 10)->leftovers.empty());
  CHECK_FALSE(*volumes.sweep("pvc-1", {}));
  REQUIRE(volumes.recover({})->empty());
  CHECK(files_of(base).size() == files);
  const auto again = volumes.make(make_request("pvc-1", "web/pvc-1"));
  REQUIRE_MESSAGE(again.ok(), again.error().message);
  CHECK(again->origin == Origin::kMade);
  CHECK(again->state == State::kPresent);
  CHECK(files_of(base).size() == files);
}

void make_with_files(const BaseFolder& base) {
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-1", "web/pvc-1")).ok());
  base.write("web/pvc-1/a");
  base.write("web/pvc-1/b");
}

}  // namespace

TEST_CASE("a removal in its place that was stopped is over when it is called off") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  make_with_files(base);
  StayingKernel stuck(0, 0);
  const auto removed = base.volumes(stuck).remove({.id = "pvc-1", .stop = stuck.token()});
  REQUIRE(removed.error().is(ErrorCode::kCancelled));
  const std::size_t left = files_of(base).size();
  CHECK(left == 1);
  CHECK(on_record(base) == State::kRemoving);
  CHECK(volumes.list()->volumes.at(0).state == State::kRemoving);
  SUBCASE("by who has asked for it") { REQUIRE(put_back(volumes)); }
  SUBCASE("by nobody: it is swept") { CHECK_FALSE(*volumes.sweep("pvc-1", {})); }
  SUBCASE("by nobody: somebody recovers") { CHECK(volumes.recover({})->empty()); }
  SUBCASE("by an earlier version, that forgot the record") {
    std::filesystem::remove(base.at(BaseFolder::record("gone.pvc-1")));
    CHECK(volumes.list()->volumes.at(0).state == State::kPresent);
    CHECK_FALSE(*volumes.sweep("pvc-1", {}));
    REQUIRE(volumes.make(make_request("pvc-1", "web/pvc-1")).ok());
  }
  check_present(base, volumes, left);
}

TEST_CASE("a removal that fails leaves what is left in its place") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  SUBCASE("where it was") {
    make_with_files(base);
    StayingKernel stuck(1, EPERM);
    const auto removed = base.volumes(stuck).remove({.id = "pvc-1"});
    REQUIRE_FALSE(removed.ok());
    CHECK(removed.error().is(ErrorCode::kForbidden));
  }
  SUBCASE("where it had been moved") {
    make_with_files(base);
    FailingKernel failing("unlinkat", EPERM);
    REQUIRE_FALSE(base.volumes(failing).remove({.id = "pvc-1"}).ok());
  }
  SUBCASE("before it has left its place") {
    make_with_files(base);
    FailingKernel failing("renameat2", EIO, 1);
    REQUIRE_FALSE(base.volumes(failing).remove({.id = "pvc-1"}).ok());
  }
  check_present(base, volumes, files_of(base).size());
  REQUIRE_FALSE(files_of(base).empty());
  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
  CHECK(base.content().empty());
}

TEST_CASE("a removal that fails, and whose place is taken, says where the rest is") {
  const BaseFolder base;
  Kernel kernel;
  make_with_files(base);
  FailingKernel failing("unlinkat", EPERM);
  failing.at_first = [&] { base.write("web/pvc-1/of somebody else"); };
  const auto removed = base.volumes(failing).remove({.id = "pvc-1"});
  REQUIRE_FALSE(removed.ok());
  CHECK(removed.error().message.find(BaseFolder::record("gone.pvc-1")) != std::string::npos);
  CHECK(base.has("web/pvc-1/of somebody else"));
  CHECK(files_of(base).size() == 2);
  // A claim that came there and goes again leaves the record alone, which tells where the rest was.
  const auto volumes = base.volumes(kernel);
  SUBCASE("something stands there") {}
  SUBCASE("nothing is in what stands there") {
    std::filesystem::remove(base.at("web/pvc-1/of somebody else"));
  }
  for (const Removal removal : {Removal::kIfEmpty, Removal::kTakeBack}) {
    CHECK(*volumes.remove({.id = "pvc-1", .path = "web/pvc-1", .removal = removal}) ==
          Removed::kKept);
  }
  CHECK(base.has(BaseFolder::record("volume.pvc-1.json")));
  CHECK(base.has("web/pvc-1"));
  std::filesystem::remove_all(base.at("web/pvc-1"));
  const std::size_t left = files_of(base).size();
  CHECK(left > 0);
  REQUIRE(put_back(volumes));
  check_present(base, volumes, left);
}

TEST_CASE("a removal in its place that had begun in time is ended, however long it took") {
  const BaseFolder base;
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("pvc-1", "web/pvc-1")).ok());
  base.write("web/pvc-1/a");
  FailingKernel stuck("renameat2", EXDEV, 1);
  int asked = 0;
  bool in_time = true;
  SUBCASE("in time") {}
  SUBCASE("too late") { in_time = false; }
  const auto removed = base.volumes(stuck).remove(
      {.id = "pvc-1", .may_begin = [&] { return in_time && asked++ == 0; }});
  if (in_time) {
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK(*removed == Removed::kRemoved);
    CHECK_FALSE(base.has("web/pvc-1"));
  } else {
    CHECK(removed.error().is(ErrorCode::kCancelled));
    CHECK(base.has("web/pvc-1/a"));
    CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
  }
}
