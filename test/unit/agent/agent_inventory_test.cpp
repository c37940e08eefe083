// SPDX-License-Identifier: Apache-2.0
// What an agent tells of the directories in its base paths, leaves to other clusters, and sweeps.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/work.h"
#include "agent_bed.h"
#include "harness/must.h"

using namespace lpp;
using namespace lpp::agent;
using namespace lpp::testing;
using operation::Directory;
using operation::Kind;
using State = operation::Progress::State;

namespace {

std::string cluster_of(const BaseFolder& base) {
  std::ifstream in(base.at(BaseFolder::record("identity.json")));
  return nlohmann::json::parse(in).value("cluster", "");
}

/// As the agent's clock sees it.
void make_old(const RunningAgent& running, const BaseFolder& base, const std::string& name,
              Duration age) {
  const timespec at{.tv_sec = std::chrono::system_clock::to_time_t(
                        running.clock.wall_now() -
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(age)),
                    .tv_nsec = 0};
  const std::array<timespec, 2> times{at, at};
  REQUIRE(::utimensat(AT_FDCWD, base.at(name).c_str(), times.data(), 0) == 0);
}

const Listed* find(const RunningAgent& running, const std::string& path) {
  const auto& all = running.listener.inventory;
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const Listed& one) { return one.path == path; });
  return it == all.end() ? nullptr : &*it;
}

void look(RunningAgent& running, const BaseFolder& base, const std::string& cluster) {
  running.agent.open_bases({base.path()}, cluster);
  running.listener.hear();
}

}  // namespace

TEST_CASE("an agent tells of volumes and of directories without a record") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel, "c-1");
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  CHECK(cluster_of(base) == "c-1");
  base.write("by hand/file");
  // What is heard first may be of a look before.
  REQUIRE(eventually([&] {
    look(running, base, "c-1");
    return find(running, base.at("by hand")) != nullptr;
  }));
  const Listed* const volume = find(running, base.at("web/pvc-1"));
  REQUIRE(volume != nullptr);
  CHECK(volume->claim == "web/data");
  CHECK(volume->uid == "u-1");
  CHECK(volume->size == 1 << 20);
  CHECK(volume->cluster.empty());
  CHECK(volume->since > 0);
  CHECK(find(running, base.at("by hand"))->id.empty());
  CHECK(running.listener.inventory.size() == 2);
}

