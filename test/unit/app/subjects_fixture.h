// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "app/subjects.h"
#include "fakes/builders.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "helperpod/runner.h"
#include "operation/path_ledger.h"
#include "provisioner/places.h"

namespace lpp::testing {

/// The daemon's parts without threads or sockets, as metrics, probes and the status page see them.
struct SubjectsFixture {
  static constexpr const char* kConfig =
      R"({"nodePathMap":[{"node":"DEFAULT_PATH_FOR_NON_LISTED_NODES","paths":["/data"]}]})";
  static constexpr const char* kTemplate =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: helper}\n"
      "spec: {containers: [{name: helper, image: busybox}]}\n";

  FakeClock clock;
  FakeTransport server;
  k8s::MeteredTransport transport{server, clock};
  k8s::ApiClient client{transport, clock, {}};
  app::Options options = [] {
    app::Options out;
    out.provisioner_name = "rancher.io/local-path";
    out.namespace_name = "local-path-storage";
    out.leader_election.resource_name = "rancher.io-local-path";
    return out;
  }();
  std::string identity = "host_uuid";
  k8s::EventRecorder events{client, clock, "test"};
  k8s::Informer<k8s::PersistentVolumeClaim> claims{
      "pvc", client, clock, {.resource = k8s::kPersistentVolumeClaims}};
  k8s::Informer<k8s::PersistentVolume> volumes{
      "pv", client, clock, {.resource = k8s::kPersistentVolumes}};
  k8s::Informer<k8s::StorageClass> classes{"sc", client, clock, {.resource = k8s::kStorageClasses}};
  k8s::Informer<k8s::Node> nodes{"node", client, clock, {.resource = k8s::kNodes}};
  k8s::Informer<k8s::Pod> pods{"pod", client, clock, {.resource = k8s::kPods}};
  k8s::StoreWriter<k8s::Pod> helper_pods;
  k8s::StoreWriter<k8s::PersistentVolume> made_volumes;
  k8s::StoreWriter<k8s::Node> known_nodes;
  app::ConfigLoader config{{},
                           config::make_inline_source("--config", kConfig),
                           config::make_inline_source("template", kTemplate),
                           client,
                           events,
                           clock};
  provisioner::Places places{volumes.store(), nodes.store(), options.provisioner_name};
  operation::PathLedger ledger{places};
  helperpod::HelperPodRunner runner{
      client, clock, helper_pods, ledger, {}, [] { return helperpod::HelperPodRunner::Current{}; }};
  provisioner::OperationFigures figures{clock};
  provisioner::Binding binding{clock, provisioner::Binding::By::kUs};
  operation::SpaceBoard space;
  operation::ToldUses uses{clock};
  provisioner::World world{options.provisioner_name,
                           client,
                           clock,
                           events,
                           runner,
                           ledger,
                           config.config(),
                           claims.store(),
                           volumes.store(),
                           classes.store(),
                           nodes.store(),
                           figures,
                           binding,
                           space,
                           uses};
  provisioner::Controller controller{
      world, {claims, volumes, classes, nodes}, {.worker_threads = 1}};
  provisioner::CapacityPublisher::Stats capacities;
  std::function<app::AgentsSubject()> agents;
  std::function<std::vector<agent::AgentWork>(const std::string&)> oldest_works =
      [](const std::string& /*node*/) { return std::vector<agent::AgentWork>(); };
  std::function<app::OrphansSubject()> orphans;
  bool stopping = false;
  bool synced = true;
  k8s::ReflectorStats cache_stats;

  app::Subjects subjects() {
    app::Subjects out{.clock = clock,
                      .options = options,
                      .identity = identity,
                      .api_host = "10.0.0.1:443",
                      .started_at = clock.wall_now(),
                      .requests = transport.stats(),
                      .controller = controller,
                      .figures = figures,
                      .helper_pods = helper_pods,
                      .volumes = made_volumes,
                      .nodes = known_nodes,
                      .space = space,
                      .uses = uses,
                      .capacities = capacities,
                      .runner = runner,
                      .config = config,
                      .events = events,
                      .agents = agents,
                      .oldest_works = oldest_works,
                      .orphans = orphans,
                      .stopping = [this] { return stopping; }};
    out.caches.push_back({.resource = "persistentvolumes",
                          .stats = &cache_stats,
                          .has_synced = [this] { return synced; },
                          .size = [] { return std::size_t{7}; }});
    return out;
  }

  static operation::Operation operation(const std::string& volume, int attempt = 1) {
    operation::Operation out;
    out.volume_name = volume;
    out.claim = {"app", "data"};
    out.node = "n1";
    out.path = "/data/" + volume;
    out.attempt = attempt;
    return out;
  }
};

}  // namespace lpp::testing
