// SPDX-License-Identifier: Apache-2.0
// Directories that are somebody else's by now, or were used, go with nobody's volume.

#include <doctest/doctest.h>

#include "everywhere.h"
#include "harness/file_text.h"
#include "node/volumes.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

TEST_CASE("a take-back keeps a directory that stands where the made one was") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "data")).ok());
  std::filesystem::rename(base.at("data"), base.at("moved"));
  base.write("data/other");
  CHECK(*volumes.remove({.id = "pvc-1", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(base.has("data/other"));
  CHECK(base.has("moved"));

  REQUIRE(volumes.make(make_request("pvc-2", "two")).ok());
  base.write("two/used");
  CHECK(*volumes.remove({.id = "pvc-2", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(base.has("two/used"));
  std::filesystem::remove(base.at("two/used"));
  CHECK(*volumes.remove({.id = "pvc-2", .removal = Removal::kTakeBack}) == Removed::kRemoved);
  CHECK_FALSE(base.has("two"));
}

TEST_CASE("a directory that is another claim's by its record goes with nobody else's volume") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto make = [&](const std::string& uid) {
    return volumes.make({.id = "data", .path = "web/data", .claim = "web/data", .uid = uid});
  };
  const auto remove = [&](const std::string& uid) {
    return volumes.remove({.id = "data", .path = "web/data", .uid = uid});
  };
  REQUIRE(make("u1").ok());
  CHECK(*remove("u1") == Removed::kRemoved);
  // The claim was made again. A backup from before is restored, with the volume of the first one.
  REQUIRE(make("u2").ok());
  base.write("web/data/file");
  const auto refused = remove("u1");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("claim web/data, UID u2") != std::string::npos);
  CHECK(base.has("web/data/file"));
  CHECK(*remove("u2") == Removed::kRemoved);
  CHECK(base.content().empty());
  // Who does not say for which claim has to be sure of it.
  REQUIRE(make("u2").ok());
  CHECK(*remove("") == Removed::kRemoved);
}

TEST_CASE("a directory that is another claim's by its record grows with nobody else's volume") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto grow = [&](const std::string& uid, bool limited = false) {
    return volumes.resize({.id = "data", .uid = uid, .size = 2000, .limited = limited});
  };
  REQUIRE(volumes.make({.id = "data", .path = "web/data", .uid = "u2", .size = 1000}).ok());
  const auto check_refused = [&] {
    const auto refused = grow("u1", true);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().is(ErrorCode::kInvalid));
    CHECK(refused.error().message.find("UID u2, and not of the one") != std::string::npos);
    // Without a limit there is nothing to change here: a script may have found it for the next one.
    CHECK(grow("u1").error().is(ErrorCode::kNotFound));
  };
  check_refused();
  CHECK(volumes.list()->volumes[0].size == 1000);
  CHECK(grow("u2")->size == 2000);
  CHECK(grow("")->size == 2000);
  // What a script has made for the next claim is not what the record tells of.
  std::filesystem::rename(base.at("web/data"), base.at("web/former"));
  base.write("web/data/of the next claim");
  check_refused();
  // Nor what its setup has put there, whatever limit the former one had.
  const auto record = base.at(BaseFolder::record("volume.data.json"));
  std::string text = testing::text_of(record);
  const std::string none = "\"project\":0";
  REQUIRE(text.find(none) != std::string::npos);
  std::ofstream(record) << text.replace(text.find(none), none.size(), "\"project\":7");
  check_refused();
  std::filesystem::remove_all(base.at("web/data"));
  check_refused();
  std::filesystem::create_directory_symlink(base.at("web/former"), base.at("web/data"));
  check_refused();
  std::filesystem::remove(base.at("web/data"));
  base.write("web/data");
  check_refused();
}

TEST_CASE("a removal for another claim than the record's tells what stands there") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto remove = [&] {
    return volumes.remove({.id = "data", .path = "web/data", .uid = "u2"});
  };
  REQUIRE(volumes.make({.id = "data", .path = "web/data", .uid = "u1"}).ok());
  const auto refused = remove();
  CHECK(refused.error().is(ErrorCode::kInvalid));
  CHECK(refused.error().message.find("by hand") == std::string::npos);
  std::filesystem::rename(base.at("web/data"), base.at("former"));
  SUBCASE("nothing, and the record stays") {
    CHECK(*remove() == Removed::kAbsent);
    CHECK(volumes.list()->volumes.size() == 1);
  }
  SUBCASE("another directory: put back from a backup it is the data of the record's claim") {
    base.write("web/data/file");
    const auto other = remove();
    REQUIRE_FALSE(other.ok());
    CHECK(other.error().is(ErrorCode::kInvalid));
    const std::string record = base.at(BaseFolder::record("volume.data.json"));
    CHECK(other.error().message.find(record) != std::string::npos);
    CHECK(base.has("web/data/file"));
    // By hand, as it says.
    std::filesystem::remove(record);
    CHECK(*remove() == Removed::kRemoved);
    CHECK_FALSE(base.has("web"));
  }
  SUBCASE("what is left of its removal") {
    base.write(BaseFolder::record("gone.data/volume/file"));
    CHECK(remove().error().is(ErrorCode::kInvalid));
    // Nor is it told that nothing is there when that cannot be seen.
    const RemoveRequest request{.id = "data", .path = "web/data", .uid = "u2"};
    FaultyKernel whole(-1, EIO);
    const auto opened = base.volumes(whole);
    const int first = whole.places();
    CHECK_FALSE(opened.remove(request).ok());
    REQUIRE(whole.places() > first + 5);
    for (int at = first; at < whole.places(); ++at) {
      FaultyKernel failing(at, EIO);
      CAPTURE(at);
      CHECK_FALSE(base.volumes(failing).remove(request).ok());
    }
    CHECK(base.has(BaseFolder::record("gone.data/volume/file")));
  }
}