TEST_CASE("what another cluster has begun on a disk is neither told nor touched") {
  const BaseFolder base;
  node::Kernel kernel;
  const auto their_make = operation_of(base, Kind::kMake, "theirs");
  const auto their_removal = operation_of(base, Kind::kRemove, "going");
  {
    RunningAgent theirs(base, kernel, "c-1");
    REQUIRE(theirs.run(their_make).state == State::kSucceeded);
    REQUIRE(theirs.run(operation_of(base, Kind::kMake, "going")).state == State::kSucceeded);
  }
  base.write("web/theirs/data");
  // It has begun, and its agent was killed.
  const auto volumes = base.volumes(kernel);
  std::filesystem::create_directory(base.at(BaseFolder::record("gone.web_going")));
  REQUIRE(WorkBook::open(kernel, volumes)
              ->put({their_removal, {.state = State::kRunning}, "c-1"})
              .ok());
  std::ofstream(base.at(BaseFolder::record("work-write.x"))) << "half of";
  const auto before = base.content();

  const auto ours = operation_of(base, Kind::kMake, "ours");
  {
    RunningAgent running(base, kernel, "c-2", {.sweep_after = std::chrono::seconds(1)});
    CHECK(running.listener.works() == 0);
    REQUIRE(running.listener.bases().size() == 1);
    CHECK(running.listener.bases()[0].cluster == "c-1");
    REQUIRE(find(running, base.at("web/theirs")) != nullptr);
    CHECK(find(running, base.at("web/theirs"))->cluster == "c-1");
    for (const auto& [key, name] : {std::pair("new", "new.web_x"), std::pair("gone", "gone.y")}) {
      std::filesystem::create_directory(base.at(BaseFolder::record(name)));
      make_old(running, base, BaseFolder::record(name), std::chrono::hours(9));
    }
    look(running, base, "c-2");
    CHECK(running.listener.asked_to_sweep.empty());
    CHECK(base.has(BaseFolder::record("new.web_x")));
    CHECK(base.has(BaseFolder::record("gone.y")));
    std::filesystem::remove(base.at(BaseFolder::record("new.web_x")));
    std::filesystem::remove(base.at(BaseFolder::record("gone.y")));
    CHECK(base.content() == before);
    CHECK(cluster_of(base) == "c-1");
    // By a path pattern the claim of that name would get what is theirs, and take it along.
    auto same_place = their_make;
    same_place.owner_uid = "uid-of-another-claim";
    const auto refused = running.run(same_place);
    CHECK(refused.state == State::kFailed);
    CHECK(refused.message.find("adopt --node") != std::string::npos);
    CHECK(refused.message.find("cluster, c-1") != std::string::npos);
    CHECK(refused.directory == Directory::kAbsent);
    CHECK(base.has("web/theirs/data"));
    running.agent.take(forget(same_place));
    CHECK(eventually([&] { return running.agent.view().on_record == 0; }));
    // New volumes are made there all the same.
    REQUIRE(running.run(ours).state == State::kSucceeded);
  }
  // After a restart its own works are known, and no others.
  RunningAgent again(base, kernel, "c-2");
  CHECK(again.listener.works() == 1);
  CHECK(again.listener.progress(ours).has_value());
  CHECK(base.has("web/theirs/data"));
  // The cluster itself finds what it has begun.
  RunningAgent back(base, kernel, "c-1");
  CHECK(back.listener.progress(their_removal)->state == State::kRunning);
  CHECK(back.listener.progress(their_make)->over());
  CHECK_FALSE(back.listener.progress(ours).has_value());
}

TEST_CASE("the command that is told for another cluster's directory holds its path as one word") {
  const BaseFolder base;
  node::Kernel kernel;
  auto make = operation_of(base, Kind::kMake, "a;b c");
  REQUIRE(RunningAgent(base, kernel, "c-1").run(make).state == State::kSucceeded);
  make.owner_uid = "uid-of-another-claim";
  const auto refused = RunningAgent(base, kernel, "c-2").run(make);
  CHECK(refused.message.find(" --path '" + make.path + "' --claim web/data") != std::string::npos);
}

