// SPDX-License-Identifier: Apache-2.0
// What --agents adds: flags, metrics, the status page, and which base paths a node has.

#include "app/agents.h"

#include <doctest/doctest.h>

#include <sstream>

#include "app/status_page.h"
#include "unit/app/busy_fixture.h"

using namespace lpp;
using namespace lpp::testing;

TEST_CASE("a node's base paths are those of every class, each once, and no shared ones") {
  config::Config config;
  config.paths.node_path_map = {{"n1", {"/a", "/b"}}, {std::string(config::kDefaultNode), {"/z"}}};
  config.classes["fast"].node_path_map = {{"n1", {"/b", "/ssd"}}};
  config.classes["none"].node_path_map = {{"n1", {}}};
  config.classes["everywhere"].shared_file_system_path = "/nfs";
  using Paths = std::vector<std::string>;
  CHECK(app::base_paths_of(config, "n1") == Paths{"/a", "/b", "/ssd"});
  CHECK(app::base_paths_of(config, "n2") == Paths{"/z"});
}

TEST_CASE("metrics and the status page tell of agents, when there may be some") {
  BusyFixture fixture;
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  std::string metrics = fixture.text();
  CHECK(has(metrics, "local_path_provisioner_agents_connected 1\n"));
  CHECK(has(metrics, "local_path_provisioner_agent_operations 3\n"));
  CHECK(has(metrics, "local_path_provisioner_agent_connections 2\n"));
  CHECK(has(metrics,
            "local_path_provisioner_base_path_limits_not_held{node=\"n1\",path=\"/data\"} 3\n"));
  CHECK_FALSE(has(metrics, "path=\"/bad\""));
  CHECK(has(metrics, "local_path_provisioner_agent_requests_total{request=\"poll\"} 7\n"));
  CHECK(has(metrics, "local_path_provisioner_agent_refused_total{reason=\"token\"} 5\n"));
  CHECK(has(metrics,
            "local_path_provisioner_agents_certificate_expiry_timestamp_seconds 1800000000\n"));
  std::string page = app::status_page(fixture.subjects());
  CHECK(has(page, "Agents"));
  CHECK(has(page, "connected"));
  CHECK(has(page, "/bad (not mounted)"));
  CHECK(has(page,
            "/data (3 of 5 volumes have a limit that does not hold: the owners of 1 took "
            "the directory out of it, or put another in its place)"));
  CHECK(has(page, "make pvc-7 (running for 4 s, 512 files and directories gone) and 2 more"));
  CHECK(has(page, "told and left out: 4 (make of volume "));
  CHECK(has(page, "connected: pods agent-1 and agent-of-another-set end each other"));
  fixture.agents = nullptr;
  metrics = fixture.text();
  CHECK_FALSE(has(metrics, "local_path_provisioner_agent"));
  page = app::status_page(fixture.subjects());
  CHECK_FALSE(has(page, "Agents"));
}

TEST_CASE("volumes without an agent are those of nodes that are there, told by who leads") {
  BusyFixture fixture;
  auto seen = fixture.agents();
  fixture.agents = [&] { return seen; };
  const auto put = [&](const VolumeBuilder& builder) {
    const auto made = builder.shared();
    fixture.made_volumes.put(made->meta.key(), made);
  };
  put(volume("pvc-3").host_path("/data/pvc-3").node("n2").storage_class("fast"));
  put(volume("pvc-4").host_path("/data/pvc-4").node("deleted"));
  put(volume("pvc-5").host_path("/nfs/pvc-5"));
  put(volume("pvc-6").node("n2").annotation("pv.kubernetes.io/provisioned-by",
                                            "example.com/other"));
  const auto told = [&] {
    std::string out;
    std::istringstream lines(fixture.text());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("local_path_provisioner_volumes_without_agent")) out += line + "\n";
    }
    return out;
  };
  CHECK(told() == "local_path_provisioner_volumes_without_agent{node=\"n2\"} 2\n");
  seen.agents[1].presence = agent::Presence::kExpected;  // not yet
  CHECK(told() == "local_path_provisioner_volumes_without_agent{node=\"n2\"} 2\n");
  seen.agents[1].presence = agent::Presence::kConnected;
  CHECK(told().empty());
  seen.agents.clear();  // none has ever come
  CHECK(told() ==
        "local_path_provisioner_volumes_without_agent{node=\"n1\"} 1\n"
        "local_path_provisioner_volumes_without_agent{node=\"n2\"} 2\n");
  seen.leads = false;
  CHECK(told().empty());
}

TEST_CASE("a certificate that is not there yet has no end") {
  BusyFixture fixture;
  fixture.agents = [] { return app::AgentsSubject{.leads = true}; };
  CHECK(fixture.text().find("certificate_expiry") == std::string::npos);
}
