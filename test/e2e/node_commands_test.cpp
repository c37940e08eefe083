// SPDX-License-Identifier: Apache-2.0
// The commands besides start, and the pages of the daemon, where RBAC, Pod Security and kubectl are
// the real ones.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "account.h"
#include "disk.h"
#include "fakes/needs.h"
#include "harness/applied_objects.h"
#include "harness/command_run.h"
#include "harness/http_get.h"
#include "places/places.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kLimit{30};
const k8s::ObjectKey kDaemonAccount{kDaemonNamespace, "local-path-provisioner-service-account"};
constexpr const char* kRbac = "rbac.authorization.k8s.io";
constexpr k8s::Resource kRoles{kRbac, "v1", "roles", "Role", true};
constexpr k8s::Resource kClusterRoleBindings{kRbac, "v1", "clusterrolebindings",
                                             "ClusterRoleBinding", false};

/// A command with somebody's kubeconfig.
CommandOutput ask(std::vector<std::string> args, const std::string& kubeconfig = {}) {
  const std::string file = kubeconfig.empty() ? required_setting("LPP_E2E_KUBECONFIG") : kubeconfig;
  return LPP_MUST(run_command({.program = required_setting("LPP_E2E_DAEMON"),
                               .args = std::move(args),
                               .env = {{"KUBECONFIG", file}}},
                              kLimit));
}

void check_says(const CommandOutput& output, const std::string& part) {
  CAPTURE(output.text);
  CAPTURE(part);
  CHECK(output.says(part));
}

/// An object as it was before, when this goes.
class Changed {
 public:
  Changed(Kube& kube, const k8s::Resource& resource, const k8s::ObjectKey& key, const json& patch)
      : kube_(kube), resource_(resource), key_(key), before_(LPP_MUST(kube.get(resource, key))) {
    LPP_MUST(kube.merge(resource, key, patch));
  }
  ~Changed() { restore(); }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

  void restore() {
    if (restored_) return;
    restored_ = true;
    json patch = {{"metadata", {{"labels", before_["metadata"].value("labels", json::object())}}}};
    if (before_.contains("rules")) patch["rules"] = before_["rules"];
    CHECK(kube_.merge(resource_, key_, patch).ok());
  }

 private:
  Kube& kube_;
  const k8s::Resource resource_;
  const k8s::ObjectKey key_;
  const json before_;
  bool restored_ = false;
};

/// The manifest's Role without one resource, which several rules may name.
json role_without(Kube& kube, const std::string& resource) {
  const json role = LPP_MUST(kube.get(kRoles, {kDaemonNamespace, "local-path-provisioner-role"}));
  json rules = json::array();
  for (const json& rule : role["rules"]) {
    if (rule["resources"] != json::array({resource})) rules.push_back(rule);
  }
  REQUIRE(rules.size() < role["rules"].size());
  return {{"rules", rules}};
}

/// Once it is served: a connection that had to wait for three seconds is dropped.
std::string page(RealStory& story, const std::string& path) {
  std::string body;
  LPP_MUST(wait_until(
      path + " is served",
      [&]() -> std::string {
        const auto answer = http_get(story.installation->daemon().health_port(), path);
        if (!answer.ok()) return answer.error().message;
        body = answer->body;
        return "";
      },
      story.bed->patience()));
  return body;
}

void wait_for_page(RealStory& story, const std::string& path,
                   const std::vector<std::string>& parts) {
  LPP_MUST(wait_until(
      path,
      [&]() -> std::string {
        const auto answer = http_get(story.installation->daemon().health_port(), path);
        if (!answer.ok()) return answer.error().message;
        const std::string& text = answer->body;
        for (const std::string& part : parts) {
          if (text.find(part) == std::string::npos) return "no \"" + part + "\" in\n" + text;
        }
        return "";
      },
      story.bed->patience()));
}

