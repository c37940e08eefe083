// SPDX-License-Identifier: Apache-2.0
// What `check` says of agents: of files and of a cluster.

#include "cli/check_agents.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "cli/check.h"
#include "cli_bed.h"
#include "fakes/builders.h"
#include "harness/rendering.h"
#include "places/places.h"

using namespace lpp::testing;

namespace {

using lpp::k8s::Request;
using lpp::k8s::Response;
using nlohmann::json;

/// The objects of a directory of examples/.
std::vector<json> overlay(const std::string& name = "node-agents") {
  const auto objects = lpp::cli::read_manifest(
      rendering(repository("test/chart/kustomize/" + name + ".diff")).value(), name + ".yaml");
  REQUIRE(objects.ok());
  std::vector<json> out;
  for (const auto& one : *objects) out.push_back(one.object);
  REQUIRE(out.size() > 15);
  return out;
}

json& of_kind(std::vector<json>& objects, const std::string& kind, const std::string& name = {}) {
  for (json& one : objects) {
    if (one["kind"] == kind && (name.empty() || one["metadata"]["name"] == name)) return one;
  }
  FAIL("no " << kind << " " << name);
  return objects.front();
}

void take_out(std::vector<json>& objects, const std::string& kind, const std::string& name = {}) {
  const auto* const gone = &of_kind(objects, kind, name);
  objects.erase(objects.begin() + (gone - objects.data()));
}

json& pod_of(std::vector<json>& objects, const char* kind) {
  return of_kind(objects, kind)["spec"]["template"]["spec"];
}

std::string check_files(const std::vector<json>& objects) {
  CliBed bed;
  bed.files["all.json"] = json{{"kind", "List"}, {"items", objects}}.dump();
  const auto outcome = bed.run({"check", "-f", "all.json"});
  CHECK(outcome.err.empty());
  CHECK(outcome.code == 0);  // helper pods do the work: nothing of it is a problem
  return outcome.out;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kConfigJson = "config.json";

/// For the daemon's pods, with one rule of this port; null = with none.
json network_policy(const json& port, json labels = {{"app", "local-path-provisioner"}}) {
  const json rules = port.is_null() ? json::array() : json::array({{{"ports", {port}}}});
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", {{"name", "daemon"}, {"namespace", "local-path-storage"}}},
          {"spec",
           {{"podSelector", {{"matchLabels", std::move(labels)}}},
            {"policyTypes", {"Ingress"}},
            {"ingress", rules}}}};
}

}  // namespace

TEST_CASE("the shipped agents have no findings") {
  for (const char* const name : {"node-agents", "node-agents-with-limits"}) {
    CAPTURE(name);
    const std::string out = check_files(overlay(name));
    CHECK(says(out, "agents"));
    CHECK(says(out, "Result:    ok\n"));
  }
}

TEST_CASE("without --agents nothing of agents is looked at") {
  auto objects = overlay();
  pod_of(objects, "Deployment")["containers"][0]["env"] = json::array();
  take_out(objects, "DaemonSet");
  const std::string out = check_files(objects);
  CHECK_FALSE(says(out, "agents"));
  CHECK(says(out, "Result:    ok\n"));
}

