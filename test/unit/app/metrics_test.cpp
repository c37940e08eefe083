// SPDX-License-Identifier: Apache-2.0
#include "app/metrics.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include "app/version.h"
#include "base/strings.h"
#include "fakes/builders.h"
#include "fakes/needs.h"
#include "harness/temp_dir.h"
#include "unit/app/busy_fixture.h"
#include "unit/app/metric_series.h"
#include "unit/app/own_agent_fixture.h"

using namespace lpp;
using namespace lpp::app;
using namespace lpp::testing;
using namespace std::chrono_literals;
using provisioner::Step;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

/// The names of the metrics. Each has a type, a help and a form that Prometheus accepts.
std::set<std::string> names_of(const std::string& text) {
  std::set<std::string> seen;
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    if (line.starts_with("# HELP ")) {
      name = line.substr(7, line.find(' ', 7) - 7);
      CHECK(seen.insert(name).second);  // twice the same metric is refused by Prometheus
      CHECK(line.size() > 7 + name.size() + 10);
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      const bool counter = line.ends_with(" counter");
      CHECK(line.starts_with("# TYPE " + name + " "));
      CHECK(counter == name.ends_with("_total"));
      continue;
    }
    CHECK(line.starts_with(name));
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos);
  }
  return seen;
}

}  // namespace

TEST_CASE("metrics say what has happened, with the names that dashboards know") {
  BusyFixture fixture;
  const std::string text = fixture.text();
  for (
      const char* line : {
          R"(controller_persistentvolumeclaim_provision_total{class="local-path",source=""} 1)",
          R"(controller_persistentvolumeclaim_provision_failed_total{class="local-path",source=""} 1)",
          R"(controller_persistentvolumeclaim_provision_duration_seconds_bucket{class="local-path",source="",le="1"} 0)",
          R"(controller_persistentvolumeclaim_provision_duration_seconds_bucket{class="local-path",source="",le="2.5"} 1)",
          R"(controller_persistentvolumeclaim_provision_duration_seconds_bucket{class="local-path",source="",le="+Inf"} 1)",
          R"(controller_persistentvolume_delete_total{class="local-path"} 1)",
          R"(controller_persistentvolume_delete_failed_total{class="local-path"} 1)",
          R"(controller_persistentvolume_delete_duration_seconds_count{class="local-path"} 1)",
          R"(local_path_provisioner_operation_step_duration_seconds_sum{operation="provision",step="queued"} 2)",
          R"(local_path_provisioner_failures_total{operation="provision",reason="ScriptFailed"} 1)",
          R"(local_path_provisioner_failures_total{operation="delete",reason="Other"} 1)",
          R"(local_path_provisioner_bindings_total{result="bound"} 1)",
          R"(local_path_provisioner_claims_released_total{class="local-path",result="released"} 1)",
          R"(local_path_provisioner_operations{operation="provision"} 1)",
          R"(local_path_provisioner_operations_waiting{operation="provision"} 1)",
          R"(local_path_provisioner_helper_pods{phase="Running",node="n1"} 1)",
          "local_path_provisioner_helper_pods_done 0",
          R"(workqueue_depth{name="claims"} 0)",
          R"(workqueue_adds_total{name="volumes"} 0)",
          R"(workqueue_queue_duration_seconds_bucket{name="claims",le="1e-08"} 0)",
          R"(rest_client_requests_total{code="200",method="GET",host="10.0.0.1:443"} 1)",
          R"(rest_client_request_duration_seconds_count{verb="GET",host="10.0.0.1:443"} 1)",
          R"(reflector_lists_total{name="persistentvolumes"} 3)",
          R"(local_path_provisioner_reflector_lag_seconds{name="persistentvolumes"} 20)",
          R"(local_path_provisioner_cache_objects{name="persistentvolumes"} 7)",
          R"(local_path_provisioner_config_generation 1)",
          R"(local_path_provisioner_config_reloads_total{source="config.json",result="accepted"} 1)",
          R"(local_path_provisioner_config_last_reload_successful{source="helperPod.yaml"} 1)",
          R"(local_path_provisioner_active 0)",
      }) {
    CAPTURE(line);
    CHECK(has_line(text, line));
  }
  CHECK(text.find("local_path_provisioner_build_info{version=\"" + std::string(version())) !=
        std::string::npos);
  // Without an election there is no lease to speak of.
  CHECK(text.find("leader_election_master_status") == std::string::npos);
}