TEST_CASE("what another cluster has on record becomes no claim's of this one") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto make = [&](const std::string& uid, std::optional<std::string> cluster) {
    return volumes.make({.id = "data",
                         .path = "web/data",
                         .claim = "web/data",
                         .uid = uid,
                         .cluster = std::move(cluster)});
  };
  REQUIRE(make("u1", "c-1").ok());
  // As long as nobody says whose records these are they are those of whoever works here.
  CHECK(make("u2", "c-2").ok());
  REQUIRE(volumes.identities("c-1").ok());
  CHECK(make("u2", "c-2").ok());  // its own
  CHECK(make("u3", "c-1").ok());
  const auto before = base.content();
  for (const std::string ours : {"c-2", ""}) {
    CAPTURE(ours);
    const auto refused = make("u4", ours);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().reason == kOtherCluster);
    CHECK(refused.error().is(ours.empty() ? ErrorCode::kUnavailable : ErrorCode::kInvalid));
    CHECK(refused.error().message.find("claim web/data of") != std::string::npos);
    CHECK(refused.error().message.find("c-1") != std::string::npos);
    CHECK(volumes.list()->volumes.at(0).uid == "u3");
  }
  CHECK(base.content() == before);
  CHECK(make("u4", std::nullopt).ok());
}

TEST_CASE("whose records they are is looked at where that matters, and then one record is read") {
  struct Counting : Kernel {
    int before(const char* call) override {
      if (std::string_view(call) == "openat2") ++opened;
      return 0;
    }
    int opened = 0;
  };
  const BaseFolder base;
  Counting kernel;
  const auto volumes = base.volumes(kernel);
  const auto make = [&](int number, const std::string& uid, const std::string& cluster) {
    kernel.opened = 0;
    (void)volumes.make({.id = "v" + std::to_string(number),
                        .path = "v" + std::to_string(number),
                        .uid = uid,
                        .cluster = cluster});
    return kernel.opened;
  };
  (void)make(0, "u", "c-1");
  REQUIRE(volumes.identities("c-1").ok());
  const int refused = make(0, "another", "c-2");
  const int made = make(1, "u", "c-2");
  for (int i = 2; i < 50; ++i) (void)make(i, "u", "c-2");
  CHECK(make(0, "another", "c-2") == refused);
  CHECK(make(99, "u", "c-2") == made);
}

