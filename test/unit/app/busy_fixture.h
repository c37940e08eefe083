// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include "app/metrics.h"
#include "fakes/builders.h"
#include "unit/app/subjects_fixture.h"

namespace lpp::testing {

/// Everything has happened once, so that every metric has a series.
struct BusyFixture : SubjectsFixture {
  BusyFixture() {
    REQUIRE(config.start().ok());
    server.on("GET", "").reply(200, R"({"metadata":{}})").fail(ErrorCode::kUnavailable);
    (void)client.get(k8s::kNodes, {"", "n1"});
    figures.progressed(operation::Kind::kMake, operation("pvc-1"), provisioner::Step::kQueued);
    clock.advance(std::chrono::seconds(2));
    figures.progressed(operation::Kind::kMake, operation("pvc-1"), provisioner::Step::kStart);
    clock.advance(std::chrono::milliseconds(300));
    figures.succeeded(operation::Kind::kMake, "pvc-1", "local-path");
    figures.bound(provisioner::kBound);
    figures.claim_released("local-path", "released");
    figures.progressed(operation::Kind::kRemove, operation("pvc-0"), provisioner::Step::kQueued);
    figures.succeeded(operation::Kind::kRemove, "pvc-0", "local-path");
    figures.failed({.kind = operation::Kind::kMake,
                    .volume = "pvc-2",
                    .storage_class = "local-path",
                    .reason = "ScriptFailed",
                    .message = "exit code 1"});
    figures.failed({.kind = operation::Kind::kRemove,
                    .volume = "pvc-3",
                    .storage_class = "local-path",
                    .reason = "x\ny"});
    k8s::Pod pod;
    pod.phase = "Running";
    pod.node_name = "n1";
    const auto made =
        volume("pvc-1").host_path("/data/pvc-1").node("n1").claim("app", "data").shared();
    made_volumes.put(made->meta.key(), made);
    const auto other = volume("pvc-2").host_path("/data/pvc-2").node("n2").shared();
    made_volumes.put(other->meta.key(), other);
    for (const char* name : {"n1", "n2"}) {
      const auto known = node(name).shared();
      known_nodes.put(known->meta.key(), known);
    }
    space.note("n1", "/data", {.size = 1, .free = 1, .inodes = 1, .free_inodes = 1});
    helper_pods.put({"ns", "a"}, std::make_shared<const k8s::Pod>(pod));
    oldest_works = [](const std::string& node) -> std::vector<agent::AgentWork> {
      if (node != "n1") return {};
      operation::Operation make;
      make.volume_name = "pvc-7";
      return {{std::make_shared<const operation::Operation>(make),
               operation::Progress::State::kRunning, std::chrono::seconds(4), 512}};
    };
    agents = [] {
      agent::AgentState there{.node = "n1", .pod = "agent-1", .program = "1.0", .works = 3};
      there.presence = agent::Presence::kConnected;
      there.bases = {{.path = "/data"}, {.path = "/bad", .problem = "not mounted"}};
      there.bases[0].volumes = 5;
      there.bases[0].limits_not_held = 3;
      there.bases[0].limits_taken_off = 1;
      there.rival = "agent-of-another-set";
      there.left_out = 4;
      there.left_out_words = {"make of volume \"pvc-8\" is an operation of another node"};
      agent::AgentState away{.node = "n2"};
      return app::AgentsSubject{
          .leads = true,
          .agents = {there, away},
          .server = {.connections = 2, .requests = {{"poll", 7}}, .refused = {{"token", 5}}},
          .certificate_ends = std::chrono::system_clock::from_time_t(1'800'000'000),
          .usage = {{"n1",
                     "/data/pvc-1",
                     {.bytes = 950, .limit_bytes = 1000, .inodes = 12, .limit_inodes = 50}}}};
    };
    orphans = [] {
      return app::OrphansSubject{.orphans = {{"n1", {.path = "/data/lost", .id = "lost"}}}};
    };
    cache_stats.lists = 3;
    cache_stats.last_contact = clock.now() - std::chrono::seconds(20);
  }
  std::string text() {
    const app::Subjects all = subjects();
    return app::metrics_text(all);
  }
};

}  // namespace lpp::testing