TEST_CASE("every metric has a type, a help and a form that Prometheus accepts") {
  BusyFixture fixture;
  const auto names = names_of(fixture.text());
  CHECK(names.size() > 35);
  // An agent's are its own: what the controller says of agents is another thing.
  OwnAgentFixture agent;
  const auto of_agent = names_of(agent.text());
  CHECK(of_agent.size() > 15);
  for (const std::string& name : of_agent) {
    CAPTURE(name);
    CHECK(names.contains(name) == name.starts_with("process_"));
  }
}

TEST_CASE("an agent tells of its session, its work and its base paths") {
  OwnAgentFixture fixture;
  const std::string text = fixture.text();
  for (
      const char* line : {
          "local_path_provisioner_agent_connected 1",
          "local_path_provisioner_agent_sessions_begun_total 2",
          R"(local_path_provisioner_agent_sessions_ended_total{reason="expired"} 1)",
          R"(local_path_provisioner_agent_session_failures_total{reason="timeout"} 1)",
          R"(local_path_provisioner_agent_operation_duration_seconds_count{operation="provision",result="succeeded"} 1)",
          R"(local_path_provisioner_agent_operations_running{operation="provision"} 0)",
          "local_path_provisioner_agent_operations_queued 0",
          "local_path_provisioner_agent_operations_on_record 1",
          R"(local_path_provisioner_agent_base_path_usable{path="/nowhere"} 0)",
      }) {
    CAPTURE(line);
    CHECK(has_line(text, line));
  }
  CHECK(has_line(text, "local_path_provisioner_agent_base_path_usable{path=\"" +
                           fixture.base.path() + "\"} 1"));
  CHECK(text.find("local_path_provisioner_agent_connected_since_timestamp_seconds 1") !=
        std::string::npos);
  CHECK(text.find("local_path_provisioner_agent_build_info{version=\"" + std::string(version())) !=
        std::string::npos);
  CHECK(text.find("\nprocess_resident_memory_bytes ") != std::string::npos);
}

// NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs
const bool kHasPromtool = std::system("command -v promtool >/dev/null") == 0;

TEST_CASE("promtool has nothing to say about the metrics" *
          Needs(kHasPromtool, "not here: promtool")) {
  BusyFixture fixture;
  const TempDir folder;
  const std::string file = folder.path() + "/metrics";
  std::ofstream(file) << fixture.text();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs
  CHECK(std::system(("promtool check metrics <" + file + " >&2").c_str()) == 0);
}

TEST_CASE("volumes are counted where they are, and the space of paths is what was told last") {
  SubjectsFixture fixture;
  REQUIRE(fixture.config.start().ok());
  const auto put = [&](const VolumeBuilder& volume) {
    const auto shared = volume.shared();
    fixture.made_volumes.put(shared->meta.key(), shared);
  };
  const auto on_n1 = [](const std::string& name) {
    return volume(name).host_path("/data/" + name).node("n1");
  };
  put(on_n1("a").capacity("1Gi"));
  put(on_n1("b").capacity("512Mi").storage_class("fast"));
  put(on_n1("c").capacity("1Gi"));
  put(on_n1("foreign").annotation("pv.kubernetes.io/provisioned-by", "example.com/other"));
  fixture.space.note("n1", "/data", {.size = 100, .free = 40, .inodes = 10, .free_inodes = 3});
  const auto text = [&] { return metrics_text(fixture.subjects()); };
  const std::string place = R"({node="n1",path="/data")";
  for (const std::string& line :
       {"local_path_provisioner_volumes" + place + R"(,class="local-path"} 2)",
        "local_path_provisioner_volumes" + place + R"(,class="fast"} 1)",
        "local_path_provisioner_volumes_requested_bytes" + place +
            R"(,class="local-path"} 2147483648)",
        "local_path_provisioner_path_size_bytes" + place + "} 100",
        "local_path_provisioner_path_free_bytes" + place + "} 40",
        "local_path_provisioner_path_inodes" + place + "} 10",
        "local_path_provisioner_path_inodes_free" + place + "} 3"}) {
    CAPTURE(line);
    CHECK(has_line(text(), line));
  }
  for (int i = 0; i < 3000; ++i) {
    put(on_n1("v" + std::to_string(i)).storage_class("class-" + std::to_string(i)));
  }
  CHECK(text().find(R"(volumes{node="other",path="",class="other"})") != std::string::npos);
}

