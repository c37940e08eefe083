// SPDX-License-Identifier: Apache-2.0
// Nothing that the daemon or a command says holds a secret, whatever goes wrong.

#include <doctest/doctest.h>

#include "agent/protocol.h"
#include "harness/command_run.h"
#include "harness/raw_client.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

constexpr const char* kSecret = "hushhush";

/// A template with a secret in a variable, and `more` lines in its container.
std::string helper_pod(const std::string& more) {
  return std::string(
             "apiVersion: v1\nkind: Pod\nmetadata: {name: helper-pod, annotations: {note: ") +
         kSecret +
         "}}\nspec:\n  containers:\n  - name: helper-pod\n    image: busybox\n    env: [{name: "
         "PASSWORD, value: " +
         kSecret + "}]\n" + more;
}

void check_without(const std::string& told, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    const auto at = told.find(secret);
    const auto begin = at == std::string::npos || at < 300 ? 0 : at - 300;
    CHECK_MESSAGE(at == std::string::npos, told.substr(begin, 600));
  }
}

TEST_CASE("no log line, event, page or command tells a token, an annotation or a pod's variable") {
  StoryBed story({"--log-level=debug"});
  const auto map_key = k8s::ObjectKey{kDaemonNamespace, "local-path-config"};
  const std::map<std::string, std::string> note{{"example.com/password", kSecret}};
  LPP_MUST(story.admin().merge(
      k8s::kConfigMaps, map_key,
      {{"metadata", {{"annotations", note}}},
       {"data", {{"other.conf", kSecret}, {"helperPod.yaml", helper_pod("")}}}}));
  LPP_MUST(story.admin().apply(class_object({.name = "noted", .annotations = note})));
  LPP_MUST(story.admin().apply(namespace_object("app")));
  story.start();

  // A volume that comes and goes.
  const k8s::ObjectKey data{"app", "data"};
  LPP_MUST(story.admin().create(claim_object(
      {.key = data, .storage_class = "noted", .selected_node = "node-1", .annotations = note})));
  const auto volume = LPP_MUST(story.audit.wait_bound(data));
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumes, {"", volume.pv},
                               {{"metadata", {{"annotations", note}}}}));
  // Calls that fail, a script that fails, a template and a configuration that are refused.
  story.bed->cluster().faults().add(
      devcluster::on("create pods").times(2).reply(500, "InternalError"));
  const std::string good = change_script(story, "setup", "echo 'no bees here' >&2; exit 7");
  const k8s::ObjectKey bad{"app", "bad"};
  LPP_MUST(story.admin().create(
      claim_object({.key = bad, .selected_node = "node-2", .annotations = note})));
  wait_for_event(story, bad, "ProvisioningFailed", "no bees here");
  for (const char* more :
       {"    securityContext: {privileged: true}\n", "    env: 5\n", "  x: [\n"}) {
    const std::size_t before = text_of(story.installation->log_file()).size();
    LPP_MUST(story.admin().merge(k8s::kConfigMaps, map_key,
                                 {{"data", {{"helperPod.yaml", helper_pod(more)}}}}));
    wait_for(story, "the template is judged", [&]() -> std::string {
      const std::string log = text_of(story.installation->log_file()).substr(before);
      return log.find("helperPod.yaml") != std::string::npos ? "" : story.installation->log_tail();
    });
  }
  LPP_MUST(story.installation->write_config({{"password", kSecret}}));
  wait_for_log(story, "configuration refused, the last good one stays in force");

  std::string told;
  for (const char* path : {"/metrics", "/statusz", "/readyz?verbose", "/livez?verbose"}) {
    told += page(story, path);
  }
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"volumes", "-A"},
        {"volumes", "-A", "-o", "wide"},
        {"volumes", "-A", "-o", "json"},
        {"volumes", "-A", "-o", "yaml"},
        {"volumes", "app/data", "app/bad"},
        {"history"},
        {"history", "-o", "json"},
        {"explain-path", "app/bad", "--config", story.installation->config_file()},
        {"explain-path", "app/bad"},
        {"check"},
        {"check", "-o", "json"}}) {
    told += LPP_MUST(run_command({.program = daemon_program(),
                                  .args = args,
                                  .env = {{"KUBECONFIG", story.bed->cluster().kubeconfig()}}},
                                 std::chrono::seconds(is_sanitized() ? 60 : 20)))
                .text;
  }

  restore_script(story, "setup", good);
  LPP_MUST(story.admin().merge(k8s::kConfigMaps, map_key,
                               {{"data", {{"helperPod.yaml", helper_pod("")}}}}));
  // At last: it has the claim tried again, which after one more failure would have to wait long.
  LPP_MUST(story.installation->write_config(story.installation->default_config()));
  LPP_MUST(story.audit.wait_bound(bad));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, data));
  LPP_MUST(story.audit.wait_deleted(data, volume));
  LPP_MUST(story.installation->stop_daemon());
  told += story.installation->log_text();
  for (const auto& event : LPP_MUST(story.admin().list(k8s::kEvents))) told += event.dump();

  CHECK(told.find("no bees here") != std::string::npos);  // it was looked at
  check_without(told, {kSecret, story.bed->daemon_token()});
}

TEST_CASE("no log line and page of an agent and of who serves it tells a token or a key") {
  StoryBed story({"--log-level=debug"}, {.manifest = repository("deploy/local-path-storage.yaml")},
                 By::kAgents);
  LPP_MUST(story.admin().apply(namespace_object("app")));
  story.start();
  const std::string token = text_of(story.agents->token_file("node-1"));
  REQUIRE(token.size() > 20);
  const k8s::ObjectKey data{"app", "data"};
  LPP_MUST(story.admin().create(claim_object(
      {.key = data, .selected_node = "node-1", .annotations = {{"example.com/p", kSecret}}})));
  const auto volume = LPP_MUST(story.audit.wait_bound(data));
  std::string told;
  for (const std::string& wrong : {token + kSecret, std::string(kSecret)}) {
    RawClient client(story.agents->port());
    REQUIRE(client.connected());
    const auto refused =
        client.ask(std::string(agent::kHelloTarget), wrong, encode(agent::Hello{}));
    CHECK(refused.status == 401);
    told += refused.body;
  }
  // A key that is lost makes work for whoever keeps it.
  LPP_MUST(story.admin().remove(kSecrets, {kDaemonNamespace, "local-path-provisioner-agents-tls"}));
  for (const char* path : {"/metrics", "/statusz", "/readyz?verbose"}) {
    told += page(story, path);
  }
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, data));
  LPP_MUST(story.audit.wait_deleted(data, volume));
  LPP_MUST(story.installation->stop_daemon());
  told += story.installation->log_text();
  for (const char* node : {"node-1", "node-2"}) told += text_of(story.agents->log_file(node));
  for (const auto& event : LPP_MUST(story.admin().list(k8s::kEvents))) told += event.dump();
  check_without(told, {kSecret, token, "PRIVATE KEY"});
}

}  // namespace
}  // namespace lpp::testing
