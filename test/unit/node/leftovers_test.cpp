// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace {

MakeRequest make_of(const std::string& id, const std::string& path) {
  return {
      .id = id, .path = path, .claim = "web/data", .uid = "u-1", .limits = BaseFolder::limits()};
}

nlohmann::json identity_of(const BaseFolder& base) {
  std::ifstream in(base.at(BaseFolder::record("identity.json")));
  return nlohmann::json::parse(in);
}

/// As a process leaves it that ends before the directory is in its place, or after it has left it.
void move(const BaseFolder& base, const std::string& from, const std::string& to) {
  std::filesystem::create_directories(std::filesystem::path(base.at(to)).parent_path());
  std::filesystem::rename(base.at(from), base.at(to));
}

}  // namespace

TEST_CASE("records belong to the first cluster that claims them, once there are some") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  CHECK(volumes.identities("c-1")->cluster == "");
  CHECK(base.content().empty());
  REQUIRE(volumes.make(make_of("a", "a")).ok());
  CHECK(volumes.identities("")->cluster == "");
  CHECK(volumes.identities("c-1")->cluster == "c-1");
  CHECK(volumes.identities("c-2")->cluster == "c-1");
  CHECK(volumes.identities("")->cluster == "c-1");
  CHECK(identity_of(base)["disk"] == *volumes.identity());
  CHECK(identity_of(base)["cluster"] == "c-1");
}

TEST_CASE("an identity of a version without clusters keeps all that stands in it") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_of("a", "a")).ok());
  const std::string file = BaseFolder::record("identity.json");
  base.write(file, R"({"version":1,"disk":"d-1","later":[1]})");
  CHECK_FALSE(volumes.identities("../c").ok());
  CHECK(volumes.identities("c-1")->cluster == "c-1");
  CHECK(identity_of(base) ==
        nlohmann::json{{"version", 1}, {"disk", "d-1"}, {"later", {1}}, {"cluster", "c-1"}});
  CHECK(*volumes.identity() == "d-1");
  base.write(file, R"({"version":1,"disk":"d-1","cluster":7})");
  CHECK_FALSE(volumes.identities("c-1").ok());
  CHECK_FALSE(volumes.identity().ok());
}

TEST_CASE("an inventory tells of directories without a record and of what was interrupted") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_of("a", "web/a")).ok());
  REQUIRE(volumes.make(make_of("b", "b")).ok());
  base.write("by hand/file");
  base.write("file");
  std::filesystem::create_directory(base.at("lost+found"));
  std::filesystem::create_symlink("/etc", base.at("link"));
  base.write(BaseFolder::record("new.c/file"));
  std::filesystem::remove(base.at(BaseFolder::record("new.c/file")));
  base.write(BaseFolder::record("gone.b/volume/file"));
  base.write(BaseFolder::record("work.b.k.json"));

  const auto inventory = volumes.inventory(*volumes.usage(), 10);
  REQUIRE(inventory.ok());
  CHECK(inventory->whole);
  REQUIRE(inventory->bare.size() == 1);
  CHECK(inventory->bare[0].path == "by hand");
  CHECK(inventory->bare[0].since > 1'700'000'000);
  CHECK(inventory->since.at("a") > 1'700'000'000);
  REQUIRE(inventory->leftovers.size() == 2);
  CHECK(inventory->leftovers[0].path == BaseFolder::record("new.c"));
  CHECK(inventory->leftovers[0].state == State::kMaking);
  CHECK_FALSE(inventory->leftovers[0].has_record);
  CHECK_FALSE(inventory->leftovers[0].has_work);
  CHECK(inventory->leftovers[1].state == State::kRemoving);
  CHECK(inventory->leftovers[1].has_record);
  CHECK(inventory->leftovers[1].has_work);

  for (int i = 0; i < 9; ++i) std::filesystem::create_directory(base.at(std::to_string(i)));
  CHECK(volumes.inventory(*volumes.usage(), 10)->bare.size() == 10);
  std::filesystem::create_directory(base.at("one more"));
  const auto cut = volumes.inventory(*volumes.usage(), 10);
  CHECK(cut->bare.size() <= 10);
  CHECK_FALSE(cut->whole);
}

TEST_CASE("an empty base folder has an empty inventory, and nothing is written into it") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto inventory = volumes.inventory(*volumes.usage(), 10);
  REQUIRE(inventory.ok());
  CHECK(inventory->bare.empty());
  CHECK(inventory->leftovers.empty());
  CHECK_FALSE(*volumes.sweep("a", {}));
  CHECK(base.content().empty());
}

