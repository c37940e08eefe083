// SPDX-License-Identifier: Apache-2.0
#include "agent/mixed_executor.h"

#include "agent_scene.h"

namespace lpp::agent {
namespace {

/// Keeps what it is given.
class OtherExecutor final : public Executor {
 public:
  void begin(operation::Owner owner) override { owner_ = std::move(owner); }
  void end(Duration /*limit*/) override { owner_.reset(); }
  std::vector<operation::Recorded> recorded(std::string_view volume_name) override {
    std::vector<operation::Recorded> all;
    for (const auto& [operation, progress] : records) {
      if (operation.volume_name != volume_name) continue;
      all.push_back({std::make_shared<const Operation>(operation), progress});
    }
    return all;
  }
  operation::Admission admit(const Operation& /*operation*/) override {
    return operation::Admission([] {});
  }
  Result<Start> start(const Operation& operation) override {
    records.emplace_back(operation, Progress{});
    return Start::kRecorded;
  }
  Result<void> cancel(const operation::Id& id) override { return drop(id); }
  Result<bool> forget(const operation::Id& id, When /*when*/) override {
    (void)drop(id);
    return true;
  }
  Progress lost(const Operation& /*operation*/) const override { return {.reason = "Other"}; }
  Result<bool> can_resize(const Operation& /*operation*/) override { return false; }
  void node_changed(std::string_view node) override { changed.emplace_back(node); }

  std::vector<std::pair<Operation, Progress>> records;
  std::vector<std::string> changed;

 private:
  Result<void> drop(const operation::Id& id) {
    std::erase_if(records, [&](const auto& item) { return item.first.id() == id; });
    return {};
  }
  std::optional<operation::Owner> owner_;
};

struct MixedScene : AgentScene {
  MixedScene() {
    mixed.begin({.wake = [this](const Operation& one) { woken.push_back(one.volume_name); },
                 .is_quiet = [this] { return quiet; }});
  }
  bool admit(const Operation& operation) { return static_cast<bool>(mixed.admit(operation)); }
  /// Who does it: "agent", "other", or why nobody.
  std::string begin(const Operation& operation) {
    const auto started = mixed.start(operation);
    if (!started.ok()) return started.error().message;
    CHECK(*started == Start::kRecorded);
    CHECK(mixed.recorded(operation.volume_name).size() == 1);
    return executor.recorded(operation.volume_name).empty() ? "other" : "agent";
  }