TEST_CASE("what was read before the cluster was known is judged again before anything is told") {
  const BaseFolder base;
  node::Kernel kernel;
  const auto make = operation_of(base, Kind::kMake, "made");
  auto removal = operation_of(base, Kind::kRemove, "going");
  removal.claim_uid = "u-1";
  const auto earlier = operation_of(base, Kind::kMake, "by an earlier version");
  {
    RunningAgent theirs(base, kernel, "c-1");
    REQUIRE(theirs.run(make).state == State::kSucceeded);
    REQUIRE(theirs.run(operation_of(base, Kind::kMake, "going")).state == State::kSucceeded);
    theirs.agent.take(forget(operation_of(base, Kind::kMake, "going")));
    REQUIRE(eventually([&] { return work_files(base).size() == 1; }));
  }
  const auto book = WorkBook::open(kernel, base.volumes(kernel));
  const std::string gone = BaseFolder::record("gone." + node::id_of_path("web/going"));
  std::filesystem::create_directory(base.at(gone));
  std::filesystem::rename(base.at("web/going"), base.at(gone + "/volume"));
  REQUIRE(book->put({removal, {.state = State::kRunning}, "c-1"}).ok());
  REQUIRE(book->put({earlier, {.state = State::kRunning}, ""}).ok());
  const auto before = base.content();

  RunningAgent running(base, kernel, "", {.sweep_after = std::chrono::seconds(1)});
  CHECK(running.listener.works() == 3);
  const auto check_heard_and_put_back = [&] {
    running.listener.begin_session();
    CHECK(running.listener.works() == 3);
    running.agent.take({.what = Order::What::kCancel, .operation = removal, .id = removal.id()});
    CHECK(running.listener.has_ended(removal));
    CHECK(base.has("web/going"));
  };
  SUBCASE("it is another one") {
    running.agent.open_bases({base.path()}, "c-2");
    running.listener.begin_session();
    CHECK(running.listener.works() == 0);
    CHECK(running.listener.bases()[0].cluster == "c-1");
    // A controller that has heard of them calls the removal off: nothing of it is put back.
    running.agent.take({.what = Order::What::kCancel, .operation = removal, .id = removal.id()});
    CHECK(running.listener.has_ended(removal));
    for (const auto& operation : {make, earlier}) running.agent.take(cancel(operation));
    CHECK(running.listener.has_ended(earlier));
    running.clock.advance(std::chrono::hours(9));
    look(running, base, "c-2");
    CHECK(running.listener.works() == 0);
    CHECK(running.listener.asked_to_sweep.empty());
    CHECK(base.content() == before);
  }
  SUBCASE("it seems to be another one, and is the one that has begun it") {
    running.agent.open_bases({base.path()}, "c-2");
    running.agent.open_bases({base.path()}, "c-1");
    check_heard_and_put_back();
  }
  SUBCASE("it is another one, and gets the disk") {
    running.agent.open_bases({base.path()}, "c-2");
    running.listener.begin_session();
    CHECK(running.listener.works() == 0);
    const std::string disk = LPP_MUST(base.volumes(kernel).identity());
    base.write(BaseFolder::record("identity.json"),
               R"({"disk":")" + disk + R"(","cluster":"c-2"})");
    look(running, base, "c-2");
    CHECK(running.listener.works() == 1);
    CHECK(running.listener.progress(earlier).has_value());
  }
  SUBCASE("it is the one that has begun it") {
    running.agent.open_bases({base.path()}, "c-1");
    check_heard_and_put_back();
  }
  SUBCASE("what goes on in the meantime stays theirs") {
    REQUIRE(running.run(removal).state == State::kSucceeded);
    RunningAgent ours(base, kernel, "c-2");
    CHECK_FALSE(ours.listener.progress(removal).has_value());
    base.write(BaseFolder::record("identity.json"), R"({"disk":"d-1","cluster":"c-2"})");
    RunningAgent given(base, kernel, "c-2");
    CHECK_FALSE(given.listener.progress(removal).has_value());
    CHECK(given.listener.progress(earlier).has_value());
  }
  SUBCASE("an agent that knows from the beginning calls nothing of theirs off") {
    RunningAgent ours(base, kernel, "c-2");
    ours.agent.take({.what = Order::What::kCancel, .operation = removal, .id = removal.id()});
    CHECK(ours.listener.has_ended(removal));
    CHECK(base.content() == before);
  }
}

TEST_CASE("without word of the cluster everything works, and nothing is swept") {
  const BaseFolder base;
  node::Kernel kernel;
  const auto make = operation_of(base, Kind::kMake);
  {
    RunningAgent running(base, kernel, "c-1");
    REQUIRE(running.run(make).state == State::kSucceeded);
  }
  RunningAgent unknowing(base, kernel, "", {.sweep_after = std::chrono::seconds(1)});
  CHECK(unknowing.listener.progress(make)->over());
  CHECK(unknowing.listener.bases()[0].cluster.empty());
  std::filesystem::create_directory(base.at(BaseFolder::record("new.x")));
  make_old(unknowing, base, BaseFolder::record("new.x"), std::chrono::hours(9));
  look(unknowing, base, "");
  CHECK(unknowing.listener.asked_to_sweep.empty());
  CHECK(base.has(BaseFolder::record("new.x")));
  // A later controller knows; one of an earlier version says nothing, and changes nothing.
  look(unknowing, base, "c-1");
  CHECK(unknowing.listener.asked_to_sweep.size() == 1);
  look(unknowing, base, "");
  CHECK(unknowing.listener.bases()[0].cluster.empty());
}

