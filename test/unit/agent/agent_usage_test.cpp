// SPDX-License-Identifier: Apache-2.0
// What volumes take up: from the agent's file system to the controller's board.

#include "agent_bed.h"
#include "agent_scene.h"

namespace lpp::agent {
namespace {

using operation::Usage;
using testing::BaseFolder;
using testing::eventually;

std::map<std::string, Usage> usages(const AgentScene& scene) {
  std::map<std::string, Usage> all;
  for (const auto& entry : scene.executor.usage()) all[entry.node + ":" + entry.path] = entry.usage;
  return all;
}

Use use(const std::string& path, std::int64_t bytes) {
  return {.path = path, .usage = Usage{.bytes = bytes, .limit_bytes = 100}};
}

void tell_everything(SceneAgent& agent, std::vector<Use> uses) {
  REQUIRE(agent.tell(Tell{.everything = true, .uses = std::move(uses)}).ok());
  agent.poll();
}

TEST_CASE("the usage of volumes is known as their node's agent tells it") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  tell_everything(agent, {use("/opt/local/a", 1), use("/opt/local/b", 2)});
  CHECK(usages(scene).size() == 2);
  CHECK(agent.tell(Tell{.uses = {use("/opt/local/a", 50), {.path = "/opt/local/b"}}}).ok());
  REQUIRE(usages(scene).size() == 1);
  CHECK(usages(scene)["node-1:/opt/local/a"] == *use("", 50).usage);
}

TEST_CASE("usage outside of the node's base paths is nobody's") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  tell_everything(agent, {use("/opt/local", 1), use("/opt/locals/a", 1), use("/", 1), use("x", 1),
                          use("/opt/local/a", 1)});
  CHECK(usages(scene).size() == 1);
  // Of another node it cannot speak: the path counts on its own.
  scene.base_paths["node-2"] = {"/other"};
  SceneAgent other(scene, "node-2");
  other.hello();
  tell_everything(other, {use("/opt/local/a", 99), use("/other/a", 3)});
  CHECK(usages(scene)["node-1:/opt/local/a"].bytes == 1);
  CHECK(usages(scene).size() == 2);
  CHECK(agent.tell(Tell{.uses = {{.path = "/other/a"}}}).ok());
  CHECK(usages(scene).size() == 2);
}

TEST_CASE("a new session of an agent leaves nothing of what the former one has told") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  tell_everything(agent, {use("/opt/local/a", 1), use("/opt/local/b", 2)});
  agent.hello();
  CHECK(usages(scene).size() == 2);  // until it is known better
  CHECK(agent.tell(Tell{.everything = true, .last = false, .uses = {use("/opt/local/b", 3)}}).ok());
  tell_everything(agent, {use("/opt/local/c", 4)});
  const auto now = usages(scene);
  CHECK(now.size() == 2);
  CHECK(now.at("node-1:/opt/local/b").bytes == 3);
  CHECK(now.contains("node-1:/opt/local/c"));
  // An agent of an older version tells nothing of the sort.
  agent.hello();
  tell_everything(agent, {});
  CHECK(usages(scene).empty());
}

TEST_CASE("of a node whose agent stays away nothing is known, and again when it is back") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  tell_everything(agent, {use("/opt/local/a", 1)});
  agent.hang_up();
  scene.pass(seconds(5));
  CHECK(usages(scene).size() == 1);
  scene.pass(seconds(10));
  CHECK(usages(scene).empty());
  agent.poll();  // in the session that it had: nothing of it is told again
  CHECK(usages(scene).size() == 1);
  agent.hang_up();
  scene.pass(std::chrono::minutes(11));
  agent.hello();
  CHECK(usages(scene).empty());
}

TEST_CASE("who leads no more knows of no usage") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  tell_everything(agent, {use("/opt/local/a", 1)});
  scene.executor.end({});
  scene.begin();
  agent.hello();
  CHECK(usages(scene).empty());
}

/// Hears the usage that an agent tells.
struct UsageListener {
  Agent& agent;
  testing::FakeClock& clock;
  std::map<std::string, Usage> known{};
  std::size_t heard = 0;
  std::int64_t volumes = 0;  // on record

  void hear() {
    while (const auto tell = agent.next_tell()) {
      if (tell->bases) volumes = tell->bases->at(0).volumes;
      for (const Use& one : tell->uses) {
        ++heard;
        if (one.usage) {
          known[one.path] = *one.usage;
        } else {
          known.erase(one.path);
        }
      }
      agent.told({}, clock.now());
    }
  }
  /// A minute passes: whether it makes that true, some minutes later at the latest.
  template <typename Condition>
  bool after_a_look(Condition condition) {
    const auto so_it_is = [&] {
      ::sync();  // btrfs counts when it commits
      hear();
      return condition();
    };
    return testing::as_time_passes(clock, seconds(61), so_it_is, testing::kAgentsPace);
  }
};

/// An agent at work in a base folder whose volumes "pvc-1" and "free" have been made.
struct MeasuringAgent {
  explicit MeasuringAgent(bool tells = true) : agent(kernel, clock, {.tells_usage = tells}) {
    const auto volumes = base.volumes(kernel);
    REQUIRE(volumes.make(testing::make_request("pvc-1", "web/pvc-1")).ok());
    REQUIRE(volumes.make({.id = "free", .path = "free"}).ok());
    agent.open_bases({base.path()});
    agent.start();
    agent.begin_session();
    listener.hear();
  }
  const BaseFolder base;
  node::Kernel kernel;
  testing::FakeClock clock;
  Agent agent;
  UsageListener listener{agent, clock};
};

TEST_CASE("an agent tells nothing of volumes without a limit" * testing::NeedsNoLimits()) {
  MeasuringAgent one;
  // Also where the number of its volumes shows that the base path was looked at again.
  REQUIRE(one.base.volumes(one.kernel).make({.id = "late", .path = "late"}).ok());
  CHECK(one.listener.after_a_look([&] { return one.listener.volumes == 3; }));
  CHECK(one.listener.heard == 0);
}

TEST_CASE("an agent tells what volumes with a limit take up, and nothing of others" *
          testing::NeedsLimits()) {
  MeasuringAgent one;
  const std::string path = one.base.at("web/pvc-1");
  auto& known = one.listener.known;
  REQUIRE(known.size() == 1);
  REQUIRE(known.contains(path));
  CHECK(known[path].limit_bytes == static_cast<std::int64_t>(8 * testing::kMiB));
  CHECK(known[path].bytes < static_cast<std::int64_t>(testing::kMiB));
  CHECK(known[path].inodes.has_value() == BaseFolder::has_projects());
  CHECK(testing::fill(path + "/data", 4 * testing::kMiB).error == 0);
  CHECK(one.listener.after_a_look(
      [&] { return known[path].bytes >= static_cast<std::int64_t>(4 * testing::kMiB); }));

  // Nothing more while nothing changes, and everything to a new session.
  const auto before = one.listener.heard;
  CHECK(one.listener.after_a_look([&] { return true; }));
  CHECK(one.listener.heard == before);
  known.clear();
  one.agent.begin_session();
  one.listener.hear();
  CHECK(known.size() == 1);

  REQUIRE(one.base.volumes(one.kernel).remove({.id = "pvc-1"}).ok());
  CHECK(one.listener.after_a_look([&] { return known.empty(); }));
}

TEST_CASE("an agent that is to tell no usage tells none") {
  MeasuringAgent one(false);
  one.agent.begin_session();
  one.listener.hear();
  CHECK(one.listener.heard == 0);
}

}  // namespace
}  // namespace lpp::agent
