// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <variant>

#include "app/options.h"
#include "app/version.h"
#include "cli/check.h"
#include "config/config_parser.h"
#include "helperpod/template.h"
#include "manifest_file.h"

using namespace lpp;
using lpp::testing::ManifestFile;

namespace {

std::string text(const YAML::Node& node) { return node.as<std::string>(); }

/// "group/resource:verb" for everything a role allows, "group/resource/name:verb" by name.
std::set<std::string> rights(const YAML::Node& role) {
  std::set<std::string> out;
  for (const auto& rule : role["rules"]) {
    for (const auto& group : rule["apiGroups"]) {
      for (const auto& resource : rule["resources"]) {
        for (const auto& verb : rule["verbs"]) {
          const std::string what = text(group) + "/" + text(resource);
          if (!rule["resourceNames"]) out.insert(what + ":" + text(verb));
          for (const auto& name : rule["resourceNames"]) {
            out.insert(what + "/" + text(name) + ":" + text(verb));
          }
        }
      }
    }
  }
  return out;
}

YAML::Node container(const ManifestFile& manifest) {
  return manifest.object("Deployment")["spec"]["template"]["spec"]["containers"][0];
}

/// The options the daemon gets from the Deployment's command and environment.
app::Options deployed_options(const ManifestFile& manifest) {
  const auto command = container(manifest)["command"].as<std::vector<std::string>>();
  const auto getenv = [&](const std::string& name) -> std::optional<std::string> {
    for (const auto& variable : container(manifest)["env"]) {
      if (text(variable["name"]) != name) continue;
      return variable["value"] ? text(variable["value"]) : "local-path-storage";
    }
    return std::nullopt;
  };
  REQUIRE(command.at(0) == "local-path-provisioner");
  const auto invocation = app::parse_command_line({command.begin() + 1, command.end()}, getenv);
  REQUIRE(std::holds_alternative<app::Options>(invocation));
  return std::get<app::Options>(invocation);
}

}  // namespace

TEST_CASE("the manifest's configuration is accepted without a warning") {
  const ManifestFile manifest;
  const auto parsed = config::parse_config(manifest.data("config.json"), "config.json");
  if (!parsed.ok()) FAIL(parsed.error().message);
  CHECK(parsed->warnings.empty());
}

TEST_CASE("the manifest's helper pod template is accepted without a warning") {
  const ManifestFile manifest;
  const auto parsed =
      helperpod::parse_template(manifest.data("helperPod.yaml"), "helperPod.yaml", false);
  if (!parsed.ok()) FAIL(parsed.error().message);
  for (const auto& warning : parsed->warnings) FAIL_CHECK(warning);
}

TEST_CASE("the Deployment starts the daemon with options that fit the other objects") {
  const ManifestFile manifest;
  const app::Options options = deployed_options(manifest);
  CHECK(options.warnings.empty());
  CHECK(options.namespace_name == text(manifest.object("Namespace")["metadata"]["name"]));
  CHECK(options.configmap_name == text(manifest.object("ConfigMap")["metadata"]["name"]));
  CHECK(options.service_account_name ==
        text(manifest.object("ServiceAccount")["metadata"]["name"]));
  CHECK(options.provisioner_name == text(manifest.object("StorageClass")["provisioner"]));
  CHECK(options.leader_election.enabled);
  CHECK(options.health_port == container(manifest)["ports"][0]["containerPort"].as<int>());

  const auto pod = manifest.object("Deployment")["spec"]["template"]["spec"];
  const std::string mount = text(container(manifest)["volumeMounts"][0]["mountPath"]);
  CHECK(options.config_mount_path == mount);
  CHECK(options.config == mount + "config.json");
  CHECK(text(pod["volumes"][0]["configMap"]["name"]) == options.configmap_name);
  CHECK(text(pod["serviceAccountName"]) == options.service_account_name);
  CHECK(text(container(manifest)["image"]) ==
        "local-path-provisioner:v" + std::string(app::version()));
}

TEST_CASE("every namespaced object is in the manifest's namespace") {
  const ManifestFile manifest;
  const std::set<std::string> cluster_wide = {"Namespace", "ClusterRole", "ClusterRoleBinding",
                                              "StorageClass"};
  for (const YAML::Node& object : manifest.objects()) {
    const std::string kind = text(object["kind"]);
    CAPTURE(kind);
    const auto ns = object["metadata"]["namespace"];
    if (cluster_wide.contains(kind)) {
      CHECK_FALSE(ns.IsDefined());
    } else {
      REQUIRE(ns.IsDefined());
      CHECK(text(ns) == "local-path-storage");
    }
  }
}

// That the daemon uses each of them is what the test integration.rights finds out.
TEST_CASE("the permissions are those that check asks for, by name where there is one name") {
  const ManifestFile manifest;
  const app::Options options = deployed_options(manifest);
  std::set<std::string> own_namespace;
  std::set<std::string> cluster_wide;
  for (const auto& right : cli::needed_rights()) {
    std::string what = std::string(right.group) + "/" + std::string(right.resource);
    if (right.name == cli::Right::Name::kConfigMap) what += "/" + options.configmap_name;
    if (right.name == cli::Right::Name::kLease) what += "/rancher.io-local-path";
    what += ":" + std::string(right.verb);
    (right.in_namespace ? own_namespace : cluster_wide).insert(what);
  }
  CHECK(rights(manifest.object("Role")) == own_namespace);
  CHECK(rights(manifest.object("ClusterRole")) == cluster_wide);
  for (const std::string kind : {"Role", "ClusterRole"}) {
    const auto binding = manifest.object(kind + "Binding");
    CHECK(text(binding["roleRef"]["kind"]) == kind);
    CHECK(text(binding["roleRef"]["name"]) == text(manifest.object(kind)["metadata"]["name"]));
    CHECK(text(binding["subjects"][0]["name"]) ==
          text(manifest.object("ServiceAccount")["metadata"]["name"]));
  }
}

TEST_CASE("the daemon's pod passes Pod Security level restricted, helper pods need privileged") {
  const ManifestFile manifest;
  const auto pod = manifest.object("Deployment")["spec"]["template"]["spec"];
  CHECK(pod["securityContext"]["runAsNonRoot"].as<bool>());
  CHECK(pod["securityContext"]["runAsUser"].as<int>() != 0);
  CHECK(text(pod["securityContext"]["seccompProfile"]["type"]) == "RuntimeDefault");
  const auto own = container(manifest)["securityContext"];
  CHECK_FALSE(own["allowPrivilegeEscalation"].as<bool>());
  CHECK(own["readOnlyRootFilesystem"].as<bool>());
  CHECK(text(own["capabilities"]["drop"][0]) == "ALL");
  const auto labels = manifest.object("Namespace")["metadata"]["labels"];
  CHECK(text(labels["pod-security.kubernetes.io/enforce"]) == "privileged");
}
