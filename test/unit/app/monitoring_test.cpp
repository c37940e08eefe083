// SPDX-License-Identifier: Apache-2.0
// What stands in docs/ and deploy/monitoring/ about metrics must be true.

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "app/metrics.h"
#include "places/places.h"
#include "unit/app/busy_fixture.h"
#include "unit/app/own_agent_fixture.h"

using namespace lpp;
using namespace lpp::app;
using namespace lpp::testing;

namespace {

using Names = std::set<std::string>;

std::string file(const std::string& name) {
  std::string text = repository_text(name);
  REQUIRE(!text.empty());
  return text;
}

Names matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Names out;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    out.insert((*it)[1]);
  }
  return out;
}

Names exported() {
  BusyFixture fixture;
  fixture.options.capacity_provisioner_name = "local-path.example.org";
  k8s::LeaderElector elector(fixture.client, fixture.clock,
                             {.ns = "ns", .lease_name = "lease", .identity = "me"},
                             {.started_leading = [] {}, .stopped_leading = [] {}});
  // Of a node without an agent.
  const auto told =
      volume("pvc-told").host_path("/data/told").node("n3").claim("app", "told").shared();
  fixture.made_volumes.put(told->meta.key(), told);
  fixture.uses.note("n3", "/data/told", {.bytes = 1, .limit_bytes = 2});
  Subjects subjects = fixture.subjects();
  subjects.elector = &elector;
  return matches(metrics_text(subjects), "# TYPE ([a-z_]+) ");
}

/// Metrics named in a query, without a histogram's suffix.
Names queried(const std::string& query) {
  Names out;
  for (std::string name :
       matches(query,
               "\\b((?:local_path_provisioner|controller|workqueue|rest_client|reflector|"
               "leader_election|process)_[a-z_]+)")) {
    for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    out.insert(name);
  }
  return out;
}

Names missing(const Names& wanted, const Names& there) {
  Names out;
  for (const std::string& name : wanted) {
    if (!there.contains(name)) out.insert(name);
  }
  return out;
}

}  // namespace

TEST_CASE("docs/metrics.md lists the metrics that there are, and no others") {
  Names there = exported();
  there.merge(matches(OwnAgentFixture().text(), "# TYPE ([a-z_]+) "));
  const Names listed = matches(file("docs/metrics.md"), "\\| `([a-z_]+)` \\|");
  for (const auto& name : missing(listed, there)) FAIL_CHECK("not exported: " << name);
  for (const auto& name : missing(there, listed)) FAIL_CHECK("not on the page: " << name);
}

TEST_CASE("the dashboard asks for metrics that there are") {
  const auto dashboard = nlohmann::json::parse(file("deploy/monitoring/dashboard.json"));
  Names asked;
  std::size_t panels = 0;
  for (const auto& panel : dashboard["panels"]) {
    if (panel["type"] == "row") continue;
    ++panels;
    CAPTURE(panel["title"].get<std::string>());
    REQUIRE_FALSE(panel["targets"].empty());
    for (const auto& target : panel["targets"]) {
      const Names names = queried(target["expr"]);
      const bool is_of_kubelets =
          target["expr"].get<std::string>().find("kubelet_volume_stats_") != std::string::npos;
      CHECK((is_of_kubelets || !names.empty()));
      asked.insert(names.begin(), names.end());
    }
  }
  CHECK(panels > 15);
  CHECK(missing(asked, exported()) == Names{});
  // How full volumes and disks are.
  const Names must_be_shown{"local_path_provisioner_volume_stats_used_bytes",
                            "local_path_provisioner_volume_stats_capacity_bytes",
                            "local_path_provisioner_volume_stats_inodes_used",
                            "local_path_provisioner_path_size_bytes",
                            "local_path_provisioner_path_free_bytes",
                            "local_path_provisioner_path_inodes",
                            "local_path_provisioner_path_inodes_free",
                            "local_path_provisioner_volumes",
                            "local_path_provisioner_volumes_requested_bytes"};
  CHECK(missing(must_be_shown, asked) == Names{});
}

TEST_CASE("the alerts ask for metrics that there are, and each has its section in the runbook") {
  const std::string rules = file("deploy/monitoring/prometheusrule.yaml");
  CHECK(missing(queried(rules), exported()) == Names{});
  const Names alerts = matches(rules, "alert: ([A-Za-z]+)");
  CHECK(alerts.size() >= 10);
  CHECK(matches(file("docs/runbook.md"), "\n## ([A-Za-z]+)\n") == alerts);
  for (const std::string& alert : alerts) {
    CAPTURE(alert);
    std::string anchor;
    for (const char c : alert) anchor += static_cast<char>(std::tolower(c));
    CHECK(rules.find("runbook: docs/runbook.md#" + anchor + "\n") != std::string::npos);
    // Raised by a test, and not by the healthy pair.
    const std::string tests = file("test/monitoring/rules_test.yaml");
    CHECK(tests.find("alertname: " + alert + ", exp_alerts: []") != std::string::npos);
    CHECK(tests.find("alertname: " + alert + "\n") != std::string::npos);
  }
}
