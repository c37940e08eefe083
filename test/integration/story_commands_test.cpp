// SPDX-License-Identifier: Apache-2.0
// The commands besides start, as a user calls them: the program itself, against the embedded
// cluster.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "harness/command_run.h"
#include "harness/yaml_objects.h"
#include "places/places.h"
#include "support/command_desk.h"
#include "support/story_steps.h"
#include "support/trouble.h"

namespace lpp::testing {
namespace {

using Output = CommandOutput;

void grant_to_reader(StoryBed& story, const nlohmann::json& role) {
  LPP_MUST(story.admin().apply(role));
  const nlohmann::json binding{
      {"apiVersion", "rbac.authorization.k8s.io/v1"},
      {"kind", role["kind"].get<std::string>() + "Binding"},
      {"metadata", role["metadata"]},
      {"roleRef",
       {{"apiGroup", "rbac.authorization.k8s.io"},
        {"kind", role["kind"]},
        {"name", role["metadata"]["name"]}}},
      {"subjects",
       nlohmann::json::array(
           {{{"kind", "ServiceAccount"}, {"name", "reader"}, {"namespace", kDaemonNamespace}}})}};
  LPP_MUST(story.admin().apply(binding));
}

/// The kubeconfig of somebody who has the rights of deploy/reader.yaml and no others.
std::string reader_kubeconfig(StoryBed& story) {
  for (const auto& role : LPP_MUST(read_yaml_objects(repository("deploy/reader.yaml")))) {
    grant_to_reader(story, role);
  }
  return LPP_MUST(story.bed->cluster().service_account_kubeconfig(kDaemonNamespace, "reader"));
}

/// Runs a command with the rights of a reader, unless another kubeconfig is given.
Output run(StoryBed& story, std::vector<std::string> args, std::string kubeconfig = {}) {
  if (kubeconfig.empty()) kubeconfig = reader_kubeconfig(story);
  return LPP_MUST(run_command(
      {.program = daemon_program(), .args = std::move(args), .env = {{"KUBECONFIG", kubeconfig}}},
      std::chrono::seconds(is_sanitized() ? 60 : 20)));
}

bool has(const Output& output, const std::string& part) {
  CAPTURE(output.text);
  const bool found = output.text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

/// The one block of a page that begins so.
std::string block_of(const std::string& page, const std::string& begin) {
  const std::string text = text_of(repository(page));
  const auto at = text.find("```yaml\n" + begin);
  REQUIRE(at != std::string::npos);
  const auto from = at + std::string_view("```yaml\n").size();
  return text.substr(from, text.find("```", from) - from);
}

TEST_CASE("with the Role of docs/sizes.md a reader sees how full volumes are and without it not") {
  StoryBed story;
  story.bed->record_no_rights();  // this Role is none of the manifests'
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "data"}, .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound({"app", "data"}));
  CommandDesk desk(story);
  desk.show([&](const std::string& path) -> std::optional<std::string> {
    if (path != "usage") return std::nullopt;
    return R"({"agents":[{"node":"node-1"}],"volumes":[{"volume":")" + volume.pv +
           R"(","usedBytes":95,"capacityBytes":100}]})";
  });
  const std::string reader = reader_kubeconfig(story);
  const auto before = run(story, {"volumes", "-A", "-o", "json"}, reader);
  CHECK(before.code == 0);
  CHECK(before.text.find("\"usedBytes\": 95") == std::string::npos);

  const auto roles =
      LPP_MUST(parse_yaml_objects(block_of("docs/sizes.md", "kind: Role "), "docs/sizes.md"));
  REQUIRE(roles.size() == 1);
  grant_to_reader(story, roles[0]);
  const auto after = run(story, {"volumes", "-A", "-o", "json"}, reader);
  CHECK(after.code == 0);
  has(after, "\"usedBytes\": 95");
}