TEST_CASE("a take-back leaves what is another claim's by its record, empty or not") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "data", .path = "web/data", .uid = "u1"}).ok());
  const auto before = base.content();
  for (const Removal removal : {Removal::kTakeBack, Removal::kIfEmpty}) {
    CHECK(*volumes.remove({.id = "data", .path = "web/data", .uid = "u2", .removal = removal}) ==
          Removed::kKept);
    CHECK(base.content() == before);
  }
  CHECK(*volumes.remove({.id = "data", .uid = "u1", .removal = Removal::kIfEmpty}) ==
        Removed::kRemoved);
}

TEST_CASE("a removal by another path than that on record takes nothing away") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "one")).ok());
  base.write("one/file");
  base.write("two/file");
  const auto before = base.content();
  for (const Removal removal : {Removal::kReleased, Removal::kTakeBack, Removal::kIfEmpty}) {
    const auto refused = volumes.remove({.id = "pvc-1", .path = "two", .removal = removal});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().is(ErrorCode::kInvalid));
    CHECK(base.content() == before);
  }
}

namespace {

/// Whether the removal for that claim says that nobody can tell whose it is, and touches nothing.
bool is_told_and_left(const BaseFolder& base, const Volumes& volumes, const std::string& uid) {
  const auto before = base.content();
  const auto refused = volumes.remove({.id = "data", .path = "web/data", .uid = uid});
  return !refused.ok() && refused.error().is(ErrorCode::kInvalid) &&
         refused.error().message.find(BaseFolder::record("gone.data")) != std::string::npos &&
         base.content() == before;
}

/// Without a record, as a script has made it: begun for the claim that is named, and stopped before
/// the first file went.
void begin_unrecorded(const BaseFolder& base, const Volumes& volumes, const std::string& uid) {
  base.write("web/data/of-u1");
  std::stop_source stop;
  RemoveRequest request{.id = "data", .path = "web/data", .uid = uid, .stop = stop.get_token()};
  request.may_begin = [&] {
    stop.request_stop();
    return true;
  };
  REQUIRE(volumes.remove(request).error().is(ErrorCode::kCancelled));
  REQUIRE(base.has(BaseFolder::record("gone.data/volume/of-u1")));
}

/// The same with a record, of claim "u1".
void begin_removal(const BaseFolder& base, const Volumes& volumes, const std::string& uid) {
  REQUIRE(volumes.make({.id = "data", .path = "web/data", .uid = "u1"}).ok());
  begin_unrecorded(base, volumes, uid);
}

}  // namespace

TEST_CASE("what was taken away for a claim goes with no volume of which nobody knows the claim") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  begin_removal(base, volumes, "u1");
  SUBCASE("nothing stands in its place") {}
  SUBCASE("the next volume stands in its place") { base.write("web/data/of the next"); }
  SUBCASE("the next volume stands there, and nothing is left of the first") {
    std::filesystem::remove_all(base.at(BaseFolder::record("gone.data/volume")));
    base.write("web/data/of the next");
  }
  CHECK(is_told_and_left(base, volumes, ""));
  // Nor is it put back: it would go with the next attempt.
  const auto before = base.content();
  const auto back = volumes.put_back("data", "web/data", "");
  CHECK(back.ok() == std::filesystem::is_empty(base.at(BaseFolder::record("gone.data"))));
  if (!back.ok()) CHECK(back.error().message.find("gone.data") != std::string::npos);
  CHECK(base.content() == before);
  CHECK(is_told_and_left(base, volumes, ""));
  CHECK(*volumes.remove({.id = "data", .path = "web/data", .uid = "u1"}) == Removed::kRemoved);
}

