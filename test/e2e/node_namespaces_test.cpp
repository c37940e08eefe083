// SPDX-License-Identifier: Apache-2.0
// examples/separate-namespace on a real control plane: its roles are enough for a daemon elsewhere,
// and its helper pods run as an account that may do nothing.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "disk.h"
#include "harness/applied_objects.h"
#include "harness/yaml_objects.h"
#include "places/places.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

/// The example's objects, without its Deployment; those of the manifest again when it goes.
class SeparateNamespace {
 public:
  SeparateNamespace() {
    LPP_MUST(apply_manifest(*admin_, required_setting("LPP_E2E_SEPARATE_NAMESPACE")));
  }
  ~SeparateNamespace() {
    const auto restored = apply_manifest(*admin_, repository("deploy/local-path-storage.yaml"));
    CHECK(restored.ok());
  }
  SeparateNamespace(const SeparateNamespace&) = delete;
  SeparateNamespace& operator=(const SeparateNamespace&) = delete;

  /// A token of the daemon's ServiceAccount.
  std::string token() {
    const k8s::Resource tokens{"", "v1",
                               "serviceaccounts/local-path-provisioner-service-account/token",
                               "TokenRequest", true};
    const json request = {{"apiVersion", "authentication.k8s.io/v1"},
                          {"kind", "TokenRequest"},
                          {"spec", {{"expirationSeconds", 3600}}}};
    return LPP_MUST(
        admin_->api().create(tokens, "local-path-provisioner", request))["status"]["token"];
  }
  /// The words after "start" of the Deployment's command.
  std::vector<std::string> arguments() {
    for (const json& object :
         LPP_MUST(read_yaml_objects(required_setting("LPP_E2E_SEPARATE_NAMESPACE")))) {
      if (object["kind"] != "Deployment") continue;
      const json container = object["spec"]["template"]["spec"]["containers"][0];
      CHECK(container["env"][0]["value"] == kDaemonNamespace);
      std::vector<std::string> words = container["command"];
      return {words.begin() + 2, words.end()};
    }
    FAIL("the example has no Deployment");
    return {};
  }

 private:
  const std::unique_ptr<Kube> admin_ =
      LPP_MUST(Kube::from_kubeconfig(required_setting("LPP_E2E_KUBECONFIG")));
};

TEST_CASE(
    "real node: with helper pods in a namespace apart, they have no permissions and no token") {
  // First the bed, which sets aside what test cases before have left: a namespace, too.
  const auto bed = LPP_MUST(RealBed::create());
  SeparateNamespace example;
  bed->use_daemon_token(example.token());
  const std::string folder = required_setting("LPP_E2E_LOGS") + "/separate-namespace";
  std::filesystem::create_directories(folder);
  const auto installation =
      LPP_MUST(Installation::create(*bed, {.daemon = required_setting("LPP_E2E_DAEMON"),
                                           .folder = folder,
                                           .extra_args = example.arguments(),
                                           .env = {{"POD_NAMESPACE", kDaemonNamespace}}}));
  LPP_MUST(installation->start_daemon());
  LPP_MUST(installation->wait_ready());
  VolumeAudit audit(*bed);
  AppliedObjects applied(LPP_MUST(AppliedObjects::in_namespace(*bed, "apart")));

  // A script that fails leaves its pod to be looked at.
  const k8s::ObjectKey config_map{kDaemonNamespace, "local-path-config"};
  const json before = LPP_MUST(bed->admin().get(k8s::kConfigMaps, config_map));
  LPP_MUST(bed->admin().merge(k8s::kConfigMaps, config_map,
                              {{"data", {{"setup", "#!/bin/sh\nls /var/run/secrets; exit 3\n"}}}}));
  LPP_MUST(applied.apply(
      claim_object({.key = applied.key("data"), .selected_node = bed->nodes().front()})));
  LPP_MUST(wait_event(*bed, "PersistentVolumeClaim", applied.key("data"),
                      {"ProvisioningFailed", "exit code 3", "No such file or directory"}));
  // Those of the case before may still be on their way out. A second later the next try begins, and
  // then this one's pod goes.
  const auto claim = LPP_MUST(bed->admin().get(k8s::kPersistentVolumeClaims, applied.key("data")));
  std::vector<json> pods;
  LPP_MUST(wait_until(
      "the claim has a helper pod",
      [&]() -> std::string {
        auto all = bed->admin().list(k8s::kPods, kDaemonNamespace);
        if (!all.ok()) return all.error().message;
        pods = *std::move(all);
        std::erase_if(pods, [&](const json& pod) {
          const auto name = pod["metadata"]["name"].get<std::string>();
          return name.find(claim["metadata"]["uid"].get<std::string>()) == std::string::npos;
        });
        return pods.empty() ? "there is none" : "";
      },
      bed->patience()));
  for (const json& pod : pods) {
    CHECK(pod["spec"]["serviceAccountName"] == "local-path-helper");
    for (const json& volume : pod["spec"]["volumes"]) CHECK_FALSE(volume.contains("projected"));
  }
  LPP_MUST(bed->admin().merge(k8s::kConfigMaps, config_map, {{"data", before["data"]}}));

  LPP_MUST(applied.apply(pod_object(
      {.key = applied.key("data"), .claim = "data", .script = "echo data >/data/file"})));
  LPP_MUST(applied.wait_succeeded("data"));
  const auto facts = LPP_MUST(audit.wait_bound(applied.key("data")));
  CHECK(text_of(facts.disk + "/file") == "data\n");
  LPP_MUST(applied.remove_pods());
  LPP_MUST(applied.remove_claims());
  LPP_MUST(audit.wait_deleted(applied.key("data"), facts));
  LPP_MUST(audit.wait_clean());
  CHECK(installation->log_text().find("forbidden") == std::string::npos);
  LPP_MUST(installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