TEST_CASE("what was interrupted goes after a while, if the controller says that nobody needs it") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel, "c-1");
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  base.write("web/pvc-1/data");
  const std::string made = BaseFolder::record("new.x");
  const std::string gone = BaseFolder::record("gone.y");
  // What a removal has left may have been called off: it is not even asked about.
  const std::string left = BaseFolder::record("gone.z");
  std::filesystem::create_directory(base.at(made));
  std::filesystem::create_directory(base.at(gone));
  base.write(left + "/volume/data");
  const auto age = [&](Duration by) {
    make_old(running, base, made, by);
    make_old(running, base, gone, by);
    make_old(running, base, left, by);
    look(running, base, "c-1");
  };
  age(std::chrono::minutes(59));
  CHECK(running.listener.asked_to_sweep.empty());
  SUBCASE("it is nobody's") {
    age(std::chrono::minutes(61));
    CHECK(running.listener.asked_to_sweep ==
          std::vector<std::string>{base.at(made), base.at(gone)});
    CHECK(eventually([&] { return !base.has(made) && !base.has(gone); }));
  }
  SUBCASE("since when it is there nobody can tell") {
    age(running.clock.wall_now().time_since_epoch());
    CHECK(running.listener.asked_to_sweep.empty());
  }
  SUBCASE("it is somebody's, and is asked about again after ten minutes") {
    running.listener.lets_sweep = false;
    age(std::chrono::minutes(61));
    look(running, base, "c-1");
    CHECK(running.listener.asked_to_sweep.size() == 2);
    running.clock.advance(std::chrono::minutes(11));
    look(running, base, "c-1");
    CHECK(running.listener.asked_to_sweep.size() == 4);
    CHECK(base.has(made));
    CHECK(base.has(gone));
  }
  SUBCASE("the answer is old when it comes") {
    running.listener.answer_takes = std::chrono::seconds(6);
    age(std::chrono::minutes(61));
    CHECK(running.listener.asked_to_sweep.size() == 2);
    running.listener.answer_takes = Duration::zero();
    CHECK(eventually([&] {
      look(running, base, "c-1");
      return !base.has(made) && !base.has(gone);
    }));
    CHECK(running.listener.asked_to_sweep.size() >= 4);
  }
  SUBCASE("another disk is there when the answer comes") {
    make_old(running, base, made, std::chrono::hours(2));
    make_old(running, base, gone, std::chrono::hours(2));
    running.agent.open_bases({base.path()}, "c-1");
    base.write(BaseFolder::record("identity.json"), R"({"disk":"d-2","cluster":"c-2"})");
    running.listener.hear();
    CHECK(running.listener.asked_to_sweep.size() == 2);
    // The order that comes after it has been served by then.
    REQUIRE(running.run(operation_of(base, Kind::kMake, "pvc-2")).over());
    CHECK(base.has(made));
    CHECK(base.has(gone));
  }
  CHECK(base.has("web/pvc-1/data"));
  CHECK(base.has(left + "/volume/data"));
}

TEST_CASE("however many are to stay, those after them are asked about, too") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel, "c-1");
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  std::vector<std::string> names;
  std::vector<std::string> all;
  for (int i = 0; i < 250; ++i) {
    names.push_back(BaseFolder::record("new.x" + std::to_string(1000 + i)));
    all.push_back(base.at(names.back()));
    std::filesystem::create_directory(all.back());
    make_old(running, base, names.back(), std::chrono::hours(9));
    if (i < 100) running.listener.needed.insert(all.back());
  }
  // A page with each look, and in the end nothing until it is time again.
  for (const std::size_t asked : {100U, 200U, 250U, 250U}) {
    look(running, base, "c-1");
    CHECK(running.listener.asked_to_sweep.size() == asked);
  }
  auto asked = running.listener.asked_to_sweep;
  std::sort(asked.begin(), asked.end());
  CHECK(asked == all);
  CHECK(eventually([&] {
    return std::none_of(names.begin() + 100, names.end(),
                        [&](const auto& name) { return base.has(name); });
  }));
  running.clock.advance(std::chrono::minutes(11));
  look(running, base, "c-1");
  look(running, base, "c-1");
  CHECK(running.listener.asked_to_sweep.size() == 350);
  CHECK(std::all_of(names.begin(), names.begin() + 100,
                    [&](const auto& name) { return base.has(name); }));
  // Another controller is asked about all of them.
  running.clock.advance(std::chrono::seconds(1));
  running.agent.open_bases({base.path()}, "c-1");
  running.listener.begin_session();
  look(running, base, "c-1");
  look(running, base, "c-1");
  CHECK(running.listener.asked_to_sweep.size() == 450);
}

