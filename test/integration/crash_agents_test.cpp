// SPDX-License-Identifier: Apache-2.0
// The agent of a node is stopped before each call that changes something on its disk, of each kind
// of operation; there it is killed, or the controller, or both, or the API server is away, or the
// line between the two, in turns: LPP_EVERY_VICTIM=1 makes it each of them at each call. What was
// begun is finished once, and nothing is lost or left.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "places/places.h"
#include "support/agent_story.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;

enum class Victim { kAgent, kController, kBoth, kApiServer, kLine, kNobody };
constexpr int kVictims = 5;  // and nobody
/// Of a second replica, in its configuration alone.
constexpr const char* kOther = "/srv/third";

struct StepsStory : AgentStory {
  enum class Replicas { kOne, kTwo };
  explicit StepsStory(Replicas replicas = Replicas::kOne) {
    if (replicas == Replicas::kTwo) {
      second = LPP_MUST(Installation::create(*bed, {.daemon = daemon_program(),
                                                    .folder = second_folder.path(),
                                                    .extra_args = agents->with_port({}),
                                                    .env = {}}));
    }
    agents->lay_line();
    agents->run(built("test/harness/lpp-stopping-agent"), {{"STOPPING_AGENT_ORDER", order()}});
    start_with({"node-1"});
    nlohmann::json growing = class_object({.name = "growing"});
    growing["allowVolumeExpansion"] = true;
    LPP_MUST(admin().create(growing));
    beside = want("beside");
    beside_volume = wait_bound_and_write(beside);
    wait_for(*this, "the agent rests", [this] { return not_at_rest(); });
  }

  /// Of lpp-stopping-agent.
  std::string order() const { return folder.path("order"); }
  void stop_before(int step) {
    fs::remove(order() + ".calls");
    std::ofstream(order() + ".new") << "order-" << ++orders << " " << step << "\n";
    fs::rename(order() + ".new", order());
  }
  void stop_nowhere() const { fs::remove(order()); }
  int steps() const {
    const std::string calls = text_of(order() + ".calls");
    return static_cast<int>(std::count(calls.begin(), calls.end(), '\n'));
  }
  /// Of volumes, on the node's disks.
  std::ptrdiff_t records() const {
    std::ptrdiff_t count = 0;
    for (const auto& base : bed->base_paths()) {
      std::error_code none;
      const std::string kept = bed->on_disk("node-1", base) + "/.local-path-provisioner";
      for (const auto& file : fs::directory_iterator(kept, none)) {
        if (file.path().filename().string().starts_with("volume.")) ++count;
      }
    }
    return count;
  }
  /// "" when nothing is under way on the node's disk.
  std::string not_at_rest() {
    auto bases = bed->base_paths();
    bases.emplace_back(kOther);
    return not_at_rest(bases);
  }
  std::string not_at_rest(const std::vector<std::string>& bases) const {
    for (const auto& base : bases) {
      std::error_code none;
      const std::string kept = bed->on_disk("node-1", base) + "/.local-path-provisioner";
      for (const auto& file : fs::directory_iterator(kept, none)) {
        const std::string name = file.path().filename();
        if (!name.starts_with("volume.") && name != "lock" && name != "identity.json" &&
            name != "spare") {
          return name;
        }
      }
    }
    return "";
  }

  /// Until the agent stands before that step; false: the work has fewer steps, and is done.
  bool stands(const std::string& kind, int step, const Condition& not_done) {
    bool there = false;
    wait_for(*this, kind + " stands before step " + std::to_string(step), [&]() -> std::string {
      there = steps() >= step;
      if (there) return "";
      const std::string left = not_done();
      return left.empty() ? not_at_rest() : left;
    });
    if (!there) stop_nowhere();
    return there;
  }
  /// The same, and the victim has gone there.
  bool strike(const std::string& kind, int step, const Condition& not_done) {
    if (!stands(kind, step, not_done)) return false;
    agents->freeze("node-1");
    hit(kind, step);
    return true;
  }
  /// The agent is frozen.
  void hit(const std::string& kind, int step) {
    REQUIRE(steps() == step);
    stop_nowhere();
    ++struck[kind];
    ++victims[victim];
    switch (victim) {
      case Victim::kAgent: agents->start("node-1"); break;
      case Victim::kController:
        installation->kill_daemon();
        // Alone it goes on, and is longer in coming back.
        if (step % 2 == 0) agents->thaw("node-1");
        start_controller();
        if (step % 2 == 1) agents->thaw("node-1");
        break;
      case Victim::kBoth:
        installation->kill_daemon();
        agents->start("node-1");
        start_controller();
        break;
      case Victim::kApiServer: lose_api_server(); break;
      case Victim::kLine: lose_line(); break;
      case Victim::kNobody: agents->thaw("node-1"); break;
    }
  }
  void start_controller() {
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
  }
  void lose_api_server() {
    std::atomic<int> in_vain = 0;
    installation->proxy().set_hooks({.before = [&](const ApiRequest&) {
      ++in_vain;
      return Decision::cut_before();
    }});
    installation->proxy().cut_connections();
    agents->thaw("node-1");
    wait_for(*this, "the API server is missed", [&] { return in_vain >= 3 ? "" : "not yet"; });
    installation->proxy().set_hooks({});
  }