TEST_CASE("a reader may ask check for all that agents need") {
  StoryBed story;
  story.start();
  for (const auto& object :
       LPP_MUST(read_yaml_objects(repository("test/chart/kustomize/node-agents.diff")))) {
    LPP_MUST(story.admin().apply(object));
  }
  const Output lacking = run(story, {"check"});
  has(lacking, "8 permissions for agents");
  has(lacking, "has not made a certificate yet");
  CHECK(lacking.text.find("not checked") == std::string::npos);
  LPP_MUST(story.admin().apply(
      {{"apiVersion", "v1"},
       {"kind", "ConfigMap"},
       {"metadata",
        {{"name", "local-path-provisioner-agents-ca"}, {"namespace", kDaemonNamespace}}}}));
  const Output whole = run(story, {"check"});
  CAPTURE(whole.text);
  CHECK(whole.text.find("agents-ca") == std::string::npos);
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "volumes answers why a claim is Pending, and shows where a bound one is") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  Trouble trouble(story);
  const std::string said = trouble.fail(Trouble::Kind::kMake, "no bees here");
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "data"}, .selected_node = "node-1"})));
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "idle"}})));
  wait_for_event(story, {"app", "data"}, "ProvisioningFailed", said);

  const Output why = run(story, {"volumes", "-n", "app", "data"});
  CHECK(why.code == 0);
  has(why, "Claim:");
  if (by == By::kHelperPods) has(why, "exit code 7");
  has(why, said);
  has(why, "node-1");
  has(run(story, {"volumes", "-n", "app"}), "waits for the first pod that uses it");
  has(run(story, {"volumes", "app/none"}), "no claim or volume app/none");
  CHECK(run(story, {"volumes", "app/none"}).code == 1);

  trouble.end();
  const auto volume = LPP_MUST(story.audit.wait_bound({"app", "data"}));
  const Output all = run(story, {"volumes", "-A", "-o", "json"});
  CHECK(all.code == 0);
  const auto items = nlohmann::json::parse(all.text)["items"];
  REQUIRE(items.size() == 2);
  CHECK(items[0]["claim"] == "data");
  CHECK(items[0]["phase"] == "Bound");
  CHECK(items[0]["node"] == "node-1");
  CHECK(items[0]["volume"] == volume.pv);
  CHECK(items[0]["problem"] == false);

  wait_for_event(story, {"app", "data"}, "ProvisioningSucceeded");
  const Output told = run(story, {"history", "--since", "1h"});
  CHECK(told.code == 0);
  has(told, said);
  has(told, "Successfully provisioned volume " + volume.pv);
  has(told, "no pod of the provisioner was found");  // the test's daemon is a process

  // Its log cannot be read as long as no node has it.
  for (const char* scheduler : {"nobody", "default-scheduler"}) {
    nlohmann::json pod = pod_object({.key = {kDaemonNamespace, "a-daemon"}});
    pod["spec"]["containers"][0]["command"] = {"local-path-provisioner", "start"};
    pod["spec"]["schedulerName"] = scheduler;
    LPP_MUST(story.admin().create(pod));
    const Output found = run(story, {"history"});
    CHECK(found.text.find("no pod of the provisioner") == std::string::npos);
    if (scheduler == std::string_view("nobody")) {
      has(found, "log of pod local-path-storage/a-daemon: ");
    }
    LPP_MUST(story.admin().remove_and_wait(k8s::kPods, {kDaemonNamespace, "a-daemon"}));
  }
}

LPP_PODS_AND_AGENTS_TEST_CASE("explain-path says beforehand which path the claim then gets") {
  StoryBed story(by);
  LPP_MUST(story.admin().apply(namespace_object("app")));
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "data"}})));
  const Output before = run(story, {"explain-path", "app/data", "--node", "node-2", "--config",
                                    story.installation->config_file(), "-o", "json"});
  CHECK(before.code == 0);
  const std::string path = nlohmann::json::parse(before.text)["answers"][0]["path"];
  story.start();
  LPP_MUST(story.admin().merge(
      k8s::kPersistentVolumeClaims, {"app", "data"},
      {{"metadata",
        {{"annotations",
          {{"volume.kubernetes.io/selected-node", "node-2"},
           {"volume.kubernetes.io/storage-provisioner", "rancher.io/local-path"}}}}}}));
  const auto volume = LPP_MUST(story.audit.wait_bound({"app", "data"}));
  const auto object = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(object["spec"]["hostPath"]["path"] == path);
  has(run(story, {"explain-path", "app/data"}), "already, at " + path);
  const Output none = run(story, {"explain-path", "app/none"});
  CHECK(none.code == 1);
  has(none, "there is no claim app/none");
}

TEST_CASE("check finds the manifest's cluster sound, and what cannot work in it") {
  StoryBed story;
  story.start();
  // The test's daemon is a process: the cluster has no Deployment.
  const Output good = run(story, {"check"});
  CHECK(good.code == 0);
  has(good, "no Deployment runs provisioner rancher.io/local-path");
  has(good, "0 problems, 1 warning");
  LPP_MUST(story.admin().apply(class_object({.name = "bad", .binding_mode = "Immediate"})));
  LPP_MUST(story.admin().merge(
      {"", "v1", "namespaces", "Namespace", false}, {"", kDaemonNamespace},
      {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "baseline"}}}}}}));
  const Output bad = run(story, {"check", "-o", "json"});
  CHECK(bad.code == 1);
  const auto report = nlohmann::json::parse(bad.text);
  CHECK(report["problems"] == 2);
  CHECK(report["ok"] == false);
}