TEST_CASE("what never came into its place is swept with its record, and nothing else") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_of("other", "web/other")).ok());
  base.write("web/other/data");
  REQUIRE(volumes.make(make_of("a", "web/a")).ok());
  move(base, "web/a", BaseFolder::record("new.a"));
  bool is_over = false;
  SUBCASE("ready, and recorded") {
    CHECK(*volumes.sweep("a", {}));
    CHECK_FALSE(base.has(BaseFolder::record("volume.a.json")));
  }
  SUBCASE("not recorded yet") {
    std::filesystem::remove(base.at(BaseFolder::record("volume.a.json")));
    CHECK(*volumes.sweep("a", {}));
  }
  SUBCASE("an agent has it on record") {
    base.write(BaseFolder::record("work.a.k.json"));
    CHECK_FALSE(*volumes.sweep("a", {}));
    CHECK(base.has(BaseFolder::record("new.a")));
    CHECK(base.has(BaseFolder::record("volume.a.json")));
    is_over = true;
  }
  SUBCASE("somebody has put something into it") {
    base.write(BaseFolder::record("new.a/data"));
    CHECK_FALSE(volumes.sweep("a", {}).ok());
    CHECK(base.has(BaseFolder::record("new.a/data")));
    CHECK(base.has(BaseFolder::record("volume.a.json")));
    is_over = true;
  }
  if (is_over) return;
  CHECK_FALSE(base.has(BaseFolder::record("new.a")));
  CHECK_FALSE(*volumes.sweep("a", {}));
  CHECK(base.has("web/other/data"));
  CHECK(volumes.list()->volumes.size() == 1);
}

TEST_CASE("the staged directory of a volume that is in its place goes alone") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_of("a", "a")).ok());
  base.write("a/data");
  std::filesystem::create_directory(base.at(BaseFolder::record("new.a")));
  CHECK(*volumes.sweep("a", {}));
  CHECK(base.has("a/data"));
  CHECK(base.has(BaseFolder::record("volume.a.json")));
  CHECK_FALSE(base.has(BaseFolder::record("new.a")));
}

