// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_server.h"
#include "app/config_loader.h"
#include "app/options.h"
#include "app/orphans.h"
#include "base/clock.h"
#include "helperpod/runner.h"
#include "k8s/event_recorder.h"
#include "k8s/informer.h"
#include "k8s/leader_elector.h"
#include "k8s/metered_transport.h"
#include "k8s/reflector.h"
#include "provisioner/capacity_publisher.h"
#include "provisioner/controller.h"
#include "provisioner/operation_figures.h"

namespace lpp::app {

/// What is known of node agents.
struct AgentsSubject {
  bool leads = false;  // agents connect to the process that does, and to no other
  std::vector<agent::AgentState> agents{};
  agent::ServerCounts server{};
  /// Of the certificate that agents are shown; none = nothing is shown yet.
  std::optional<std::chrono::system_clock::time_point> certificate_ends{};
  std::vector<operation::UsageBoard::Entry> usage{};  // of volumes with a limit
};

/// What is known of directories that are nobody's, on nodes with agents.
struct OrphansSubject {
  std::vector<Orphan> orphans{};
  std::map<std::string, std::int64_t> left_out{};  // so many more at least, by node
};

/// A cache as monitoring sees it.
struct CacheSubject {
  std::string resource{};  // "persistentvolumeclaims"
  const k8s::ReflectorStats* stats = nullptr;
  std::function<bool()> has_synced{};
  std::function<std::size_t()> size{};
};

template <typename T>
CacheSubject subject_of(const char* resource, const k8s::Informer<T>& informer) {
  return {.resource = resource,
          .stats = &informer.stats(),
          .has_synced = [&informer] { return informer.has_synced(); },
          .size = [&informer] { return informer.store().size(); }};
}

/// The parts of the daemon that metrics, probes and the status page speak about. References only;
/// everything in it is thread-safe.
struct Subjects {
  Clock& clock;
  const Options& options;
  const std::string& identity;
  std::string api_host{};
  std::chrono::system_clock::time_point started_at{};
  const k8s::RequestStats& requests;
  std::vector<CacheSubject> caches{};
  const provisioner::Controller& controller;
  const provisioner::OperationFigures& figures;
  const k8s::Store<k8s::Pod>& helper_pods;
  const k8s::Store<k8s::PersistentVolume>& volumes;
  const k8s::Store<k8s::Node>& nodes;
  const operation::SpaceBoard& space;
  const operation::ToldUses& uses;
  const provisioner::CapacityPublisher::Stats& capacities;
  const helperpod::HelperPodRunner& runner;
  const ConfigLoader& config;
  const k8s::LeaderElector* elector = nullptr;  // nullptr = no election: always at work
  const k8s::EventRecorder& events;
  std::function<AgentsSubject()> agents{};  // none = without --agents
  /// Of a node's agent, where there are agents.
  std::function<std::vector<agent::AgentWork>(const std::string& node)> oldest_works{};
  std::function<OrphansSubject()> orphans{};
  std::function<bool()> stopping{};
};

}  // namespace lpp::app