TEST_CASE("each thing that agents lack is a warning that says what to do") {
  struct Case {
    std::string name{};
    std::function<void(std::vector<json>&)> breaks{};
    std::string says{};
  };
  const std::string daemon_set = "DaemonSet local-path-storage/local-path-provisioner-agent";
  const std::vector<Case> cases{
      {"no DaemonSet", [](auto& all) { take_out(all, "DaemonSet"); },
       "is started with --agents, and no DaemonSet in namespace local-path-storage runs them"},
      {"another DaemonSet",
       [](auto& all) {
         pod_of(all, "DaemonSet")["containers"][0]["command"] = {"/bin/other", "agent"};
         pod_of(all, "DaemonSet")["containers"][0]["image"] = "other";
       },
       "no DaemonSet in namespace"},
      {"no account",
       [](auto& all) { take_out(all, "ServiceAccount", "local-path-provisioner-agent"); },
       "ServiceAccount local-path-storage/local-path-provisioner-agent\n           does not exist"},
      {"another account",
       [](auto& all) { pod_of(all, "DaemonSet")["serviceAccountName"] = "other"; },
       daemon_set + ": spec.template.spec.serviceAccountName\n           is other, and the "
                    "provisioner serves local-path-provisioner-agent only"},
      {"no Service", [](auto& all) { take_out(all, "Service"); },
       "Service local-path-storage/local-path-provisioner-agents\n           does not exist"},
      {"a Service of other pods",
       [](auto& all) {
         of_kind(all, "Service")["spec"]["selector"] = {{"app", "other"}};
       },
       "app does not match the pods of Deployment local-path-storage/local-path-provisioner"},
      {"a Service of another port",
       [](auto& all) { of_kind(all, "Service")["spec"]["ports"][0]["targetPort"] = "health"; },
       "none leads to port 8443"},
      {"a NetworkPolicy that does not know of them",
       [](auto& all) {
         all.push_back(network_policy({{"port", "health"}}));
       },
       "NetworkPolicy local-path-storage/daemon: spec.ingress\n           does not admit port "
       "8443"},
      {"no role for tokens",
       [](auto& all) { take_out(all, "ClusterRole", "local-path-provisioner-agents"); },
       "no role in the files allows to create tokenreviews"},
      {"a role without the namespace",
       [](auto& all) {
         of_kind(all, "ClusterRole", "local-path-provisioner-agents")["rules"].erase(1);
       },
       "no role in the files allows to get namespaces kube-system"},
      {"a role for another Secret",
       [](auto& all) {
         of_kind(all, "Role", "local-path-provisioner-agents")["rules"][1]["resourceNames"] = {"a"};
       },
       "no role in the files allows to get secrets local-path-provisioner-agents-tls"},
      {"no token",
       [](auto& all) { pod_of(all, "DaemonSet")["volumes"][0]["projected"] = json::object(); },
       daemon_set + "\n           has no token for the audience local-path-provisioner-agent"},
      {"a token for others",
       [](auto& all) {
         pod_of(all, "DaemonSet")["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]
                                 ["audience"] = "other";
       },
       "has no token for the audience"},
      {"no certificate",
       [](auto& all) { pod_of(all, "DaemonSet")["volumes"][1]["configMap"]["name"] = "a"; },
       "does not mount the ConfigMap local-path-provisioner-agents-ca"},
      {"a path that is not mounted",
       [](auto& all) {
         of_kind(all, "ConfigMap")["data"][kConfigJson] =
             R"({"nodePathMap": [{"node": "n1", "paths": ["/opt/local-path-provisioner", "/mnt/b"]}],
                 "storageClassConfigs": {"local-path": {"nodePathMap": [{"node":
                 "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/mnt/a/"]}]}}})";
       },
       daemon_set + "\n           does not mount /mnt/a, /mnt/b: helper pods serve"},
      {"a path that config.json has for no node",
       [](auto& all) {
         nlohmann::json& pod = pod_of(all, "DaemonSet");
         pod["volumes"].push_back({{"name", "old"}, {"hostPath", {{"path", "/mnt/old"}}}});
         pod["containers"][0]["volumeMounts"].push_back(
             {{"name", "old"}, {"mountPath", "/mnt/old"}});
       },
       daemon_set + "\n           mounts /mnt/old, which config.json has for no node"},
      {"mounted in another place",
       [](auto& all) {
         pod_of(all, "DaemonSet")["containers"][0]["volumeMounts"][2]["mountPath"] = "/x";
       },
       "does not mount /opt/local-path-provisioner"},
      {"mounted read-only",
       [](auto& all) {
         pod_of(all, "DaemonSet")["containers"][0]["volumeMounts"][2]["readOnly"] = true;
       },
       "does not mount /opt/local-path-provisioner"},
      {"limits without the capability",
       [](auto& all) {
         of_kind(all, "StorageClass")["parameters"] = {{"quota", "hard"}};
       },
       daemon_set + "\n           lacks the capability SYS_ADMIN, which limits need: its agents "
                    "make no volume for StorageClass local-path"},
      {"helper pods elsewhere",
       [](auto& all) {
         pod_of(all, "Deployment")["containers"][0]["env"].push_back(
             {{"name", "POD_NAMESPACE"}, {"value", "helpers"}});
       },
       "--agents serves agents in its own namespace only"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    auto objects = overlay();
    one.breaks(objects);
    const std::string out = check_files(objects);
    CAPTURE(out);
    CHECK(says(out, one.says));
    CHECK(says(out, "fix: "));
    CHECK_FALSE(says(out, "Result:    ok"));
  }
}