TEST_CASE("a removal of which nothing is left is swept, and what it has left never is") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_of("a", "web/a")).ok());
  base.write("web/a/data");
  std::filesystem::create_directory(base.at(BaseFolder::record("gone.a")));
  SUBCASE("it has left its place, and may have been called off since") {
    move(base, "web/a", BaseFolder::record("gone.a/volume"));
    const auto inventory = volumes.inventory(*volumes.usage(), 10);
    REQUIRE(inventory->leftovers.size() == 1);
    CHECK(inventory->leftovers[0].has_data);
    CHECK_FALSE(*volumes.sweep("a", {}));
    CHECK(base.has(BaseFolder::record("gone.a/volume/data")));
    CHECK(base.has(BaseFolder::record("volume.a.json")));
  }
  SUBCASE("it is gone, and on record") {
    std::filesystem::remove_all(base.at("web/a"));
    CHECK_FALSE(volumes.inventory(*volumes.usage(), 10)->leftovers[0].has_data);
    CHECK(*volumes.sweep("a", {}));
    CHECK_FALSE(base.has(BaseFolder::record("gone.a")));
    CHECK_FALSE(base.has(BaseFolder::record("volume.a.json")));
    CHECK_FALSE(base.has("web"));
  }
  SUBCASE("it is in its place yet, and stays there") {
    CHECK_FALSE(*volumes.sweep("a", {}));
    CHECK_FALSE(base.has(BaseFolder::record("gone.a")));
    CHECK(base.has("web/a/data"));
    CHECK(base.has(BaseFolder::record("volume.a.json")));
  }
  SUBCASE("an agent has it on record") {
    move(base, "web/a", BaseFolder::record("gone.a/volume"));
    base.write(BaseFolder::record("work.a.k.json"));
    CHECK_FALSE(*volumes.sweep("a", {}));
    CHECK(base.has(BaseFolder::record("gone.a/volume/data")));
  }
  SUBCASE("somebody is at it") {
    move(base, "web/a", BaseFolder::record("gone.a/volume"));
    const UniqueFd folder(::open(base.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto records = RecordFolder::find(kernel, folder.get());
    const auto lock = (*records)->lock_volume("a");
    REQUIRE(lock.ok());
    const auto swept = volumes.sweep("a", {});
    REQUIRE_FALSE(swept.ok());
    CHECK(swept.error().is(ErrorCode::kConflict));
    CHECK(base.has(BaseFolder::record("gone.a/volume/data")));
  }
}

TEST_CASE("a file that is not there is gone on a disk that takes no changes, too") {
  class ReadOnly final : public Kernel {
    int before(const char* call) override {
      return std::string_view(call) == "unlinkat" ? EROFS : 0;
    }
  };
  const BaseFolder base;
  ReadOnly kernel;
  REQUIRE(base.volumes(kernel).make(make_request("a", "web/a")).ok());
  const UniqueFd folder(::open(base.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto records = RecordFolder::find(kernel, folder.get());
  CHECK((*records)->remove_file("work.b.k.json").ok());
  CHECK_FALSE((*records)->remove_file(RecordFolder::record_name("a")).ok());
  CHECK(base.has(BaseFolder::record("volume.a.json")));
}

TEST_CASE("a record whose directory is gone goes, and no other one") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_of("a", "web/a")).ok());
  REQUIRE(volumes.make(make_of("b", "web/b")).ok());
  const auto lost = [&] {
    std::set<std::string> ids;
    const auto inventory = volumes.inventory(*volumes.usage(), 10);
    for (const auto& one : inventory->leftovers) {
      CHECK(one.lost);
      CHECK(one.has_record);
      if (!one.has_work) ids.insert(one.id);
    }
    return ids;
  };
  CHECK(lost().empty());
  // As a script's teardown does.
  std::filesystem::remove_all(base.at("web/a"));
  bool is_over = false;
  SUBCASE("it is gone") {
    CHECK(lost() == std::set<std::string>{"a"});
    CHECK(volumes.inventory(*volumes.usage(), 10)->leftovers[0].path == "web/a");
    CHECK(*volumes.sweep("a", {}));
    CHECK_FALSE(base.has(BaseFolder::record("volume.a.json")));
    CHECK(lost().empty());
    CHECK_FALSE(*volumes.sweep("a", {}));
  }
  SUBCASE("it is gone, and what was around it is somebody's by now") {
    REQUIRE(volumes.remove({.id = "b"}).ok());
    std::filesystem::create_directory(base.at("web"));
    CHECK(*volumes.sweep("a", {}));
    CHECK(base.has("web"));
    is_over = true;
  }
  SUBCASE("an agent has it on record") {
    base.write(BaseFolder::record("work.a.k.json"));
    CHECK(lost().empty());
    CHECK_FALSE(*volumes.sweep("a", {}));
    CHECK(base.has(BaseFolder::record("volume.a.json")));
  }
  SUBCASE("there is a directory again") {
    base.write("web/a/data");
    CHECK(lost().empty());
    CHECK_FALSE(*volumes.sweep("a", {}));
    CHECK(base.has(BaseFolder::record("volume.a.json")));
  }
  SUBCASE("something else is in the way to it") {
    std::filesystem::remove_all(base.at("web"));
    std::filesystem::create_directory_symlink("/nowhere", base.at("web"));
    CHECK(lost().empty());
    CHECK_FALSE(volumes.sweep("a", {}).ok());
    CHECK(base.has(BaseFolder::record("volume.a.json")));
    is_over = true;
  }
  if (is_over) return;
  CHECK_FALSE(*volumes.sweep("b", {}));
  CHECK(base.has("web/b"));
  CHECK(base.has(BaseFolder::record("volume.b.json")));
}

TEST_CASE("a disk that is full tells what it has, and is given nothing") {
  const BaseFolder base;
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make(make_of("a", "a")).ok());
  FullKernel full;
  const auto none = base.volumes(full).identities("c-1");
  REQUIRE_MESSAGE(none.ok(), none.error().message);
  CHECK(none->disk.empty());
  CHECK(none->missing->is(ErrorCode::kUnfit));
  CHECK(base.volumes(full).identity().error().is(ErrorCode::kUnfit));
  const std::string disk = *base.volumes(kernel).identity();
  CHECK(base.volumes(full).identities("c-1")->disk == disk);
  CHECK(base.volumes(full).identities("c-1")->cluster.empty());
  CHECK(base.volumes(kernel).identities("c-1")->cluster == "c-1");
  CHECK(base.volumes(full).identities("c-1")->disk == disk);
}

TEST_CASE("disk and cluster are read at once, from one file") {
  class CountingKernel final : public Kernel {
   public:
    int calls = 0;

   protected:
    int before(const char* /*call*/) override { return ++calls, 0; }
  };
  const BaseFolder base;
  CountingKernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_of("a", "a")).ok());
  REQUIRE(volumes.identities("c-1").ok());
  const auto calls_of = [&](const auto& work) {
    kernel.calls = 0;
    REQUIRE(work().ok());
    return kernel.calls;
  };
  CHECK(calls_of([&] { return volumes.identities("c-1"); }) ==
        calls_of([&] { return volumes.identity(); }));
}