  void lose_line() {
    const auto missed = [this] {
      return times_in(text_of(agents->log_file("node-1")), "no session with the controller");
    };
    const std::size_t before = missed();
    agents->line().refuse(true);
    agents->line().cut();
    agents->thaw("node-1");
    wait_for(*this, "the controller is missed", [&] { return missed() > before ? "" : "not yet"; });
    agents->line().refuse(false);
  }

  /// A removal that was interrupted puts back what it has left, and goes on later.
  void check_all(std::size_t volumes) {
    wait_for(*this, "all is as it should be", [&]() -> std::string {
      const auto directories = audit.directories();
      if (directories.size() != volumes) return std::to_string(directories.size()) + " directories";
      const std::string left = audit.leftovers();
      return left.empty() ? not_at_rest() : left;
    });
    CHECK(LPP_MUST(audit.bound_volume(beside)).disk == beside_volume.disk);
    CHECK(text_of(beside_volume.disk + "/below/data") == kTenantsData);
  }

  bool make(const k8s::ObjectKey& claim, int step) {
    stop_before(step);
    want(claim.name, "node-1", "growing");
    const bool hit = strike("make", step, [&]() -> std::string {
      return audit.bound_volume(claim).ok() ? "" : "it is not bound";
    });
    volume = wait_bound_and_write(claim);
    check_all(2);
    return hit;
  }
  bool resize(const k8s::ObjectKey& claim, int step) {
    const auto not_grown = [&]() -> std::string {
      const auto status = LPP_MUST(admin().get(k8s::kPersistentVolumeClaims, claim))["status"];
      const bool grown =
          status["capacity"]["storage"] == "2Gi" && !status.contains("allocatedResourceStatuses");
      return grown ? "" : status.dump();
    };
    stop_before(step);
    LPP_MUST(admin().merge(k8s::kPersistentVolumeClaims, claim,
                           {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}}));
    const bool hit = strike("resize", step, not_grown);
    wait_for(*this, "it has grown", not_grown);
    check_all(2);
    CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
    return hit;
  }
  bool remove(const k8s::ObjectKey& claim, int step) {
    stop_before(step);
    LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, claim));
    const bool hit = strike("remove", step, [&]() -> std::string {
      const auto gone = audit.deleted(claim, volume);
      return gone.ok() ? "" : gone.error().message;
    });
    LPP_MUST(audit.wait_deleted(claim, volume));
    check_all(1);
    return hit;
  }
  /// Of a directory whose claim goes before its volume is there.
  bool take_back(const k8s::ObjectKey& claim, int step) {
    std::atomic<bool> refused = false;
    installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
      if (!request.is("create", "persistentvolumes")) return Decision::forward();
      refused = true;
      return Decision::reply(500);
    }});
    want(claim.name);
    wait_for(*this, "the volume is refused", [&] { return refused ? "" : "not yet"; });
    CHECK(audit.directories().size() == 2);
    const auto taken_back = times_logged(*this, "taking back the directory");
    stop_before(step);
    LPP_MUST(admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    wait_for_log(*this, "taking back the directory", taken_back + 1);
    installation->proxy().set_hooks({});
    const bool hit = strike("take back", step, [&]() -> std::string {
      return audit.directories().size() == 1 ? "" : "it is there";
    });
    wait_for(*this, "it is taken back",
             [&]() -> std::string { return audit.directories().size() == 1 ? "" : "it is there"; });
    check_all(1);
    return hit;
  }

  enum class Heard { kNo, kYes };
  /// A claim that goes while the agent stands before that step of its make: whether the controller
  /// has heard of it before the agent goes on. False when the make has fewer steps.
  bool call_off(const k8s::ObjectKey& claim, const std::string& storage_class, int step,
                Heard heard) {
    stop_before(step);
    want(claim.name, "node-1", storage_class);
    if (!stands("make", step, [&]() -> std::string {
          return audit.bound_volume(claim).ok() ? "" : "it is not bound";
        })) {
      return false;
    }
    if (heard == Heard::kNo) agents->freeze("node-1");
    LPP_MUST(admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    if (heard == Heard::kYes) {
      wait_for(*this, "the controller knows", [&] { return in_flight(); });
      agents->freeze("node-1");
    }
    hit("make", step);
    return true;
  }
  /// Neither at the agent that runs now nor with the controller, which begins to take back what an
  /// agent was killed at when the next one tells it nothing of that.
  void wait_nothing_under_way() {
    agents->wait_connected("node-1");
    wait_for(*this, "nothing is under way", [&]() -> std::string {
      std::string left = metrics_lack(
          {"local_path_provisioner_agents_connected 1", "local_path_provisioner_agent_operations 0",
           "local_path_provisioner_workqueue_delayed{name=\"claims\"} 0",
           "workqueue_depth{name=\"claims\"} 0",
           "workqueue_unfinished_work_seconds{name=\"claims\"} 0"});
      if (left.empty()) left = in_flight();
      return left.empty() ? not_at_rest() : left;
    });
  }
  /// "" when the controller has no operation in flight.
  std::string in_flight() const {
    std::string status = page("/statusz");
    return status.find("Operations in flight: 0") == std::string::npos ? status : "";
  }
  /// What was published in the last moment is kept until somebody removes it.
  void wait_only_volume_beside() {
    wait_for(*this, "only the volume beside is there", [&]() -> std::string {
      std::string others;
      for (const auto& one : LPP_MUST(admin().list(k8s::kPersistentVolumes))) {
        const std::string name = one["metadata"]["name"];
        if (name == beside_volume.pv) continue;
        others += name + " ";
        (void)admin().remove(k8s::kPersistentVolumes, {"", name});
      }
      return others;
    });
  }
  /// Each step of a make in turn, each with another victim; returns how many there were.
  int each_step_of_make(const std::function<bool(int step)>& act) {
    const int stride = is_sanitized() ? 4 : 1;
    const int each = setting("LPP_EVERY_VICTIM").has_value() ? kVictims + 1 : 1;
    int turn = 0;
    for (int step = 1;; step += stride) {
      for (int i = 0; i < each; ++i) {
        victim = static_cast<Victim>(turn++ % (kVictims + 1));
        CAPTURE(step);
        CAPTURE(static_cast<int>(victim));
        if (!act(step)) return turn - 1;
      }
    }
  }

  /// Each kind until its steps are through; `turn` says who is the first victim.
  void each_step(int turn) {
    std::set<std::string> through;
    const int stride = is_sanitized() ? 4 : 1;
    for (int step = 1; through.size() < 4; step += stride) {
      CAPTURE(step);
      const std::string number = std::to_string(orders);
      const k8s::ObjectKey claim{"app", "c" + number};
      const k8s::ObjectKey other{"app", "t" + number};
      const auto work = [&](const std::string& kind, int next, const auto& act) {
        victim = static_cast<Victim>((turn + step / stride + next) % kVictims);
        if (!act()) through.insert(kind);
      };
      work("make", 0, [&] { return make(claim, step); });
      if (!through.contains("resize")) work("resize", 1, [&] { return resize(claim, step); });
      work("remove", 2, [&] { return remove(claim, step); });
      if (!through.contains("take back")) {
        work("take back", 3, [&] { return take_back(other, step); });
      }
    }
  }

  const TempDir second_folder;
  std::unique_ptr<Installation> second;  // nullptr: there is none
  Victim victim = Victim::kAgent;
  int orders = 0;
  std::map<std::string, int> struck;  // by kind of operation
  std::map<Victim, int> victims;
  k8s::ObjectKey beside;
  VolumeFacts beside_volume;
  VolumeFacts volume;
};