TEST_CASE("nothing is swept where that is switched off") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel, "c-1", {.sweep_after = Duration::zero()});
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  std::filesystem::create_directory(base.at(BaseFolder::record("new.x")));
  make_old(running, base, BaseFolder::record("new.x"), std::chrono::hours(9));
  look(running, base, "c-1");
  CHECK(running.listener.asked_to_sweep.empty());
  CHECK(base.has(BaseFolder::record("new.x")));
}

TEST_CASE("how much volumes hold is not told where that is switched off") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel, "c-1", {.tells_usage = false});
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  look(running, base, "c-1");
  REQUIRE(running.listener.inventory.size() == 1);
  CHECK_FALSE(running.listener.inventory[0].used.has_value());
}

TEST_CASE("a record whose directory is gone is not listed, and goes when nobody needs it") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel, "c-1");
  for (const char* const name : {"lost", "there"}) {
    const auto make = operation_of(base, Kind::kMake, name);
    REQUIRE(running.run(make).state == State::kSucceeded);
    running.agent.take(forget(make));
  }
  REQUIRE(eventually([&] { return work_files(base).empty(); }));
  const auto record = [](const std::string& name) {
    return BaseFolder::record("volume." + node::id_of_path("web/" + name) + ".json");
  };
  make_old(running, base, record("lost"), std::chrono::hours(99));
  make_old(running, base, record("there"), std::chrono::hours(99));
  look(running, base, "c-1");
  CHECK(find(running, base.at("web/lost")) != nullptr);
  std::filesystem::remove_all(base.at("web/lost"));
  look(running, base, "c-1");
  CHECK(find(running, base.at("web/lost")) == nullptr);
  CHECK(find(running, base.at("web/there")) != nullptr);
  running.clock.advance(std::chrono::minutes(59));
  look(running, base, "c-1");
  CHECK(running.listener.asked_to_sweep.empty());
  const auto wait = [&] {
    running.clock.advance(std::chrono::minutes(2));
    look(running, base, "c-1");
    return running.listener.asked_to_sweep;
  };
  const std::vector<std::string> asked{base.at("web/lost")};
  // The order that comes after it has been served by then.
  const auto serve = [&] {
    REQUIRE(running.run(operation_of(base, Kind::kMake, "another")).over());
  };
  bool is_over = false;
  SUBCASE("nobody needs it") {
    CHECK(wait() == asked);
    CHECK(eventually([&] { return !base.has(record("lost")); }));
    CHECK(base.has(record("there")));
    is_over = true;
  }
  SUBCASE("its volume is there") {
    running.listener.lets_sweep = false;
    CHECK(wait() == asked);
    serve();
  }
  SUBCASE("another disk is there when the answer comes") {
    running.listener.before_sweep = [&] {
      base.write(BaseFolder::record("identity.json"), R"({"disk":"d-2","cluster":"c-1"})");
    };
    CHECK(wait() == asked);
    serve();
  }
  SUBCASE("the disk is another one by then: its hour begins anew") {
    base.write(BaseFolder::record("identity.json"), R"({"disk":"d-2","cluster":"c-1"})");
    CHECK(wait().empty());
    serve();
  }
  SUBCASE("its directory is there again") {
    std::filesystem::create_directories(base.at("web/lost"));
    CHECK(wait().empty());
    std::filesystem::remove(base.at("web/lost"));
    look(running, base, "c-1");
    CHECK(wait().empty());  // for less than an hour
  }
  SUBCASE("the base path is not there") {
    std::filesystem::rename(base.path(), base.path() + "-away");
    CHECK(wait().empty());
    std::filesystem::rename(base.path() + "-away", base.path());
  }
  if (is_over) return;
  CHECK(base.has(record("lost")));
}