TEST_CASE("what is published of free space is counted, for whoever has it published") {
  SubjectsFixture fixture;
  fixture.capacities.objects = 3;
  fixture.capacities.writes = 7;
  fixture.capacities.failures = 1;
  const auto text = [&] { return metrics_text(fixture.subjects()); };
  CHECK(text().find("_capacity_") == std::string::npos);
  fixture.options.capacity_provisioner_name = "local-path-capacity";
  CHECK(has_line(text(), "local_path_provisioner_capacity_objects 3"));
  CHECK(has_line(text(), "local_path_provisioner_capacity_writes_total 7"));
  CHECK(has_line(text(), "local_path_provisioner_capacity_failures_total 1"));
}

TEST_CASE("names from the cluster cannot add series without end") {
  BusyFixture fixture;
  for (int i = 0; i < 2000; ++i) {
    const std::string n = std::to_string(i);
    fixture.figures.failed({.kind = operation::Kind::kMake,
                            .volume = "pvc-" + n,
                            .storage_class = "class-" + n,
                            .reason = "Reason" + n});
    k8s::Pod pod;
    pod.phase = "Pending";
    pod.node_name = "node-" + n;
    fixture.helper_pods.put({"ns", n}, std::make_shared<const k8s::Pod>(pod));
  }
  const std::string text = fixture.text();
  CHECK(text.size() < 300'000);
  CHECK(text.find(R"(helper_pods{phase="Pending",node="other"} 15)") != std::string::npos);
  CHECK(text.find(R"(provision_failed_total{class="other",source="other"})") != std::string::npos);
}

TEST_CASE("a label's value is escaped") {
  BusyFixture fixture;
  fixture.figures.failed({.kind = operation::Kind::kRemove, .storage_class = "a\"b\\c\nd"});
  CHECK(fixture.text().find(R"(delete_failed_total{class="a\"b\\c\nd"} 1)") != std::string::npos);
}

TEST_CASE("the process's own figures are those of proc, whatever the program is called") {
  const TempDir folder;
  std::filesystem::create_directories(folder.path() + "/self/fd");
  for (const char* fd : {"0", "1", "2"}) std::ofstream(folder.path() + "/self/fd/" + fd) << "";
  std::ofstream(folder.path() + "/stat") << "cpu  1 2 3\nbtime 1700000000\nprocesses 5\n";
  std::ofstream(folder.path() + "/self/stat")
      << "42 (a ) b) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 9 0 1000 123456 25 "
         "18446744073709551615 0\n";
  auto values = series_of(process_metrics(folder.path()));
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  CHECK(values["process_cpu_seconds_total"] == 200 / ticks);
  CHECK(values["process_start_time_seconds"] == 1'700'000'000 + 1000 / ticks);
  CHECK(values["process_virtual_memory_bytes"] == 123456);
  CHECK(values["process_resident_memory_bytes"] == 25 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  CHECK(values["process_max_fds"] > 0);
  // The opened folder's own descriptor is not among the files of this one.
  CHECK(values["process_open_fds"] == 2);
  CHECK(process_metrics(folder.path() + "/none").empty());
}
