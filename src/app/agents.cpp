// SPDX-License-Identifier: Apache-2.0
#include "app/agents.h"

#include <algorithm>
#include <optional>

#include "app/version.h"
#include "base/log.h"
#include "base/strings.h"
#include "provisioner/base_paths.h"
#include "provisioner/names.h"
#include "provisioner/plan.h"
#include "provisioner/told_work.h"
#include "provisioner/volume_node.h"

namespace lpp::app {

namespace {

/// They are short there, and an agent puts them in a row; beyond this other nodes' have a turn.
constexpr std::size_t kMostPerNode = 100;
constexpr std::size_t kMostRemovals = 8;
/// How often the certificate is looked at, and after a failure.
constexpr std::chrono::minutes kLookAgain{1};
constexpr std::chrono::seconds kTryAgain{5};
/// Until another replica leads, or has made it.
constexpr std::chrono::seconds kNotYet{1};

std::vector<std::string> names_of(const Options& options) {
  const std::string& service = options.agents_service;
  const std::string in_ns = service + "." + options.namespace_name;
  return {service, in_ns, in_ns + ".svc", in_ns + ".svc.cluster.local", "localhost", "127.0.0.1"};
}

}  // namespace

std::vector<std::string> base_paths_of(const config::Config& config, const std::string& node) {
  std::vector<std::string> all;
  const auto add = [&](const config::PathConfig& paths) {
    if (paths.shared()) return;
    if (const auto* const mine = paths.paths_for(node)) {
      all.insert(all.end(), mine->begin(), mine->end());
    }
  };
  add(config.paths);
  for (const auto& [name, paths] : config.classes) add(paths);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Agents::Agents(const Parts& parts)
    : parts_(parts),
      agents_(parts.clock, parts.ledger,
              {.program = std::string(version()),
               .instance = parts.identity,
               .most_per_node = kMostPerNode,
               .most_removals = kMostRemovals},
              surroundings()),
      mixed_(agents_, parts.others),
      pods_(parts.client, parts.clock,
            {.ns = parts.options.namespace_name,
             .service_account = parts.options.agents_service_account}),
      reviewer_(parts.client, parts.clock,
                {.ns = parts.options.namespace_name,
                 .service_account = parts.options.agents_service_account}),
      certificates_(parts.leader_client, parts.clock,
                    {.ns = parts.options.namespace_name,
                     .secret = parts.options.agents_service + "-tls",
                     .config_map = parts.options.agents_service + "-ca",
                     .names = names_of(parts.options)}) {}

Agents::~Agents() { stop(); }

agent::AgentExecutor::Surroundings Agents::surroundings() {
  return {
      .cmd_timeout = [this] { return parts_.config.current()->cmd_timeout; },
      .base_paths =
          [this](const std::string& node) { return base_paths_of(*parts_.config.current(), node); },
      .belief =
          [this](const operation::Operation& told) {
            return provisioner::judge(told, base_paths_of(*parts_.config.current(), told.node),
                                      parts_.claims, parts_.volumes, parts_.nodes,
                                      parts_.clock.wall_now());
          },
      .is_node_gone = [this](const std::string& node) { return is_node_gone(node); },
      .has_agent_pod = [this](const std::string& node) { return has_agent_pod(node); },
      .bases_told =
          [this](const std::string& node, const std::vector<agent::Base>& bases) {
            for (const auto& base : bases) {
              if (base.space) parts_.space.note(node, base.path, *base.space);
            }
            // Before it has told everything nothing is said of its disks.
            if (agents_.presence(node) != agent::Presence::kConnected) return;
            for (const auto& base : bases) {
              disk_news_.look(node, base.path, agents_.why_unfit(node, base.path));
            }
          },
      .disks_named =
          [this](const std::string& node, const std::string& base_path) {
            return named_disks_.of(node, base_path, base_paths_of(*parts_.config.current(), node));
          },
      .not_put_back = [this](const operation::Operation& removal,
                             const std::string& why) { tell_not_put_back(removal, why); },
      .cluster = [this] { return cluster(); },
      .nobodys =
          [this](const std::string& node, std::vector<agent::Listed> directories, bool idle) {
            std::vector<Orphan> all;
            all.reserve(directories.size());
            for (auto& one : directories) all.push_back({node, std::move(one)});
            directories.clear();
            for (Orphan& one : nobodys(scene(idle), std::move(all))) {
              directories.push_back(std::move(one.listed));
            }
            return directories;
          },
      .left_out = [this](const std::string& node,
                         const agent::LeftOut& what) { tell_left_out(node, what); },
      .rivals =
          [this](const std::string& node, const std::string& pod, const std::string& other) {
            const auto known = parts_.nodes.get({"", node});
            if (known == nullptr) return;
            parts_.events.event(
                k8s::reference_to("Node", known->meta), k8s::EventType::kWarning,
                provisioner::kTwoAgents,
                "Pods " + pod + " and " + other +
                    " both speak for this node, and end each other's sessions: let one agent run "
                    "on each node");
          },
  };
}

Result<bool> Agents::is_node_gone(const std::string& node) {
  if (parts_.nodes.get({"", node}) != nullptr) return false;
  const auto found = parts_.client.get(k8s::kNodes, {"", node});
  if (found.ok()) return false;
  if (found.error().is(ErrorCode::kNotFound)) return true;
  return found.error().wrap("look for node " + node);
}

Result<bool> Agents::has_agent_pod(const std::string& node) {
  return pods_.may_work(node, agents_.heard_pod(node));
}

provisioner::CapacityPublisher::IsServed Agents::is_served() {
  using Served = provisioner::CapacityPublisher::Served;
  return [this](const std::string& node, const std::stop_token& stop) {
    const agent::Presence presence = agents_.presence(node);
    if (presence == agent::Presence::kConnected) return Served::kYes;
    if (presence == agent::Presence::kExpected) return Served::kNotKnownYet;
    const auto nodes = pods_.nodes_with_one(stop);
    if (nodes.ok()) return nodes->contains(node) ? Served::kNo : Served::kYes;
    // Who must not ask goes by the time that has passed: helper pods serve it.
    return nodes.error().is(ErrorCode::kForbidden) ? Served::kYes : Served::kNotKnownYet;
  };
}

void Agents::tell_not_put_back(const operation::Operation& removal, const std::string& why) const {
  const auto volume = parts_.volumes.get({"", removal.volume_name});
  // It may have another directory by now, as on another node.
  const bool is_of_it = volume != nullptr && volume->path == removal.path &&
                        provisioner::may_be_on(*volume, removal.node, parts_.nodes);
  if (!is_of_it) return;
  const std::string message = "The removal of its directory " + removal.path + " on node " +
                              removal.node + " was stopped, and " + why;
  const auto tell = [&](const k8s::ObjectReference& about) {
    parts_.events.event(about, k8s::EventType::kWarning, provisioner::kDirectoryMissing, message);
  };
  tell(k8s::reference_to(*volume));
  const auto claim = parts_.claims.get(removal.claim);
  if (claim != nullptr && claim->volume_name == removal.volume_name) {
    tell(k8s::reference_to(*claim));
  }
}

/// On the volume or claim only if it may be on that node: of others an agent has nothing to tell.
void Agents::tell_left_out(const std::string& node, const agent::LeftOut& what) const {
  const std::string message =
      "What the agent on node " + node + " tells is left out: " + what.words;
  const auto tell = [&](const k8s::ObjectReference& about) {
    parts_.events.event(about, k8s::EventType::kWarning, provisioner::kAgentDisbelieved, message);
  };
  if (const auto known = parts_.nodes.get({"", node}); known != nullptr) {
    tell(k8s::reference_to("Node", known->meta));
  }
  if (!what.operation) return;
  const auto volume = parts_.volumes.get({"", what.operation->volume_name});
  if (volume != nullptr && provisioner::may_be_on(*volume, node, parts_.nodes)) {
    tell(k8s::reference_to(*volume));
  }
  const auto claim = parts_.claims.get(what.operation->claim);
  const bool is_its_claim = claim != nullptr && provisioner::volume_name_of(claim->meta.uid) ==
                                                    what.operation->volume_name;
  if (is_its_claim && provisioner::selected_node(*claim) == node) tell(k8s::reference_to(*claim));
}

Result<void> Agents::start() {
  auto server = agent::AgentServer::start(
      {.port = parts_.options.agents_port}, agents_,
      [this](const std::string& token) { return reviewer_.check(token); }, parts_.leads,
      parts_.clock);
  if (!server.ok()) return server.error();
  server_ = *std::move(server);
  counted_ = server_.get();
  keeper_ = std::jthread([this](const std::stop_token& stop) {
    set_thread_name("agent-tls");
    keep_certificate(stop);
  });
  log::info("agents are served on port {}", server_->port());
  return {};
}

std::string Agents::cluster() const {
  MutexLock lock(mutex_);
  return cluster_;
}

/// By a namespace that every cluster has from its beginning, and nobody can remove.
bool Agents::learn_cluster() {
  if (!cluster().empty()) return false;
  const auto found = parts_.client.get(k8s::kNamespaces, {"", "kube-system"});
  std::string uid;
  if (found.ok()) uid = found->value(nlohmann::json::json_pointer("/metadata/uid"), "");
  if (!uid.empty()) {
    MutexLock lock(mutex_);
    cluster_ = uid;
    return false;
  }
  std::string trouble = found.ok() ? "it has no UID" : found.error().message;
  if (std::exchange(cluster_trouble_, trouble) != trouble) {
    log::warn(
        "agents cannot tell this cluster's disks from another one's, and sweep nothing: namespace "
        "kube-system: {}",
        trouble);
  }
  return !found.ok() && !found.error().is(ErrorCode::kForbidden) &&
         !found.error().is(ErrorCode::kNotFound);
}

/// The leader makes and renews it; the others read what there is, and show it too. What cannot be
/// had leaves the former one in use.
void Agents::keep_certificate(const std::stop_token& stop) {
  std::string told;
  agent::KeyPair shown;
  // Before the first agent can ask.
  while (learn_cluster() && parts_.clock.sleep_for(kNotYet, stop)) {
  }
  while (!stop.stop_requested()) {
    (void)learn_cluster();
    const bool leads = parts_.leads();
    const auto tls = leads ? certificates_.ensure() : certificates_.read();
    Duration wait = kLookAgain;
    Result<void> used;
    if (!tls.ok()) {
      used = tls.error();
    } else if (!(tls->server == shown)) {
      used = server_->use(tls->server.certificate, tls->server.key);
      if (used.ok()) {
        shown = tls->server;
        const auto facts = agent::inspect(shown);
        if (facts.ok()) certificate_ends_ = facts->not_after;
      }
    }
    if (used.ok()) {
      told.clear();
    } else if (!leads && used.error().is(ErrorCode::kNotFound)) {
      wait = kNotYet;
    } else {
      wait = kTryAgain;
      if (!stop.stop_requested() && std::exchange(told, used.error().message) != told) {
        log::error("the agents' certificate: {}", told);
      }
    }
    // Who begins to lead is the one who makes it from then on.
    const TimePoint next = parts_.clock.now() + wait;
    while (parts_.clock.now() < next && parts_.leads() == leads &&
           parts_.clock.sleep_for(kNotYet, stop)) {
    }
  }
}

void Agents::stop() {
  if (keeper_.joinable()) {
    keeper_.request_stop();
    keeper_.join();
  }
  if (server_) server_->stop();
}

AgentsSubject Agents::subject() const {
  const auto* const server = counted_.load();
  const auto ends = certificate_ends_.load();
  return {.leads = parts_.leads(),
          .agents = agents_.agents(),
          .server = server != nullptr ? server->counts() : agent::ServerCounts{},
          .certificate_ends = ends == agent::WallTime() ? std::nullopt : std::optional(ends),
          .usage = agents_.usage()};
}

OrphansSubject Agents::orphans() const {
  return {.orphans = nobodys(scene(), agents_.orphans()), .left_out = agents_.orphans_left_out()};
}

}  // namespace lpp::app
