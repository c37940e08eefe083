// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_executor.h"
#include "fakes/empty_cluster.h"
#include "fakes/fake_clock.h"

namespace lpp::agent {

using operation::Executor;
using operation::Kind;
using operation::Operation;
using operation::Progress;
using std::chrono::seconds;
using Start = Executor::Start;
using State = Progress::State;
using What = Order::What;
using When = Executor::When;

inline Operation make_of(const std::string& volume = "pvc-1", const std::string& node = "node-1",
                         int attempt = 1) {
  Operation operation;
  operation.volume_name = volume;
  operation.claim = {"app", volume};
  operation.owner_uid = "uid-" + volume;
  operation.attempt = attempt;
  operation.node = node;
  operation.base_path = "/opt/local";
  operation.path = "/opt/local/" + volume;
  operation.size_bytes = 1024;
  return operation;
}

inline Operation removal_of(const std::string& volume = "pvc-1") {
  Operation operation = make_of(volume);
  operation.kind = Kind::kRemove;
  return operation;
}

inline Operation resize_of(const std::string& volume = "pvc-1") {
  Operation operation = make_of(volume);
  operation.kind = Kind::kResize;
  return operation;
}

inline Work work_of(Operation operation, State state) {
  Work work{.operation = std::move(operation)};
  work.progress.state = state;
  if (state == State::kFailed) work.progress.message = "the disk is full of bees";
  return work;
}

/// The executor, and everything around it as one thread sees it.
struct AgentScene {
  explicit AgentScene(std::size_t most = 0)
      : executor(
            clock, ledger, {.program = "1.0", .instance = "me", .most_per_node = most},
            {.cmd_timeout = [] { return seconds(120); },
             .base_paths =
                 [this](const std::string& node) {
                   auto now = base_paths[node];
                   if (meanwhile) std::exchange(meanwhile, nullptr)();
                   return now;
                 },
             .belief = [this](const Operation& work) -> operation::Belief {
               const auto doubt = doubts.find(work.volume_name);
               const auto home = homes.find(work.volume_name);
               return {.against = doubt == doubts.end() ? "" : doubt->second,
                       .at_home = home != homes.end() && home->second == work.node};
             },
             .is_node_gone = [this](const std::string& node) -> Result<bool> {
               ++asked_for_nodes;
               return gone.contains(node);
             },
             .has_agent_pod = [this](const std::string& node) -> Result<bool> {
               ++asked_for_pods;
               if (pods_are_secret) return Error{ErrorCode::kForbidden, "not yours to list"};
               return pods.contains(node);
             },
             .bases_told = [this](const std::string& node,
                                  const std::vector<Base>& bases) { told[node] = bases; },
             .disks_named = [this](const std::string&, const std::string&) { return disks_named; },
             .not_put_back = [this](const Operation& removal,
                                    const std::string& why) { not_put_back[removal.path] = why; },
             .cluster = [this] { return cluster_uid; },
             .nobodys =
                 [this](const std::string&, std::vector<Listed> directories, bool idle) {
                   std::erase_if(directories, [&](const Listed& one) {
                     return owned.contains(one.path) || (idle && being_made.contains(one.path));
                   });
                   return directories;
                 },
             .left_out = [this](const std::string& node,
                                const LeftOut& what) { left_out.emplace_back(node, what); },
             .rivals =
                 [this](const std::string& node, const std::string& pod, const std::string& other) {
                   rivals.push_back(node + ": " + pod + " " + other);
                 }}) {
    executor.on_presence([this](const std::string& node) { present.push_back(node); });
    base_paths["node-1"] = {"/opt/local"};
    begin();
  }

  void begin() {
    executor.begin(
        {.wake = [this](const Operation& operation) { woken.push_back(operation.volume_name); },
         .is_quiet = [this] { return quiet; }});
  }
  std::optional<Progress> progress(const Operation& operation) {
    for (const auto& one : executor.recorded(operation.volume_name)) {
      if (one.operation->id() == operation.id()) return one.progress;
    }
    return std::nullopt;
  }
  std::optional<State> state(const Operation& operation) {
    const auto now = progress(operation);
    return now ? std::optional(now->state) : std::nullopt;
  }
  /// Whether another volume could have the directory now.
  bool is_free(const Operation& operation) {
    Operation other = operation;
    other.volume_name = "another";
    const bool free = !ledger.take(other);
    ledger.release(other);
    return free;
  }
  std::vector<std::string> take_woken() { return std::exchange(woken, {}); }
  bool was_woken(const std::string& volume) {
    const auto all = take_woken();
    return std::find(all.begin(), all.end(), volume) != all.end();
  }
  /// Time passes in steps, as the process counts it.
  void pass(Duration time) {
    for (Duration passed = {}; passed < time; passed += seconds(1)) {
      clock.advance(seconds(1));
      (void)executor.tick();
    }
  }

