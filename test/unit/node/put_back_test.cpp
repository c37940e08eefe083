// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "everywhere.h"

using namespace lpp;           // NOLINT(google-build-using-namespace): a test file
using namespace lpp::node;     // NOLINT(google-build-using-namespace): a test file
using namespace lpp::testing;  // NOLINT(google-build-using-namespace): a test file

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
