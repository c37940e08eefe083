// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "agent/agent_server.h"
#include "agent/certificates.h"
#include "agent/token_reviewer.h"
#include "fakes/eventually.h"
#include "fakes/helper_pod_scene.h"
#include "helperpod/runner.h"
#include "helperpod/template.h"
#include "integration/support/trouble.h"
#include "k8s/informer.h"

namespace lpp::testing {

/// An executor with what it needs around it, as a process has it.
class ExecutorInstance {
 public:
  virtual ~ExecutorInstance() = default;
  virtual operation::Executor& executor() = 0;
  operation::PathLedger& ledger() { return ledger_; }

 private:
  EmptyCluster cluster_;
  operation::PathLedger ledger_{cluster_};
};

class DirectoryInstance final : public ExecutorInstance {
 public:
  DirectoryInstance(Clock& clock, DirectoryExecutor::Settings settings)
      : executor_(clock, ledger(), std::move(settings)) {}
  operation::Executor& executor() override { return executor_; }

 private:
  DirectoryExecutor executor_;
};

class HelperPodInstance final : public ExecutorInstance {
 public:
  HelperPodInstance(StoryBed& story, Clock& clock, std::size_t most_per_node,
                    std::chrono::seconds patience)
      : pods_("pod", story.admin().api(), clock,
              {.resource = k8s::kPods,
               .ns = kDaemonNamespace,
               .label_selector = helperpod::label_selector(kProvisionerName)}),
        template_(template_of(story)),
        runner_(story.admin().api(), clock, pods_.store(), ledger(),
                {.provisioner_name = kProvisionerName,
                 .ns = kDaemonNamespace,
                 .service_account = "local-path-provisioner-service-account",
                 .config_map = "local-path-config",
                 .helper_image = "busybox",
                 .most_per_node = most_per_node},
                [this, patience] {
                  return helperpod::HelperPodRunner::Current{.pod_template = template_,
                                                             .cmd_timeout = patience};
                }) {
    pods_.add_handler([this](const auto& change) { runner_.observe(change); });
    pods_.start();
    REQUIRE(eventually([this] { return pods_.has_synced(); }));
  }
  ~HelperPodInstance() override {
    pods_.request_stop();
    pods_.join();
  }
  operation::Executor& executor() override { return runner_; }