TEST_CASE("real node: kubectl local-path and the pages say where a claim is") {
  RealStory story("commands");
  story.start();
  auto applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "commands"));
  const std::string node = story.bed->nodes().front();
  LPP_MUST(applied.apply(claim_object({.key = applied.key("data")})));

  // As a plugin: kubectl finds the program by its name on the PATH.
  const std::string bin = story.folder + "/bin";
  std::filesystem::create_directories(bin);
  std::filesystem::remove(bin + "/kubectl-local_path");
  std::filesystem::create_symlink(required_setting("LPP_E2E_DAEMON"), bin + "/kubectl-local_path");
  const auto kubectl = [&](std::vector<std::string> args) {
    args.insert(args.begin(), "local-path");
    return LPP_MUST(run_command({.program = required_setting("LPP_E2E_STATE") + "/bin/kubectl",
                                 .args = std::move(args),
                                 .env = {{"PATH", bin + ":/usr/bin:/bin"},
                                         {"KUBECONFIG", required_setting("LPP_E2E_KUBECONFIG")}}},
                                kLimit));
  };
  const auto pending = kubectl({"volumes", "-n", "commands", "data"});
  CHECK(pending.code == 0);
  check_says(pending, "waits for the first pod that uses it");
  check_says(kubectl({"volumes", "--help"}), "kubectl local-path volumes");

  const auto before = ask({"explain-path", "commands/data", "--node", node, "--config",
                           story.installation->config_file(), "-o", "json"});
  CHECK(before.code == 0);
  LPP_MUST(applied.apply(
      pod_object({.key = applied.key("data"), .claim = "data", .script = "echo x >/data/file"})));
  const auto facts = LPP_MUST(story.audit.wait_bound(applied.key("data")));
  CHECK(json::parse(before.text)["answers"][0]["path"] == facts.path);
  const auto bound = kubectl({"volumes", "-n", "commands", "data", "-o", "json"});
  CHECK(json::parse(bound.text)["items"][0]["path"] == facts.path);
  CHECK(json::parse(bound.text)["items"][0]["node"] == node);
  LPP_MUST(wait_event(*story.bed, "PersistentVolumeClaim", applied.key("data"),
                      {"Successfully provisioned volume"}));
  check_says(ask({"history", "--since", "1h"}), "Successfully provisioned volume " + facts.pv);
  const auto check = ask({"check"});
  CHECK(check.code == 0);
  check_says(check, "Result:    ok");
  check_says(check, " permissions");

  wait_for_page(story, "/metrics",
                {"\ncontroller_persistentvolumeclaim_provision_total{class=\"local-path\"",
                 "\nrest_client_requests_total{code=\"201\"", "\nleader_election_master_status{"});
  wait_for_page(story, "/readyz?verbose", {"[+]leader-election ok", "readyz check passed"});
  wait_for_page(story, "/livez?verbose", {"livez check passed"});
  wait_for_page(
      story, "/statusz",
      {"leader: serves claims", "Configuration in force", story.bed->base_paths().front()});
  LPP_MUST(applied.remove_pods());
  LPP_MUST(applied.remove_claims());
  LPP_MUST(story.audit.wait_deleted(applied.key("data"), facts));
  LPP_MUST(story.installation->stop_daemon());
}

// NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs
const bool kHasPromtool = std::system("command -v promtool >/dev/null") == 0;

