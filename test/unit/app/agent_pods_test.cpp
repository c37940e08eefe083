// SPDX-License-Identifier: Apache-2.0
#include "app/agent_pods.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fakes/captured_log.h"
#include "fakes/fake_transport.h"
#include "fakes/skipping_clock.h"

// Whether an agent that is not heard may be at work, by its pods.

namespace lpp::app {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct AgentPodsFixture {
  testing::SkippingClock clock;
  testing::FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  AgentPods pods{client, clock, {.ns = "storage", .service_account = "agent"}};
  json items = json::array();
  json conditions = json::array({{{"type", "Ready"}, {"status", "True"}}});
  int node_status = 200;

  AgentPodsFixture() {
    transport.on("GET", "/api/v1/namespaces/storage/pods")
        .always([this](const k8s::Request&) -> Result<k8s::Response> {
          return k8s::Response{.status = 200, .body = json{{"items", items}}.dump()};
        });
    transport.on("GET", "/api/v1/nodes/n1")
        .always([this](const k8s::Request&) -> Result<k8s::Response> {
          return k8s::Response{.status = node_status,
                               .body = json{{"status", {{"conditions", conditions}}}}.dump()};
        });
  }
  static json waiting(const std::string& uid = "u-1") {
    return {
        {"metadata", {{"name", "agent-" + uid}, {"uid", uid}}},
        {"spec", {{"nodeName", "n1"}, {"serviceAccountName", "agent"}}},
        {"status",
         {{"phase", "Pending"},
          {"containerStatuses",
           {{{"name", "agent"},
             {"restartCount", 0},
             {"lastState", json::object()},
             {"state",
              {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "no such image"}}}}}}}}}}};
  }
  json& container() { return items[0]["status"]["containerStatuses"][0]; }
  bool may_work(const std::string& heard = {}) {
    const auto answer = pods.may_work("n1", heard);
    REQUIRE_MESSAGE(answer.ok(), answer.error().message);
    return *answer;
  }
  /// Asked as often as claims ask.
  bool may_work_for(Duration time) {
    bool last = may_work();
    for (Duration passed = {}; passed < time; passed += 5s) {
      clock.advance(5s);
      last = may_work();
    }
    return last;
  }
};

TEST_CASE_FIXTURE(AgentPodsFixture, "the nodes with an agent's pod are asked for once a minute") {
  const auto pod = [](const std::string& node, const std::string& account,
                      const std::string& phase) {
    json made = waiting(node);
    made["spec"] = {{"nodeName", node}, {"serviceAccountName", account}};
    made["status"] = {{"phase", phase}};
    return made;
  };
  items = {pod("n1", "agent", "Running"), pod("n2", "other", "Running"),
           pod("n3", "agent", "Failed"), waiting(), pod("n4", "agent", "Running")};
  items[3]["spec"]["nodeName"] = "n5";  // nothing has run in it
  const auto nodes = [&] {
    const auto answer = pods.nodes_with_one({});
    REQUIRE_MESSAGE(answer.ok(), answer.error().message);
    std::string all;
    for (const auto& node : *answer) all += node + " ";
    return all;
  };
  CHECK(nodes() == "n1 n4 ");
  items.erase(0);
  CHECK(nodes() == "n1 n4 ");
  clock.advance(AgentPods::kAskAgain);
  CHECK(nodes() == "n4 ");
}

TEST_CASE_FIXTURE(AgentPodsFixture, "an agent's pod that does not start for a minute holds none") {
  CHECK_FALSE(may_work());
  items = json::array({waiting()});
  testing::CapturedLog log;
  CHECK(may_work_for(55s));
  const auto warnings = [&] {
    std::vector<std::string> all;
    for (const auto& line : log.take()) {
      if (line.starts_with("warn")) all.push_back(line);
    }
    return all;
  };
  CHECK(warnings().empty());
  CHECK_FALSE(may_work_for(5s));
  const auto said = warnings();
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("agent-u-1 on node n1 does not start") != std::string::npos);
  CHECK(said[0].find("ImagePullBackOff: no such image") != std::string::npos);
  CHECK_FALSE(may_work_for(300s));
  CHECK(warnings().empty());
  // The next one has its minute, too.
  items = json::array({waiting("u-2")});
  CHECK(may_work_for(55s));
  items.push_back(waiting("u-3"));
  CHECK(may_work_for(55s));
  CHECK_FALSE(may_work_for(5s));
  CHECK(warnings().size() == 2);
  // It starts after all.
  items[0]["status"]["phase"] = "Running";
  CHECK(may_work());
}

TEST_CASE_FIXTURE(AgentPodsFixture, "a pod that may have run keeps others away") {
  items = json::array({waiting()});
  bool is_over = false;
  SUBCASE("its agent was heard") {
    CHECK_FALSE(may_work_for(60s));
    CHECK_FALSE(may_work("agent-of-yesterday"));
    CHECK(may_work("agent-u-1"));
    is_over = true;
  }
  SUBCASE("by its phase") { items[0]["status"]["phase"] = "Running"; }
  SUBCASE("the phase is not known") { items[0]["status"].erase("phase"); }
  SUBCASE("a container was restarted") { container()["restartCount"] = 1; }
  SUBCASE("a container has ended") {
    container()["lastState"] = {{"terminated", {{"exitCode", 1}}}};
  }
  SUBCASE("a container runs") { container()["state"] = {{"running", json::object()}}; }
  SUBCASE("a container was made") { container()["containerID"] = "containerd://1"; }
  SUBCASE("beside one that has not") {
    items.push_back(waiting("u-2"));
    items[0]["status"]["phase"] = "Running";
  }
  if (is_over) return;
  CHECK(may_work_for(300s));
}

TEST_CASE_FIXTURE(AgentPodsFixture, "of a kubelet that is not heard nothing is believed") {
  items = json::array({waiting()});
  SUBCASE("not now") {
    CHECK_FALSE(may_work_for(60s));
    conditions[0]["status"] = "Unknown";
    CHECK(may_work_for(300s));
    conditions[0]["status"] = "True";
    CHECK(may_work_for(55s));  // it may be ending what ran there
    CHECK_FALSE(may_work_for(5s));
  }
  SUBCASE("it has never spoken") {
    conditions.clear();
    CHECK(may_work_for(300s));
  }
  SUBCASE("nobody can say") {
    node_status = 500;
    CHECK_FALSE(pods.may_work("n1", {}).ok());
  }
}

TEST_CASE_FIXTURE(AgentPodsFixture, "pods that are over or no agent's do not count") {
  items = json::array({waiting("u-1"), waiting("u-2"), waiting("u-3"), json("no pod")});
  items[0]["status"]["phase"] = "Failed";
  items[1]["status"]["phase"] = "Succeeded";
  items[2]["spec"]["serviceAccountName"] = "default";
  CHECK_FALSE(may_work());
}

}  // namespace
}  // namespace lpp::app