TEST_CASE("an operation of an agent is finished once, whoever fails at any of its steps") {
  StepsStory story;
  const int turns = setting("LPP_EVERY_VICTIM").has_value() ? kVictims : 1;
  for (int turn = 0; turn < turns; ++turn) story.each_step(turn);
  // A story that was never hit proves nothing.
  std::string told;
  for (const char* kind : {"make", "resize", "remove", "take back"}) {
    told += std::string(" ") + kind + " " + std::to_string(story.struck[kind]);
    CHECK(story.struck[kind] >= (is_sanitized() ? 2 : 10) * turns);
  }
  MESSAGE("struck:", told);
  for (int who = 0; who < kVictims; ++who) {
    CAPTURE(who);
    CHECK(story.victims[static_cast<Victim>(who)] >= (is_sanitized() ? 2 : 8) * turns);
  }
  CHECK(story.helper_pods_made() == 0);
  CHECK(text_of(story.beside_volume.disk + "/below/data") == kTenantsData);
  story.remove_all({story.beside});
}

TEST_CASE("a claim deleted while an agent makes its directory leaves nothing behind at any step") {
  StepsStory story;
  const int steps = story.each_step_of_make([&](int step) {
    const k8s::ObjectKey claim{"app", "c" + std::to_string(story.orders)};
    const auto heard = step % 4 < 2 ? StepsStory::Heard::kYes : StepsStory::Heard::kNo;
    if (!story.call_off(claim, "local-path", step, heard)) {
      story.remove_and_wait(claim, story.wait_bound_and_write(claim));
      return false;
    }
    story.check_all(1);
    story.wait_nothing_under_way();
    CHECK(story.records() == 1);
    return true;
  });
  CHECK(steps >= (is_sanitized() ? 2 : 10));
  CHECK(story.helper_pods_made() == 0);
  story.remove_all({story.beside});
}