  OtherExecutor other;
  MixedExecutor mixed{executor, other};
};

TEST_CASE("an agent works where it is, and the other executor everywhere else") {
  MixedScene scene;
  SceneAgent agent(scene);
  agent.connect();
  Operation make = make_of();
  std::string by = "other";
  SUBCASE("there is an agent") { by = "agent"; }
  SUBCASE("which does not see the base path") { make.base_path = "/elsewhere"; }
  SUBCASE("there is none") {
    make.node = "node-2";
    scene.pods.erase("node-2");
    scene.pass(seconds(10));
  }
  SUBCASE("on a shared file system") { make.shared = true; }
  SUBCASE("on no node") { make.node.clear(); }
  CHECK(scene.admit(make));
  CHECK(scene.begin(make) == by);
  CHECK(scene.mixed.can_resize(make).value() == (by == "agent"));
  CHECK(scene.mixed.lost(make).reason == (by == "agent" ? "RecordRemoved" : "Other"));
}

TEST_CASE(
    "what needs a certain disk is left to nobody who compares none, where the agent is in doubt") {
  MixedScene scene;
  SceneAgent agent(scene);
  agent.hello();
  REQUIRE(agent
              .tell(Tell{.everything = true,
                         .bases = std::vector{Base{.path = "/opt/local", .problem = "EIO"}}})
              .ok());
  agent.poll();
  Operation removal = removal_of();
  CHECK(scene.begin(make_of("pvc-2")) == "other");  // no volume names a disk
  SUBCASE("a volume on a disk is removed") {
    removal.disk = "disk-1";
    CHECK(scene.begin(removal).find("EIO") != std::string::npos);
  }
  SUBCASE("a volume of helper pods is removed") { CHECK(scene.begin(removal) == "other"); }
  SUBCASE("a volume is made beside others on a disk") {
    scene.disks_named = {"disk-1"};
    CHECK(scene.begin(make_of()).find("disk-1") != std::string::npos);
    agent.hang_up();
    scene.pods.clear();
    scene.pass(seconds(10));
    CHECK(scene.begin(make_of()).find("just gone") != std::string::npos);
    scene.pass(seconds(10));
    CHECK(scene.begin(make_of()) == "other");  // agents are not used any more
    CHECK(scene.other.records.back().first.disk == "disk-1");
  }
  SUBCASE("its base path is not one of the agent's any more") {
    removal.disk = "disk-1";
    removal.base_path = "/former";
    CHECK(scene.begin(removal) == "other");
  }
}

TEST_CASE("nothing is made beside an agent on a path whose disk it saw and sees no more") {
  MixedScene scene;
  SceneAgent agent(scene);
  const auto sees = [&](const Base& base) {
    REQUIRE(agent.tell(Tell{.everything = true, .bases = std::vector{base}}).ok());
    agent.poll();
  };
  agent.hello();
  sees({.path = "/opt/local", .identity = "disk-1"});
  sees({.path = "/opt/local", .problem = "it is not there"});
  CHECK(scene.disks_named.empty());  // of no volume, or of none that is known yet
  CHECK(scene.begin(make_of()).find("disk disk-1 belongs to /opt/local") != std::string::npos);
  SUBCASE("whatever becomes of its sessions") {
    agent.hang_up();
    agent.hello();
    sees({.path = "/opt/local", .problem = "it is not there"});
    CHECK(scene.begin(make_of()).find("disk-1") != std::string::npos);
  }
  SUBCASE("whoever leads, for its agent tells what it has seen") {
    agent.hang_up();
    agent.identity.pod = "of which nobody here has heard";
    agent.hello();
    sees({.path = "/opt/local", .problem = "it is not there", .seen = "disk-1"});
    CHECK(scene.begin(make_of()).find("disk-1") != std::string::npos);
    // Claims go elsewhere, and are told why.
    CHECK(scene.executor.why_unfit("node-1", "/opt/local").find("disk-1") != std::string::npos);
  }
  SUBCASE("until it is there again") {
    sees({.path = "/opt/local", .identity = "disk-1"});
    CHECK(scene.begin(make_of()) == "agent");
  }
  SUBCASE("until another pod of the agent is there, which is meant not to see it") {
    agent.hang_up();
    agent.identity.pod = "agent-of-tomorrow";
    agent.hello();
    sees({.path = "/opt/local", .problem = "it is not there"});
    CHECK(scene.begin(make_of()) == "other");
  }
}

TEST_CASE("a disk that only the first make on it has told of is one that the agent saw") {
  MixedScene scene;
  SceneAgent agent(scene);
  agent.connect();  // it has no identity yet
  const Operation first = make_of("pvc-2");
  CHECK(scene.begin(first) == "agent");
  Work done = work_of(first, State::kSucceeded);
  done.progress.disk = "disk-1";
  REQUIRE(agent.tell(Tell{.works = {done}}).ok());
  REQUIRE(agent
              .tell(Tell{.bases =
                             std::vector{Base{.path = "/opt/local", .problem = "it is not there"}}})
              .ok());
  CHECK(scene.begin(make_of()).find("disk disk-1 belongs to /opt/local") != std::string::npos);
}

TEST_CASE("whoever makes a directory without an agent is told the disk that volumes there name") {
  MixedScene scene;
  scene.pods.erase("node-2");
  scene.pass(seconds(10));
  Operation make = make_of();
  make.node = "node-2";
  std::string disk;
  SUBCASE("none does") {}
  SUBCASE("all name one") { scene.disks_named = {disk = "disk-1"}; }
  SUBCASE("they name several: any may be there") {
    scene.disks_named = {"disk-1", "disk-2"};
    disk = "disk-1 disk-2";
  }
  SUBCASE("on a shared file system") {
    make.shared = true;
    scene.disks_named = {"disk-1"};
  }
  CHECK(scene.begin(make) == "other");
  CHECK(scene.other.records.back().first.disk == disk);
  Operation removal = removal_of("pvc-2");
  removal.node = "node-2";
  removal.disk = "of the volume";
  CHECK(scene.begin(removal) == "other");
  CHECK(scene.other.records.back().first.disk == "of the volume");
}

TEST_CASE("nothing begins on a node whose agent is expected, and who waits is woken") {
  MixedScene scene;
  SceneAgent agent(scene);
  CHECK_FALSE(scene.admit(make_of()));
  CHECK_FALSE(scene.admit(make_of()));
  CHECK(scene.begin(make_of()).find("expected") != std::string::npos);
  CHECK(scene.mixed.can_resize(make_of()).error().is(ErrorCode::kUnavailable));
  CHECK(scene.take_woken().empty());
  SUBCASE("it comes") {
    agent.connect();
    CHECK(scene.take_woken() == std::vector<std::string>{"pvc-1"});
    CHECK(scene.admit(make_of()));
    CHECK(scene.begin(make_of()) == "agent");
    SUBCASE("and is lost") {
      CHECK(agent.orders() == "start pvc-1");
      agent.hang_up();
      CHECK_FALSE(scene.admit(make_of("pvc-2")));
      CHECK(scene.begin(make_of("pvc-2")).find("expected") != std::string::npos);
      (void)scene.take_woken();
      scene.pods.clear();
      scene.pass(seconds(10));
      CHECK(scene.was_woken("pvc-2"));
      CHECK(scene.begin(make_of("pvc-2")).find("just gone") != std::string::npos);
      scene.pass(seconds(10));
      CHECK(scene.begin(make_of("pvc-2")) == "other");
    }
  }
  SUBCASE("it does not come, and has no pod") {
    scene.pods.clear();
    scene.pass(seconds(10));
    CHECK(scene.take_woken() == std::vector<std::string>{"pvc-1"});
    CHECK(scene.admit(make_of()));
    CHECK(scene.begin(make_of()) == "other");
  }
}

TEST_CASE("helper pods do not work beside an agent that has a pod, however long it is not heard") {
  MixedScene scene;
  SceneAgent agent(scene);
  SUBCASE("it was connected") {
    agent.connect();
    agent.hang_up();
  }
  SUBCASE("it never was") {}
  scene.pass(seconds(3600));
  // start() says what is missing, in an Event.
  CHECK(scene.admit(make_of()));
  CHECK(scene.begin(make_of()).find("its pod is there") != std::string::npos);
  CHECK(scene.mixed.can_resize(make_of()).error().is(ErrorCode::kUnavailable));
  CHECK(scene.mixed.recorded("pvc-1").empty());
  CHECK(scene.asked_for_pods == 1);
  SUBCASE("nobody may look for pods: what counts is the time") {
    scene.pods_are_secret = true;
    scene.pass(seconds(5));
    CHECK(scene.begin(make_of()) == "other");
  }
  SUBCASE("it comes back") {
    (void)scene.take_woken();
    agent.connect();
    CHECK(scene.was_woken("pvc-1"));
    CHECK(scene.begin(make_of()) == "agent");
  }
}

TEST_CASE("a removal that was called off, and whose agent is gone before it hears of it, is told") {
  MixedScene scene;
  SceneAgent agent(scene);
  agent.connect();
  REQUIRE(scene.executor.start(removal_of()).ok());
  bool told = true;
  SUBCASE("nobody knows whether it has begun") {
    CHECK(scene.executor.cancel(removal_of().id()).ok());
  }
  SUBCASE("it has begun") {
    (void)agent.take();
    agent.tell(removal_of(), State::kRunning);
    SUBCASE("and the volume is to be kept") {
      CHECK(scene.executor.cancel(removal_of().id()).ok());
    }
    SUBCASE("and the volume is to be kept, and the node is gone as well") {
      CHECK(scene.executor.cancel(removal_of().id()).ok());
      scene.gone.insert("node-1");
      told = false;  // whoever brings the node back brings the agent
    }
    SUBCASE("and goes on being wanted") { told = false; }
  }
  agent.hang_up();
  scene.pods.clear();
  scene.pass(seconds(120));
  (void)scene.mixed.recorded("pvc-1");
  scene.pass(seconds(20));
  CHECK(scene.mixed.recorded("pvc-1").empty());
  CHECK(scene.not_put_back.contains(removal_of().path) == told);
}

TEST_CASE("what an agent had begun is begun anew by others once its pod is gone for good") {
  MixedScene scene;
  SceneAgent agent(scene);
  agent.connect();
  const Operation make = make_of();
  REQUIRE(scene.begin(make) == "agent");
  CHECK(agent.orders() == "start pvc-1");
  agent.tell(make, State::kRunning);
  agent.hang_up();
  scene.pass(seconds(600));
  CHECK(scene.mixed.recorded("pvc-1").size() == 1);
  // An update of the DaemonSet: the next pod comes in a moment.
  scene.pods.clear();
  scene.pass(seconds(5));
  CHECK(scene.mixed.recorded("pvc-1").size() == 1);
  scene.pods.insert("node-1");
  scene.pass(seconds(20));
  CHECK(scene.mixed.recorded("pvc-1").size() == 1);
  scene.pods.clear();
  scene.pass(seconds(5));
  CHECK(scene.mixed.recorded("pvc-1").size() == 1);
  scene.pass(seconds(10));
  (void)scene.take_woken();
  CHECK(scene.mixed.recorded("pvc-1").empty());
  CHECK(scene.was_woken("pvc-1"));
  CHECK(scene.is_free(make));
  CHECK(scene.begin(make_of("pvc-1", "node-1", 2)) == "other");
  // What its disk has on record is heard of should it come back after all.
  agent.connect({work_of(make, State::kRunning)});
  CHECK(scene.executor.recorded("pvc-1").size() == 1);
}

TEST_CASE("an operation stays with whoever has it on record") {
  MixedScene scene;
  SceneAgent agent(scene);
  agent.connect();
  const Operation make = make_of();
  SUBCASE("the agent, which is away") {
    CHECK(scene.begin(make) == "agent");
    agent.hang_up();
    scene.pass(seconds(1000));
    CHECK(scene.begin(make) == "agent");
    CHECK(scene.mixed.cancel(make.id()).ok());
    CHECK(scene.state(make) == State::kEnding);
    CHECK_FALSE(scene.mixed.forget(make.id(), When::kNow).value());
  }
  SUBCASE("the other one, though there is an agent by now") {
    (void)scene.other.start(make);
    CHECK(scene.mixed.start(make).ok());
    CHECK(scene.other.records.size() == 2);
    CHECK(scene.executor.recorded("pvc-1").empty());
    CHECK(scene.mixed.forget(make.id(), When::kNow).value());
    CHECK(scene.mixed.recorded("pvc-1").empty());
  }
  SUBCASE("both, since the agent was away when it was begun anew: the one that may still act") {
    scene.other.records.emplace_back(make, Progress{.state = State::kSucceeded});
    agent.connect({work_of(make, State::kRunning)});
    const auto all = scene.mixed.recorded("pvc-1");
    REQUIRE(all.size() == 1);
    CHECK(all[0].progress.state == State::kRunning);
    agent.tell(make, State::kSucceeded);
    CHECK(scene.mixed.recorded("pvc-1").size() == 1);
    CHECK(scene.mixed.forget(make.id(), When::kNow).value());
    CHECK(scene.mixed.recorded("pvc-1").empty());
  }
  scene.mixed.node_changed("node-1");
  CHECK(scene.other.changed == std::vector<std::string>{"node-1"});
}

}  // namespace
}  // namespace lpp::agent