 private:
  static std::shared_ptr<const helperpod::Template> template_of(StoryBed& story) {
    const auto map =
        LPP_MUST(story.admin().get(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"}));
    const std::string text = map["data"]["helperPod.yaml"];
    return std::make_shared<const helperpod::Template>(
        LPP_MUST(helperpod::parse_template(text, "helperPod.yaml", false)));
  }

  k8s::Informer<k8s::Pod> pods_;
  std::shared_ptr<const helperpod::Template> template_;
  helperpod::HelperPodRunner runner_;
};

/// Serves the agents of the story at their port, as the daemon does.
class AgentInstance final : public ExecutorInstance {
 public:
  AgentInstance(StoryBed& story, Clock& clock, std::size_t most_per_node,
                std::chrono::seconds patience)
      : executor_(
            clock, ledger(),
            {.program = "test",
             .instance = "process-" + std::to_string(++count()),
             .most_per_node = most_per_node},
            {.cmd_timeout = [patience] { return patience; },
             .base_paths = [&story](const auto&) { return story.bed->base_paths(); },
             .belief = [](const auto&) { return operation::Belief{}; },
             .is_node_gone = [](const auto&) { return false; },
             .has_agent_pod = [](const auto&) { return true; },
             .bases_told = [](const auto&, const auto&) {},
             .disks_named = [](const auto&, const auto&) { return std::vector<std::string>(); },
             .not_put_back = [](const auto&, const auto&) {},
             .cluster = [] { return std::string(); },
             .nobodys = [](const auto&, const auto&,
                           bool) { return std::vector<agent::Listed>(); }}),
        reviewer_(story.admin().api(), clock,
                  {.ns = kDaemonNamespace, .service_account = kAgentAccount}),
        server_(start_server(story.agents->port(), clock)) {
    agent::Certificates certificates(story.admin().api(), clock,
                                     {.ns = kDaemonNamespace,
                                      .secret = "local-path-provisioner-agents-tls",
                                      .config_map = "local-path-provisioner-agents-ca",
                                      .names = {"127.0.0.1"}});
    const auto tls = LPP_MUST(certificates.ensure());
    LPP_MUST(server_->use(tls.server.certificate, tls.server.key));
  }
  operation::Executor& executor() override { return executor_; }
  bool has_all(const std::vector<std::string>& nodes) const {
    return std::all_of(nodes.begin(), nodes.end(), [this](const std::string& node) {
      return executor_.presence(node) == agent::Presence::kConnected;
    });
  }

 private:
  static int& count() {
    static int processes = 0;
    return processes;
  }
  /// The port is taken while a process that is being made for a container has not begun its program
  /// yet: until then it has all of our sockets, also that of the server before.
  std::unique_ptr<agent::AgentServer> start_server(int port, Clock& clock) {
    const auto start = [&] {
      return agent::AgentServer::start(
          {.port = port}, executor_,
          [this](const std::string& token) { return reviewer_.check(token); }, [] { return true; },
          clock);
    };
    auto started = start();
    eventually([&] {
      if (!started.ok()) started = start();
      return started.ok();
    });
    return LPP_MUST(std::move(started));
  }

  agent::AgentExecutor executor_;
  agent::TokenReviewer reviewer_;
  const std::unique_ptr<agent::AgentServer> server_;  // last: it uses the others
};

/// One of the executors on nodes that really work, without anything that decides.
struct ExecutorBed : StoryBed {
  using Operation = operation::Operation;
  using State = operation::Progress::State;
  using Kind = operation::Kind;
  static constexpr const char* kVolume = "pvc-1";
  static constexpr const char* kBase = "/opt/local-path-provisioner";

  explicit ExecutorBed(By executor, std::size_t most = 0,
                       std::chrono::seconds until_late = std::chrono::seconds(120))
      : StoryBed(executor), most_per_node(most), patience(until_late) {
    begin();
  }
  ~ExecutorBed() { end(); }
  ExecutorBed(const ExecutorBed&) = delete;
  ExecutorBed& operator=(const ExecutorBed&) = delete;

  operation::Executor& executor() { return instance->executor(); }
  void begin() {
    if (by == By::kDirectories) {
      instance = std::make_unique<DirectoryInstance>(
          clock, DirectoryExecutor::Settings{.disks = disks(),
                                             .records = records(),
                                             .most_per_node = most_per_node,
                                             .patience = patience});
    } else if (by == By::kAgents) {
      instance = std::make_unique<AgentInstance>(*this, clock, most_per_node, patience);
    } else {
      instance = std::make_unique<HelperPodInstance>(*this, clock, most_per_node, patience);
    }
    executor().begin({.wake =
                          [this](const Operation& operation) {
                            MutexLock lock(mutex);
                            woken.push_back(operation.volume_name);
                          },
                      .is_quiet = [] { return true; }});
    if (by == By::kAgents) wait_for_agents();
  }
  void wait_for_agents() {
    if (!std::exchange(agents_run, true)) {
      agents->take_ca();
      for (const auto& node : bed->nodes()) agents->start(node);
    }
    wait_for(*this, "the agents are connected", [this]() -> std::string {
      return dynamic_cast<AgentInstance&>(*instance).has_all(bed->nodes()) ? "" : "not all";
    });
  }
  void end() {
    executor().end(Duration::zero());
    instance.reset();
  }
  /// What a process knows is gone, but what is durable; another one begins.
  void crash() {
    end();
    (void)take_woken();
    begin();
  }

  static Operation make(const std::string& volume = kVolume, int attempt = 1,
                        const std::string& node = "node-1") {
    Operation operation;
    operation.volume_name = volume;
    operation.claim = {"app", volume};
    operation.owner_uid = "uid-" + volume;
    operation.attempt = attempt;
    operation.node = node;
    operation.base_path = kBase;
    operation.path = std::string(kBase) + "/" + volume;
    operation.size_bytes = 1024;
    return operation;
  }
  static Operation unmake(Kind kind, bool only_if_empty = false) {
    Operation operation = make();
    operation.kind = kind;
    operation.only_if_empty = only_if_empty;
    return operation;
  }
  std::string disk(const Operation& operation) const {
    return bed->on_disk(operation.node, operation.path);
  }

  operation::Executor::Start start(const Operation& operation) {
    return LPP_MUST(executor().start(operation));
  }
  /// Nothing when it is not on record.
  std::optional<operation::Progress> progress(const Operation& operation) {
    for (auto& one : executor().recorded(operation.volume_name)) {
      if (one.operation->id() == operation.id()) return one.progress;
    }
    return std::nullopt;
  }
  std::optional<State> state(const Operation& operation) {
    const auto now = progress(operation);
    return now ? std::optional(now->state) : std::nullopt;
  }
  void wait_state(const Operation& operation, std::optional<State> wanted) {
    wait_for(*this, "the operation gets on", [&]() -> std::string {
      const auto now = progress(operation);
      if (now.has_value() == wanted.has_value() && (!now || now->state == *wanted)) return "";
      return now ? std::to_string(static_cast<int>(now->state)) + " " + now->message : "no record";
    });
  }
  /// Does it, and says what became of the directory.
  operation::Directory run(const Operation& operation) {
    CHECK(start(operation) == operation::Executor::Start::kRecorded);
    wait_state(operation, State::kSucceeded);
    return progress(operation)->directory;
  }
  void forget(const Operation& operation) {
    LPP_MUST(executor().forget(operation.id(), operation::Executor::When::kNow));
    wait_state(operation, std::nullopt);
  }
  /// Whether another volume could have the directory now.
  bool is_free(const Operation& operation) {
    Operation other = operation;
    other.volume_name = "another";
    const bool free = !instance->ledger().take(other);
    instance->ledger().release(other);
    return free;
  }
  std::vector<std::string> take_woken() {
    MutexLock lock(mutex);
    return std::exchange(woken, {});
  }
  void wait_woken(const std::string& volume) {
    wait_for(*this, "the owner of " + volume + " is woken", [&]() -> std::string {
      MutexLock lock(mutex);
      return std::find(woken.begin(), woken.end(), volume) != woken.end() ? "" : "not yet";
    });
  }

  const std::size_t most_per_node;
  const std::chrono::seconds patience;
  SystemClock clock;
  Mutex mutex;
  std::vector<std::string> woken;
  std::unique_ptr<ExecutorInstance> instance;
  bool agents_run = false;
  Trouble trouble{*this};
};

}  // namespace lpp::testing