  testing::FakeClock clock;
  testing::EmptyCluster cluster;
  operation::PathLedger ledger{cluster};
  std::map<std::string, std::vector<std::string>> base_paths;
  std::function<void()> meanwhile{};  // right after somebody has asked for these, once
  std::set<std::string> gone;
  int asked_for_nodes = 0;
  std::map<std::string, std::string> doubts{};     // by volume: why it is not believed
  std::map<std::string, std::string> homes{};      // by volume: the node where it is to be
  std::set<std::string> pods{"node-1", "node-2"};  // nodes with one of an agent
  bool pods_are_secret = false;
  int asked_for_pods = 0;
  std::map<std::string, std::vector<Base>> told;
  std::map<std::string, std::string> not_put_back{};        // why, by path
  std::vector<std::pair<std::string, LeftOut>> left_out{};  // by node
  std::vector<std::string> rivals{};
  std::string cluster_uid = "cluster-1";
  std::set<std::string> owned;  // directories that are a volume's or a claim's
  std::set<std::string> being_made;
  std::vector<std::string> disks_named{};  // by volumes in the base path
  std::vector<std::string> present;
  std::vector<std::string> woken;
  bool quiet = false;
  AgentExecutor executor;
};

/// A node's agent, that does and says what the test wants.
struct SceneAgent {
  explicit SceneAgent(AgentScene& s, std::string node = "node-1")
      : scene(s), identity{std::move(node), "agent-pod"} {}
  /// The scene outlives it, and may answer a poll of a former session then.
  ~SceneAgent() {
    ++*polls;
    hang_up();
  }
  SceneAgent(const SceneAgent&) = delete;
  SceneAgent& operator=(const SceneAgent&) = delete;

  void hello() {
    auto welcome = scene.executor.hello(identity, {.program = "0.9"});
    REQUIRE(welcome.ok());
    session = welcome->session;
    base_paths = welcome->base_paths;
    taken = 0;
    answered = {};
  }
  Result<Told> tell(Tell what) {
    what.session = session;
    return scene.executor.tell(identity, std::move(what));
  }
  void tell(const Operation& operation, State state) {
    REQUIRE(tell(Tell{.works = {work_of(operation, state)}}).ok());
  }
  /// A session, begun with all that it has on record, and a poll.
  void connect(std::vector<Work> works = {}) {
    hello();
    REQUIRE(tell(Tell{.everything = true,
                      .bases = std::vector{Base{.path = "/opt/local"}},
                      .works = std::move(works)})
                .ok());
    poll();
  }
  void poll() {
    answered.reset();
    const auto number = ++*polls;
    ticket = scene.executor.poll(identity, {.session = session, .taken = taken},
                                 [this, number, latest = polls](Result<Orders> orders) {
                                   if (number == *latest) answered = std::move(orders);
                                 });
  }
  /// Takes what the poll was answered, and polls again.
  std::vector<Order> take() {
    if (!answered) return {};
    REQUIRE(answered->ok());
    const auto orders = (*answered)->orders;
    if (!orders.empty()) taken = orders.back().number;
    poll();
    return orders;
  }
  /// The one order there is: "start pvc-1", "cancel pvc-1" …; more are separated by commas.
  std::string orders() {
    std::string all;
    for (const Order& order : take()) {
      if (!all.empty()) all += ", ";
      switch (order.what) {
        case What::kStart: all += "start " + order.operation->volume_name; break;
        case What::kCancel: all += "cancel " + order.id.volume_name; break;
        case What::kForget: all += "forget " + order.id.volume_name; break;
        case What::kBases: all += "bases"; break;
      }
    }
    return all;
  }
  void hang_up() { scene.executor.abandon(identity, ticket); }

  AgentScene& scene;
  AgentIdentity identity;
  std::string session;
  std::vector<std::string> base_paths;
  std::int64_t taken = 0;
  std::shared_ptr<int> polls = std::make_shared<int>(0);  // the number of the latest
  AgentExecutor::Ticket ticket = 0;
  std::optional<Result<Orders>> answered;
};

}  // namespace lpp::agent