TEST_CASE("what was taken away without a word for which claim goes on, and back, as it was begun") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  begin_removal(base, volumes, "");
  SUBCASE("on") {
    CHECK(*volumes.remove({.id = "data", .path = "web/data"}) == Removed::kRemoved);
    CHECK(base.content().empty());
  }
  SUBCASE("back") {
    CHECK(*volumes.put_back("data", "web/data", "") == PutBack::kInPlace);
    CHECK(base.has("web/data/of-u1"));
    // Who takes it then knows for which claim: that counts.
    std::filesystem::remove_all(base.at("web"));
    REQUIRE(*volumes.sweep("data", {}));
    begin_removal(base, volumes, "u1");
    CHECK(is_told_and_left(base, volumes, ""));
  }
  SUBCASE("not while something else stands in its place") {
    base.write("web/data/of the next");
    CHECK(is_told_and_left(base, volumes, ""));
  }
  SUBCASE("back, and taken anew for its claim") {
    REQUIRE(*volumes.put_back("data", "web/data", "") == PutBack::kInPlace);
    begin_removal(base, volumes, "u1");
    CHECK(is_told_and_left(base, volumes, ""));
  }
}

TEST_CASE("what nobody has on record is not ended for what stands in its place by now") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  begin_removal(base, volumes, "u1");
  std::filesystem::remove(base.at(BaseFolder::record("volume.data.json")));
  base.write("web/data/of the next");
  CHECK(is_told_and_left(base, volumes, ""));
  CHECK(is_told_and_left(base, volumes, "u2"));
}

namespace {

/// As earlier versions have noted a removal of what had no record.
void forget_claim(const BaseFolder& base) {
  const auto record = base.at(BaseFolder::record("volume.data.json"));
  std::string text = text_of(record);
  const std::string uid = R"("uid":"u1")";
  REQUIRE(text.find(uid) != std::string::npos);
  std::ofstream(record) << text.replace(text.find(uid), uid.size(), R"("uid":"")");
}

}  // namespace

TEST_CASE("what was taken away of a directory without a record goes with its own volume only") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  std::string first = "u1";
  SUBCASE("for its claim") {}
  SUBCASE("for whatever claim") { first.clear(); }
  CAPTURE(first);
  begin_unrecorded(base, volumes, first);
  const auto record = base.at(BaseFolder::record("volume.data.json"));
  base.write("web/data/of the next");
  for (const std::string uid : {"u2", ""}) {
    CAPTURE(uid);
    CHECK(is_told_and_left(base, volumes, uid));
    const auto refused = volumes.remove({.id = "data", .path = "web/data", .uid = uid});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find(record) != std::string::npos);
  }
  std::filesystem::remove_all(base.at("web"));
  if (!first.empty()) CHECK(is_told_and_left(base, volumes, "u2"));
  SUBCASE("it goes on") {
    CHECK(*volumes.remove({.id = "data", .path = "web/data", .uid = first}) == Removed::kRemoved);
    CHECK(base.content().empty());
  }
  SUBCASE("it is called off") {
    CHECK(*volumes.put_back("data", "web/data", first) == PutBack::kInPlace);
    CHECK(base.has("web/data/of-u1"));
    CHECK(*volumes.remove({.id = "data", .path = "web/data", .uid = first}) == Removed::kRemoved);
    CHECK(base.content().empty());
  }
}

TEST_CASE("what an earlier version has taken away, and noted no claim of, ends or is told") {
  Kernel kernel;
  for (const std::string uid : {"u1", "u2", ""}) {
    for (const bool has_data : {true, false}) {
      CAPTURE(uid);
      CAPTURE(has_data);
      const BaseFolder base;
      const auto volumes = base.volumes(kernel);
      const auto remove = [&] {
        return volumes.remove({.id = "data", .path = "web/data", .uid = uid});
      };
      const std::string gone = base.at(BaseFolder::record("gone.data"));
      begin_removal(base, volumes, "u1");
      forget_claim(base);
      if (!has_data) std::filesystem::rename(gone + "/volume", base.at("of-u1"));
      base.write("web/data/of the next");
      CHECK(is_told_and_left(base, volumes, uid));
      const auto refused = remove();
      REQUIRE_FALSE(refused.ok());
      const auto record = base.at(BaseFolder::record("volume.data.json"));
      CHECK(refused.error().message.find(record) != std::string::npos);
      if (has_data) {
        // Nothing else stands there any more: then it is its own.
        std::filesystem::remove_all(base.at("web"));
      } else {
        std::filesystem::remove_all(base.at("of-u1"));
        std::filesystem::remove_all(gone);  // by hand, as it says
      }
      CHECK(*remove() == Removed::kRemoved);
      CHECK(base.content().empty());
    }
  }
}