TEST_CASE("a claim deleted while an agent gives it a directory with data costs none of it") {
  StepsStory story;
  LPP_MUST(story.admin().create(
      class_object({.name = "named",
                    .reclaim_policy = "Retain",
                    .parameters = {{"pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}"},
                                   {"nodePath", "/opt/local-path-provisioner"}}})));
  const k8s::ObjectKey claim = story.want("kept", "node-1", "named");
  const auto kept = story.wait_bound_and_write(claim);
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  story.wait_only_volume_beside();
  story.wait_nothing_under_way();
  const int steps = story.each_step_of_make([&](int step) {
    const bool hit = story.call_off(claim, "named", step, StepsStory::Heard::kYes);
    if (!hit) LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    story.wait_nothing_under_way();
    story.wait_only_volume_beside();
    CHECK(text_of(kept.disk + "/below/data") == kTenantsData);
    CHECK(text_of(story.beside_volume.disk + "/below/data") == kTenantsData);
    return hit;
  });
  CHECK(steps >= (is_sanitized() ? 1 : 4));
  CHECK(story.helper_pods_made() == 0);
}

/// Two replicas whose configurations have nothing in common, as in the middle of an update.
TEST_CASE("a leader with another base path finishes what an agent has begun, in one place") {
  StepsStory story(StepsStory::Replicas::kTwo);
  const std::string other = story.bed->on_disk("node-1", kOther);
  fs::create_directories(other);  // as the DaemonSet has it
  LPP_MUST(story.second->write_config(
      {{"nodePathMap", nlohmann::json::array({{{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"},
                                               {"paths", nlohmann::json::array({kOther})}}})}}));
  const auto elsewhere = [&] {
    std::vector<std::string> all;
    std::error_code none;
    for (const auto& file : fs::directory_iterator(other, none)) {
      if (file.path().filename() != ".local-path-provisioner") all.push_back(file.path());
    }
    return all;
  };
  const k8s::ObjectKey lease{kDaemonNamespace, kDaemonLease};
  Installation* leads = story.installation.get();
  Installation* follows = story.second.get();
  int struck = 0;
  for (int step = 1; step <= 15; step += 3) {
    CAPTURE(step);
    LPP_MUST(follows->start_daemon(Installation::OldLease::kKeep));
    LPP_MUST(follows->wait_ready());
    // A path that has left the configuration is not touched.
    const bool is_first = leads == story.installation.get();
    const auto bases = is_first ? story.bed->base_paths() : std::vector<std::string>{kOther};
    wait_for(story, "the agent rests", [&] { return story.not_at_rest(bases); });
    story.stop_before(step);
    const auto claim = story.want("c" + std::to_string(step));
    wait_for(story, "the agent stands there", [&] {
      if (story.steps() >= step) return std::string();
      return std::to_string(story.steps()) + " steps: " + leads->log_tail();
    });
    story.agents->freeze("node-1");
    leads->kill_daemon();
    LPP_MUST(story.admin().remove(k8s::kLeases, lease));
    std::swap(leads, follows);
    story.stop_nowhere();
    if (step % 2 == 0) story.agents->start("node-1");
    if (step % 2 == 1) story.agents->thaw("node-1");
    ++struck;
    const auto volume = story.wait_bound_and_write(claim);
    wait_for(story, "it is in one place", [&]() -> std::string {
      std::string all;
      auto directories = story.audit.directories();
      for (const auto& one : elsewhere()) directories.push_back(one);
      for (const auto& one : directories) all += one + " ";
      return directories.size() == 2 ? "" : all;
    });
    CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
    story.remove_and_wait(claim, volume);
    CHECK(text_of(story.beside_volume.disk + "/below/data") == kTenantsData);
  }
  CHECK(struck == 5);
  CHECK(elsewhere().empty());
  wait_for(story, "nothing is under way", [&] { return story.not_at_rest(); });
  CHECK(story.audit.directories().size() == 1);
}

}  // namespace
}  // namespace lpp::testing
