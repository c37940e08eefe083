// SPDX-License-Identifier: Apache-2.0
#include "harness/kinds.h"

#include <array>
#include <nlohmann/json.hpp>

namespace lpp::testing {

namespace {

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";

constexpr k8s::Resource kRoles{kRbac, "v1", "roles", "Role", true};
constexpr k8s::Resource kRoleBindings{kRbac, "v1", "rolebindings", "RoleBinding", true};
constexpr k8s::Resource kClusterRoles{kRbac, "v1", "clusterroles", "ClusterRole", false};
constexpr k8s::Resource kClusterRoleBindings{kRbac, "v1", "clusterrolebindings",
                                             "ClusterRoleBinding", false};

constexpr std::string_view kFlowControl = "flowcontrol.apiserver.k8s.io";

constexpr k8s::Resource kFlowSchemas{kFlowControl, "v1", "flowschemas", "FlowSchema", false};
constexpr k8s::Resource kPriorityLevels{kFlowControl, "v1", "prioritylevelconfigurations",
                                        "PriorityLevelConfiguration", false};

constexpr std::array kKnown = {
    &kNamespaces,
    &kServiceAccounts,
    &kSecrets,
    &kTokenReviews,
    &kServices,
    &kStatefulSets,
    &kDeployments,
    &kDaemonSets,
    &kRoles,
    &kRoleBindings,
    &kClusterRoles,
    &kClusterRoleBindings,
    &kFlowSchemas,
    &kPriorityLevels,
    &k8s::kPods,
    &k8s::kCsiDrivers,
    &k8s::kCsiStorageCapacities,
    &k8s::kNodes,
    &k8s::kConfigMaps,
    &k8s::kEvents,
    &k8s::kPersistentVolumes,
    &k8s::kPersistentVolumeClaims,
    &k8s::kStorageClasses,
    &k8s::kLeases,
};

}  // namespace

Result<const k8s::Resource*> resource_of(const nlohmann::json& object) {
  const std::string version = object.value("apiVersion", "");
  const std::string kind = object.value("kind", "");
  for (const k8s::Resource* resource : kKnown) {
    if (resource->kind == kind && resource->api_version() == version) return resource;
  }
  return invalid("not a kind that is known here: " + version + " " + kind);
}

}  // namespace lpp::testing