TEST_CASE("what is made while a removal rests is told to be in its way, and goes by hand") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  begin_removal(base, volumes, "u1");
  const auto made = volumes.make({.id = "data", .path = "web/data", .uid = "u2"});
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message.find(BaseFolder::record("gone.data")) != std::string::npos);
  base.write("web/data/of-u2");
  const auto refused = volumes.remove({.id = "data", .path = "web/data", .uid = "u2"});
  REQUIRE_FALSE(refused.ok());
  for (const char* name : {"gone.data", "volume.data.json"}) {
    const std::string path = base.at(BaseFolder::record(name));
    CHECK(refused.error().message.find(path) != std::string::npos);
    std::filesystem::remove_all(path);
  }
  CHECK(*volumes.remove({.id = "data", .path = "web/data", .uid = "u2"}) == Removed::kRemoved);
  CHECK(base.content().empty());
}

TEST_CASE("nobody is told to remove the record of a directory that is in its place") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "data", .path = "web/data", .uid = "u1"}).ok());
  base.write("web/data/of-u1");
  // Its removal had made no more than this.
  std::filesystem::create_directory(base.at(BaseFolder::record("gone.data")));
  const auto refused = volumes.remove({.id = "data", .path = "web/data", .uid = "u2"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("by hand") == std::string::npos);
  CHECK(base.has("web/data/of-u1"));
}

TEST_CASE("a removal of a directory without a record is finished after a crash anywhere") {
  const auto prepare = [](const BaseFolder& base) {
    Kernel kernel;
    REQUIRE(base.volumes(kernel).make({.id = "other", .path = "other", .uid = "u0"}).ok());
    base.write("web/data/file");
  };
  const auto remove_for = [](const Volumes& volumes, const std::string& uid) {
    return volumes.remove({.id = "data", .path = "web/data", .uid = uid});
  };
  const Work work = [&](const Volumes& volumes) { return remove_for(volumes, "u1").ok(); };
  crash_everywhere(prepare, work, [&](const BaseFolder& base, const Volumes& volumes) {
    CHECK(remove_for(volumes, "u1").ok());
    CHECK_FALSE(base.has("web"));
    CHECK(volumes.list()->volumes.size() == 1);
    CHECK_FALSE(base.has(BaseFolder::record("gone.data")));
  });
  // And what has left its place goes with no other one.
  int left = 0;
  crash_everywhere(prepare, work, [&](const BaseFolder& base, const Volumes& volumes) {
    const std::string file = BaseFolder::record("gone.data/volume/file");
    if (!base.has(file)) return;
    ++left;
    base.write("web/data/of the next");
    CHECK_FALSE(remove_for(volumes, "u2").ok());
    CHECK(base.has(file));
    CHECK(base.has("web/data/of the next"));
  });
  CHECK(left > 3);
}

TEST_CASE("a removal without a word for which claim is finished after a crash anywhere") {
  crash_everywhere(
      [](const BaseFolder& base) {
        Kernel kernel;
        REQUIRE(base.volumes(kernel).make({.id = "data", .path = "web/data", .uid = "u1"}).ok());
        base.write("web/data/file");
      },
      [](const Volumes& volumes) {
        return volumes.remove({.id = "data", .path = "web/data"}).ok();
      },
      [](const BaseFolder& base, const Volumes& volumes) {
        CHECK(volumes.remove({.id = "data", .path = "web/data"}).ok());
        CHECK(base.content().empty());
      });
}