TEST_CASE("real node: promtool has nothing to say about the metrics" *
          Needs(kHasPromtool, "not here: promtool")) {
  RealStory story("commands-metrics");
  story.start();
  auto applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "commands"));
  LPP_MUST(applied.apply(claim_object({.key = applied.key("data")})));
  LPP_MUST(applied.apply(
      pod_object({.key = applied.key("data"), .claim = "data", .script = "echo x >/data/file"})));
  const auto facts = LPP_MUST(story.audit.wait_bound(applied.key("data")));
  write_text(story.folder + "/metrics", page(story, "/metrics"));
  const auto judged = LPP_MUST(
      run_command({.program = "/bin/sh",
                   .args = {"-c", "exec promtool check metrics <" + story.folder + "/metrics"}},
                  kLimit));
  CHECK(judged.code == 0);
  CHECK(judged.text == "");
  LPP_MUST(applied.remove_pods());
  LPP_MUST(applied.remove_claims());
  LPP_MUST(story.audit.wait_deleted(applied.key("data"), facts));
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real node: an account that may not look is told which right it lacks") {
  RealStory story("commands-rights");
  auto applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "commands"));
  const k8s::ObjectKey guest = applied.key("guest");
  LPP_MUST(applied.apply(
      {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", guest.name}}}}));
  LPP_MUST(applied.apply(claim_object({.key = applied.key("data")})));
  const std::string kubeconfig = story.folder + "/guest.kubeconfig";
  write_kubeconfig(*story.bed, guest, kubeconfig);

  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"volumes"}, {"explain-path", "data"}}) {
    CAPTURE(args.front());
    const auto refused = ask(args, kubeconfig);
    CHECK(refused.code == 1);
    check_says(refused, "User \"system:serviceaccount:commands:guest\" cannot");
  }
  const auto blind = ask({"check"}, kubeconfig);
  check_says(blind, "not checked: ");
  check_says(blind, "is forbidden");

  // Enough to see volumes: the rest is noted, not missed.
  const std::string reader = "commands-reader";
  const json name = {{"name", reader}};
  LPP_MUST(story.admin().apply(
      {{"apiVersion", std::string(kRbac) + "/v1"},
       {"kind", "ClusterRole"},
       {"metadata", name},
       {"rules", json::array({{{"apiGroups", {"", "storage.k8s.io"}},
                               {"resources",
                                {"persistentvolumes", "persistentvolumeclaims", "storageclasses"}},
                               {"verbs", {"get", "list"}}}})}}));
  LPP_MUST(story.admin().apply(
      {{"apiVersion", std::string(kRbac) + "/v1"},
       {"kind", "ClusterRoleBinding"},
       {"metadata", name},
       {"roleRef", {{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", reader}}},
       {"subjects",
        json::array(
            {{{"kind", "ServiceAccount"}, {"namespace", guest.ns}, {"name", guest.name}}})}}));
  LPP_MUST(wait_until(
      "the account may look",
      [&] {
        const auto output = ask({"volumes"}, kubeconfig);
        return output.code == 0 ? "" : output.text;
      },
      story.bed->patience()));
  const auto partly = ask({"volumes"}, kubeconfig);
  check_says(partly, "data");
  check_says(partly, "Pending");
  check_says(partly, "note: ");
  LPP_MUST(story.admin().remove(kClusterRoleBindings, {"", reader}));
  LPP_MUST(story.admin().remove(kClusterRoles, {"", reader}));
  LPP_MUST(applied.remove_claims());
}

TEST_CASE(
    "real node: a permission for leases that is taken away is named by check, readyz and the log") {
  RealStory story("commands-lease");
  story.may_be_forbidden = true;
  // The daemon's own account, in its pod: a question about oneself is always allowed.
  write_pod_token(*story.bed, kDaemonAccount, story.folder);
  write_text(story.folder + "/config/unused", "");
  const auto in_pod = [&] {
    const auto server = story.bed->upstream();
    return LPP_MUST(
        run_command({.program = repository("test/e2e/as-pod.sh"),
                     .args = {story.folder, required_setting("LPP_E2E_DAEMON"), "check"},
                     .env = {{"KUBERNETES_SERVICE_HOST", server.host},
                             {"KUBERNETES_SERVICE_PORT", std::to_string(server.port)},
                             {"POD_NAMESPACE", kDaemonNamespace}}},
                    kLimit));
  };
  const auto sound = in_pod();
  check_says(sound, " permissions");
  CHECK_FALSE(sound.says("may not"));

  Changed role(story.admin(), kRoles, {kDaemonNamespace, "local-path-provisioner-role"},
               role_without(story.admin(), "leases"));
  LPP_MUST(wait_until(
      "the right is gone", [&] { return in_pod().says("leases.coordination") ? "" : "not yet"; },
      story.bed->patience()));
  for (const auto& output : {in_pod(), ask({"check"})}) {
    check_says(output, "update leases.coordination.k8s.io in namespace");
    check_says(output, "--leader-elect does not work");
    check_says(output, "apply the Role");
  }
  CHECK(ask({"check", "--strict"}).code == 1);

  LPP_MUST(story.installation->start_daemon());
  wait_for_page(story, "/readyz", {"[-]leader-election failed: ", "leases", "Role"});
  CHECK(page(story, "/livez") == "ok");
  wait_for_page(story, "/metrics", {"\nlocal_path_provisioner_active 0\n"});
  role.restore();
  wait_for_page(story, "/readyz?verbose", {"[+]leader-election ok"});
  wait_for_page(story, "/metrics", {"\nlocal_path_provisioner_active 1\n"});
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE(
    "real node: Pod Security that refuses the helper pods is named, and healed by the label") {
  RealStory story("commands-security");
  story.may_be_forbidden = true;  // the API server's word for what admission refuses
  story.start();
  auto applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "commands"));
  Changed label(story.admin(), kNamespaces, {"", kDaemonNamespace},
                {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "baseline"}}}}}});
  LPP_MUST(applied.apply(
      claim_object({.key = applied.key("data"), .selected_node = story.bed->nodes().front()})));
  LPP_MUST(wait_event(*story.bed, "PersistentVolumeClaim", applied.key("data"),
                      {"ProvisioningFailed", "violates PodSecurity"}));
  check_says(ask({"volumes", "-n", "commands", "data"}), "violates PodSecurity");
  const auto bad = ask({"check"});
  CHECK(bad.code == 1);
  check_says(bad, "pod-security.kubernetes.io/enforce=privileged");
  label.restore();
  const auto facts = LPP_MUST(story.audit.wait_bound(applied.key("data")));
  CHECK(ask({"check"}).code == 0);
  LPP_MUST(applied.remove_claims());
  LPP_MUST(story.audit.wait_deleted(applied.key("data"), facts));
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