TEST_CASE("what is seen by agents in other ways is seen") {
  auto objects = overlay();
  json& daemon_set = of_kind(objects, "DaemonSet");
  json& container = daemon_set["spec"]["template"]["spec"]["containers"][0];
  json& base = daemon_set["spec"]["template"]["spec"]["volumes"][2]["hostPath"]["path"];
  SUBCASE("a directory above the base path") {
    base = "/opt/";
    container["volumeMounts"][2]["mountPath"] = "/opt";
  }
  SUBCASE("all of the node, below --root") {
    base = "/";
    container["volumeMounts"][2]["mountPath"] = "/host";
    container["command"] = {"local-path-provisioner", "agent", "--root=/host"};
  }
  SUBCASE("a base path below --root") {
    container["volumeMounts"][2]["mountPath"] = "/host/opt/local-path-provisioner";
    container["command"] = {"local-path-provisioner", "agent", "--root", "/host/"};
  }
  SUBCASE("each of two DaemonSets mounts its own") {
    json other = daemon_set;
    other["metadata"]["name"] = "agent-of-disks";
    other["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][2]["mountPath"] = "/mnt/b";
    other["spec"]["template"]["spec"]["volumes"][2]["hostPath"]["path"] = "/mnt/b";
    of_kind(objects, "ConfigMap")["data"][kConfigJson] =
        R"({"nodePathMap": [{"node": "n1", "paths": ["/opt/local-path-provisioner", "/mnt/b"]}]})";
    objects.push_back(other);
  }
  SUBCASE("limits with the capability, and no setup script that knows them") {
    container["securityContext"]["capabilities"]["add"].push_back("SYS_ADMIN");
    of_kind(objects, "StorageClass")["parameters"] = {{"quota", "hard"}, {"overcommit", "false"}};
  }
  SUBCASE("a Service that names the port by its number") {
    of_kind(objects, "Service")["spec"]["ports"][0]["targetPort"] = 8443;
  }
  CHECK(says(check_files(objects), "Result:    ok\n"));
}

TEST_CASE("roles are not asked for where the files have none") {
  auto objects = overlay();
  std::erase_if(objects, [](const json& one) {
    return one["kind"] == "Role" || one["kind"] == "ClusterRole";
  });
  CHECK(says(check_files(objects), "Result:    ok\n"));
}

TEST_CASE("the rights for agents are those that deploy/agents grants") {
  std::set<std::string> granted;
  const auto objects =
      lpp::cli::read_manifest(repository_text("deploy/agents/rbac.yaml"), "rbac.yaml");
  REQUIRE(objects.ok());
  for (const auto& one : *objects) {
    const auto kind = one.object["kind"].get<std::string>();
    if (kind != "Role" && kind != "ClusterRole") continue;
    for (const auto& rule : one.object["rules"]) {
      for (const auto& resource : rule["resources"]) {
        for (const auto& verb : rule["verbs"]) {
          const json names = rule.value("resourceNames", json::array({""}));
          granted.insert(kind + " " + verb.get<std::string>() + " " + resource.get<std::string>() +
                         " " + names[0].get<std::string>());
        }
      }
    }
  }
  std::set<std::string> asked;
  for (const auto& right : lpp::cli::agent_rights()) {
    using Name = lpp::cli::Right::Name;
    const char* const name = right.name == Name::kAgentsSecret ? "local-path-provisioner-agents-tls"
                             : right.name == Name::kAgentsConfigMap
                                 ? "local-path-provisioner-agents-ca"
                             : right.name == Name::kKubeSystem ? "kube-system"
                                                               : "";
    asked.insert(std::string(right.in_namespace ? "Role " : "ClusterRole ") +
                 std::string(right.verb) + " " + std::string(right.resource) + " " + name);
  }
  CHECK(asked == granted);
}

namespace {

Response api_answer(const json& body, int status = 200) {
  return {.status = status, .body = body.dump(), .content_type = "application/json"};
}

/// A cluster with the overlay, unless a test answers first.
struct AgentCluster : CliBed {
  std::vector<json> objects = overlay();
  std::vector<json> policies{};
  std::set<std::string> asked{};
  std::string may_not{};  // "verb resource"

  std::string check() {
    transport->on("GET", "/version").always([](const auto&) {
      return api_answer({{"gitVersion", "v1.31.0"}});
    });
    transport->on("POST", "subjectaccessreviews").always([this](const Request& request) {
      const json what = json::parse(request.body)["spec"]["resourceAttributes"];
      const std::string which =
          what["verb"].get<std::string>() + " " + what["resource"].get<std::string>();
      asked.insert(which + " " + what.value("name", "") + " " + what.value("namespace", ""));
      return api_answer({{"status", {{"allowed", which != may_not}}}}, 201);
    });
    const auto serve_one = [this](const std::string& path, const char* kind, const char* name) {
      const json body = of_kind(objects, kind, name);
      transport->on("GET", path + name).always([body](const auto&) { return api_answer(body); });
    };
    serve_one("/serviceaccounts/", "ServiceAccount", "local-path-provisioner-agent");
    serve_one("/services/", "Service", "local-path-provisioner-agents");
    serve_one("/configmaps/", "ConfigMap", "local-path-config");
    transport->on("GET", "/configmaps/local-path-provisioner-agents-ca").always([](const auto&) {
      return api_answer(config_map("local-path-provisioner-agents-ca").data("ca.crt", "x").json());
    });
    json deployment = of_kind(objects, "Deployment");
    deployment["status"] = {{"readyReplicas", 1}};
    serve("/deployments", {deployment});
    serve("/daemonsets", {of_kind(objects, "DaemonSet")});
    serve("/networkpolicies", policies);
    serve("/storageclasses", {of_kind(objects, "StorageClass")});
    serve("/nodes?", {node("n1").json()});
    serve_one("/namespaces/", "Namespace", "local-path-storage");
    serve_nothing_else();
    const auto outcome = run({"check"});
    CHECK(outcome.err.empty());
    CHECK(outcome.code == 0);
    return outcome.out;
  }
};

}  // namespace

TEST_CASE("a cluster with agents is asked for all that they need") {
  AgentCluster cluster;
  const std::string out = cluster.check();
  CAPTURE(out);
  CHECK(says(out, "30 permissions, 8 permissions for agents, "));
  CHECK(says(out, "Result:    ok\n"));
  CHECK(cluster.asked.contains("create tokenreviews  "));
  CHECK(cluster.asked.contains("create secrets  local-path-storage"));
  CHECK(cluster.asked.contains(
      "update secrets local-path-provisioner-agents-tls local-path-storage"));
  CHECK(
      cluster.asked.contains("get configmaps local-path-provisioner-agents-ca local-path-storage"));
}

TEST_CASE("a NetworkPolicy that keeps agents out is told, unless another one lets them in") {
  AgentCluster cluster;
  const char* const finding = "does not admit port 8443";
  SUBCASE("it admits nobody") {
    cluster.policies = {network_policy(nullptr)};
    CHECK(says(cluster.check(), finding));
  }
  SUBCASE("it is about all pods") {
    cluster.policies = {network_policy(nullptr, json::object())};
    CHECK(says(cluster.check(), finding));
  }
  SUBCASE("another one admits them") {
    cluster.policies = {network_policy(nullptr), network_policy({{"port", "agents"}})};
    CHECK_FALSE(says(cluster.check(), finding));
  }
  SUBCASE("it names the number") {
    cluster.policies = {network_policy({{"port", 8443}})};
    CHECK_FALSE(says(cluster.check(), finding));
  }
  SUBCASE("it is in a range") {
    cluster.policies = {network_policy({{"port", 8000}, {"endPort", 9000}})};
    CHECK_FALSE(says(cluster.check(), finding));
  }
  SUBCASE("it is beyond a range") {
    cluster.policies = {network_policy({{"port", 8000}, {"endPort", 8442}})};
    CHECK(says(cluster.check(), finding));
  }
  SUBCASE("it is about other pods") {
    cluster.policies = {network_policy(nullptr, {{"app", "other"}})};
    CHECK_FALSE(says(cluster.check(), finding));
  }
}

TEST_CASE("a permission that agents need is a warning, with the file that grants it") {
  AgentCluster cluster;
  cluster.may_not = "create tokenreviews";
  const std::string out = cluster.check();
  CHECK(says(out, "may not create tokenreviews.authentication.k8s.io; no agent is served\n"));
  CHECK(says(out, "deploy/agents/rbac.yaml"));
}

TEST_CASE("agents that are not ready, and none at all, are told") {
  AgentCluster cluster;
  json& status = of_kind(cluster.objects, "DaemonSet")["status"];
  SUBCASE("some") {
    status = {{"desiredNumberScheduled", 5}, {"numberReady", 3}};
    CHECK(says(cluster.check(), "2 of 5 agents are not ready: claims wait"));
  }
  SUBCASE("no node") {
    status = {{"desiredNumberScheduled", 0}, {"numberReady", 0}};
    CHECK(says(cluster.check(), "selects no node"));
  }
  SUBCASE("all") {
    status = {{"desiredNumberScheduled", 5}, {"numberReady", 5}};
    CHECK(says(cluster.check(), "Result:    ok\n"));
  }
}

TEST_CASE("a certificate that nobody has made is told, and what may not be read is a warning") {
  AgentCluster cluster;
  const auto answer = [&](int code, const char* reason) {
    cluster.transport->on("GET", "agents-ca").always([=](const auto&) {
      return api_answer({{"kind", "Status"}, {"reason", reason}, {"message", "no"}, {"code", code}},
                        code);
    });
  };
  SUBCASE("not there") {
    answer(404, "NotFound");
    CHECK(says(cluster.check(), "the provisioner has not made a certificate yet"));
  }
  SUBCASE("forbidden") {
    answer(403, "Forbidden");
    CHECK(says(cluster.check(),
               "ConfigMap local-path-storage/local-path-provisioner-agents-ca\n           not "
               "checked: "));
  }
  SUBCASE("DaemonSets may not be listed") {
    cluster.transport->on("GET", "/daemonsets").always([](const auto&) {
      return api_answer(
          {{"kind", "Status"}, {"reason", "Forbidden"}, {"message", "no"}, {"code", 403}}, 403);
    });
    const std::string out = cluster.check();
    CHECK(says(out, "DaemonSets\n           not checked: "));
    CHECK_FALSE(says(out, "no DaemonSet in namespace"));
  }
}
