// SPDX-License-Identifier: Apache-2.0
// What --agents adds: flags, metrics, the status page, and which base paths a node has.

#include "app/agents.h"

#include <doctest/doctest.h>

#include "app/status_page.h"
#include "unit/app/busy_fixture.h"

using namespace lpp;           // NOLINT(google-build-using-namespace): a test file
using namespace lpp::testing;  // NOLINT(google-build-using-namespace)

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
  CHECK(has(metrics, "local_path_provisioner_agent_requests_total{request=\"poll\"} 7\n"));
  CHECK(has(metrics, "local_path_provisioner_agent_refused_total{reason=\"token\"} 5\n"));
  std::string page = app::status_page(fixture.subjects());
  CHECK(has(page, "Agents"));
  CHECK(has(page, "connected"));
  CHECK(has(page, "/bad (not mounted)"));
  fixture.agents = nullptr;
  metrics = fixture.text();
  CHECK_FALSE(has(metrics, "local_path_provisioner_agent"));
  page = app::status_page(fixture.subjects());
  CHECK_FALSE(has(page, "Agents"));
}