/// The kubeconfig of somebody who may read one namespace, as with Kubernetes' own role `view`.
std::string viewer_kubeconfig(StoryBed& story, const std::string& ns) {
  LPP_MUST(story.admin().apply({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                                {"kind", "Role"},
                                {"metadata", {{"name", "viewer"}, {"namespace", ns}}},
                                {"rules",
                                 {{{"apiGroups", {""}},
                                   {"resources", {"persistentvolumeclaims", "events", "pods"}},
                                   {"verbs", {"get", "list", "watch"}}}}}}));
  LPP_MUST(story.admin().apply(
      {{"apiVersion", "rbac.authorization.k8s.io/v1"},
       {"kind", "RoleBinding"},
       {"metadata", {{"name", "viewer"}, {"namespace", ns}}},
       {"roleRef",
        {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "viewer"}}},
       {"subjects", nlohmann::json::array(
                        {{{"kind", "ServiceAccount"}, {"name", "viewer"}, {"namespace", ns}}})}}));
  return LPP_MUST(story.bed->cluster().service_account_kubeconfig(ns, "viewer"));
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "who may read one namespace learns there why a claim is Pending, and what happened") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  Trouble trouble(story);
  const std::string said = trouble.fail(Trouble::Kind::kMake, "no bees here");
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "data"}, .selected_node = "node-1"})));
  wait_for_event(story, {"app", "data"}, "ProvisioningFailed", said);
  const std::string viewer = viewer_kubeconfig(story, "app");
  const Output why = run(story, {"volumes", "app/data"}, viewer);
  CHECK(why.code == 0);
  has(why, said);
  has(why, "note: list persistentvolumes: ");
  has(run(story, {"history", "-n", "app"}, viewer), said);
  CHECK(run(story, {"volumes", "-A"}, viewer).code == 1);
  // Names are completed with what may be listed.
  const auto wait_completed = [&](const std::vector<std::string>& words, const std::string& names,
                                  const std::string& kubeconfig) {
    // It gives up soon, as a person waits for it, and the machine may be busy.
    wait_for(story, "the names are completed", [&]() -> std::string {
      const Output completed = run(story, words, kubeconfig);
      return completed.text.find(names) != std::string::npos ? "" : completed.text;
    });
  };
  wait_completed({"__complete", "--", "volumes", "-n", "app", ""}, "data\n:4\n", viewer);
  CHECK(run(story, {"__complete", "--", "volumes", "-n", ""}, viewer).text == ":4\n");
  wait_completed({"__complete", "--", "volumes", "-n", "ap"}, "app\n:4\n",
                 story.bed->cluster().kubeconfig());
  // The administrator may ask as somebody else: then that one's permissions count.
  const Output as_viewer = run(story, {"volumes", "-A", "--as", "system:serviceaccount:app:viewer"},
                               story.bed->cluster().kubeconfig());
  CHECK(as_viewer.code == 1);
  has(as_viewer, "app:viewer");
}

/// Runs a line in a shell, with the program as $0.
Output run_line(const std::string& line) {
  return LPP_MUST(run_command({.program = "/bin/sh", .args = {"-c", line, daemon_program()}},
                              std::chrono::seconds(is_sanitized() ? 60 : 20)));
}

TEST_CASE("output that cannot be written is an error, a reader that has left is none") {
  for (const char* line :
       {"\"$0\" version >/dev/full", "\"$0\" --help >/dev/full", "\"$0\" reference >/dev/full",
        "\"$0\" check -f - >/dev/full </dev/null"}) {
    CAPTURE(line);
    const Output output = run_line(line);
    CHECK(output.code == 1);
    has(output, "standard output cannot be written: ");
  }
  for (const char* words : {"reference", "--help", "help volumes"}) {
    CAPTURE(words);
    const std::string line = std::string("{ \"$0\" ") + words + "; echo \"code $?\" >&2; } | true";
    CHECK(run_line(line).text == "code 0\n");
  }
}

TEST_CASE("check reads a manifest from a pipe, by name and from standard input") {
  const std::string manifest =
      "printf 'apiVersion: storage.k8s.io/v1\\nkind: StorageClass\\nmetadata: {name: from-pipe}\\n"
      "provisioner: rancher.io/local-path\\nvolumeBindingMode: WaitForFirstConsumer\\n'";
  for (const std::string& line : {manifest + " | \"$0\" check --strict -f -",
                                  manifest + " | \"$0\" check --strict -f /dev/stdin",
                                  "pipe=$(mktemp -u) && mkfifo \"$pipe\" && { " + manifest +
                                      " >\"$pipe\" & \"$0\" check --strict -f \"$pipe\"; code=$?; "
                                      "rm \"$pipe\"; exit $code; }"}) {
    CAPTURE(line);
    const Output outcome = run_line(line);
    CHECK(outcome.code == 0);
    has(outcome, "StorageClass from-pipe");
  }
}

TEST_CASE("without a cluster, or the permissions, each command says why and fails") {
  StoryBed story;
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"volumes"}, {"check"}, {"explain-path", "a/b"}}) {
    CAPTURE(args.front());
    const Output none = run(story, args, "/nowhere/kubeconfig");
    CHECK(none.code == (args.front() == "check" ? 3 : 1));
    has(none, "local-path-provisioner " + args.front() + ": cannot reach a cluster: ");
    has(none, "/nowhere/kubeconfig does not exist");
  }
  story.bed->cluster().faults().add(
      devcluster::on("list persistentvolumes").reply(403, "Forbidden"));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"volumes", "-A"}, {"explain-path", "a/b"}}) {
    const Output refused = run(story, args);
    CHECK(refused.code == 1);
    has(refused, "list persistentvolumes: ");
  }
  const Output partly = run(story, {"check"});
  has(partly, "list persistentvolumes: ");
}

}  // namespace
}  // namespace lpp::testing
