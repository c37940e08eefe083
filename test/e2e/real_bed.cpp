// SPDX-License-Identifier: Apache-2.0
#include "real_bed.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "fakes/setting.h"
#include "harness/volume_audit.h"
#include "helperpod/manifest.h"
#include "k8s/resource.h"

namespace lpp::testing {

std::string required_setting(const char* name) {
  const auto value = setting(name);
  if (!value) FAIL(name, " is not set: run test/e2e/run.sh");
  return *value;
}

namespace {

using nlohmann::json;

Result<std::set<std::string>> names_of(Kube& admin, const k8s::Resource& resource) {
  LPP_ASSIGN_OR_RETURN(const auto objects, admin.list(resource), resource.kind);
  std::set<std::string> names;
  for (const json& object : objects) names.insert(object["metadata"]["name"]);
  return names;
}

}  // namespace

Result<void> RealBed::set_leftovers_aside() {
  // Before any test case; what was there is nobody's leftover.
  static const auto first_namespaces = names_of(*admin_, k8s::kNamespaces);
  static const auto first_volumes = names_of(*admin_, k8s::kPersistentVolumes);
  LPP_RETURN_IF_ERROR(first_namespaces, "at first");
  LPP_RETURN_IF_ERROR(first_volumes, "at first");
  VolumeAudit audit(*this);
  std::string left = audit.leftovers();
  LPP_ASSIGN_OR_RETURN(const auto claims, admin_->list(k8s::kPersistentVolumeClaims), "claims");
  if (left.empty() && !claims.empty()) left = claims.front()["metadata"].dump();
  if (left.empty()) return {};
  MESSAGE("a test case before has left something, it is set aside: " << left);
  // Of namespaces one takes seconds, and all at once not many more.
  LPP_ASSIGN_OR_RETURN(const auto namespaces, names_of(*admin_, k8s::kNamespaces), "now");
  for (const std::string& ns : namespaces) {
    if (!first_namespaces->contains(ns)) (void)admin_->remove(k8s::kNamespaces, {"", ns});
  }
  LPP_RETURN_IF_ERROR(wait_until(
                          "the namespaces of test cases before are gone",
                          [&]() -> std::string {
                            const auto now = names_of(*admin_, k8s::kNamespaces);
                            if (!now.ok()) return now.error().message;
                            for (const std::string& ns : *now) {
                              if (!first_namespaces->contains(ns)) return ns + " is there";
                            }
                            return "";
                          },
                          patience()),
                      "leftovers");
  LPP_ASSIGN_OR_RETURN(const auto volumes, names_of(*admin_, k8s::kPersistentVolumes), "now");
  for (const std::string& volume : volumes) {
    if (first_volumes->contains(volume)) continue;
    const k8s::ObjectKey key{"", volume};
    (void)admin_->merge(k8s::kPersistentVolumes, key, {{"metadata", {{"finalizers", nullptr}}}});
    LPP_RETURN_IF_ERROR(
        admin_->remove_and_wait(k8s::kPersistentVolumes, key, std::nullopt, patience()), key.name);
  }
  LPP_ASSIGN_OR_RETURN(const auto pods,
                       admin_->list(k8s::kPods, kDaemonNamespace,
                                    helperpod::label_selector("rancher.io/local-path")),
                       "helper pods");
  for (const json& pod : pods) {
    const k8s::ObjectKey key{kDaemonNamespace, pod["metadata"]["name"]};
    LPP_RETURN_IF_ERROR(admin_->remove_and_wait(k8s::kPods, key, 0, patience()), key.name);
  }
  // Their content may tell what went wrong.
  const std::filesystem::path aside = volumes_ + "/leftovers";
  std::error_code trouble;
  std::filesystem::create_directories(aside, trouble);
  for (const std::string& directory : audit.directories()) {
    std::string name = directory.substr(1);
    std::replace(name.begin(), name.end(), '/', '_');
    std::filesystem::rename(directory, aside / name, trouble);
    if (trouble) return Error{.message = directory + ": " + trouble.message()};
  }
  return {};
}

Result<std::unique_ptr<RealBed>> RealBed::create() {
  std::unique_ptr<RealBed> bed(new RealBed);
  bed->node_ = required_setting("LPP_E2E_NODE");
  bed->volumes_ = required_setting("LPP_E2E_VOLUMES");
  LPP_ASSIGN_OR_RETURN(bed->admin_, Kube::from_kubeconfig(required_setting("LPP_E2E_KUBECONFIG")),
                       "administrator");
  LPP_ASSIGN_OR_RETURN(bed->upstream_, bed->admin_->upstream(), "administrator");
  const std::string file = required_setting("LPP_E2E_DAEMON_KUBECONFIG");
  std::ifstream in(file);
  const auto config = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return invalid(file + ": not a kubeconfig in JSON");
  bed->daemon_token_ = config["users"][0]["user"].value("token", "");
  if (bed->daemon_token_.empty()) return invalid(file + ": no token");
  LPP_RETURN_IF_ERROR(bed->set_leftovers_aside(), "what a test case before has left");
  return bed;
}

}  // namespace lpp::testing
