// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/resources.h"

namespace lpp::devcluster {
namespace {

std::vector<ResourceInfo> build_table() {
  const std::string core;
  std::vector<ResourceInfo> table;
  const auto add = [&table](std::string group, std::string plural, std::string singular,
                            std::string kind, std::vector<std::string> short_names,
                            bool namespaced) -> ResourceInfo& {
    table.push_back(ResourceInfo{.group = std::move(group),
                                 .version = "v1",
                                 .plural = std::move(plural),
                                 .singular = std::move(singular),
                                 .kind = std::move(kind),
                                 .short_names = std::move(short_names),
                                 .namespaced = namespaced});
    return table.back();
  };
  const auto with_status = [](ResourceInfo& info) -> ResourceInfo& {
    info.has_status = true;
    return info;
  };

  {
    auto& info = with_status(add(core, "namespaces", "namespace", "Namespace", {"ns"}, false));
    info.fields = {"status.phase"};
  }
  {
    auto& info = with_status(add(core, "nodes", "node", "Node", {"no"}, false));
    info.others = {"proxy"};
    info.fields = {"spec.unschedulable"};
  }
  {
    auto& info = with_status(add(core, "pods", "pod", "Pod", {"po"}, true));
    info.has_generation = true;
    info.returns_deleted = true;
    info.others = {"log", "binding", "proxy"};
    info.in_all = true;
    info.fields = {"spec.nodeName",
                   "spec.restartPolicy",
                   "spec.schedulerName",
                   "spec.serviceAccountName",
                   "spec.hostNetwork",
                   "status.phase",
                   "status.podIP",
                   "status.podIPs",
                   "status.nominatedNodeName"};
  }
  {
    auto& info = with_status(
        add(core, "persistentvolumes", "persistentvolume", "PersistentVolume", {"pv"}, false));
    info.returns_deleted = true;
  }
  {
    auto& info = with_status(add(core, "persistentvolumeclaims", "persistentvolumeclaim",
                                 "PersistentVolumeClaim", {"pvc"}, true));
    info.returns_deleted = true;
  }
  add(core, "configmaps", "configmap", "ConfigMap", {"cm"}, true);
  add(core, "secrets", "secret", "Secret", {}, true).fields = {"type"};
  {
    auto& info = add(core, "serviceaccounts", "serviceaccount", "ServiceAccount", {"sa"}, true);
    info.returns_deleted = true;
    info.others = {"token"};
  }
  add(core, "events", "event", "Event", {"ev"}, true).fields = {"involvedObject.kind",
                                                                "involvedObject.namespace",
                                                                "involvedObject.name",
                                                                "involvedObject.uid",
                                                                "involvedObject.apiVersion",
                                                                "involvedObject.resourceVersion",
                                                                "involvedObject.fieldPath",
                                                                "reason",
                                                                "reportingComponent",
                                                                "source",
                                                                "type"};
  {
    auto& info = with_status(add(core, "services", "service", "Service", {"svc"}, true));
    info.returns_deleted = true;
    info.in_all = true;
    info.fields = {"spec.clusterIP", "spec.type"};
  }
  add(core, "endpoints", "endpoints", "Endpoints", {"ep"}, true);

  const auto add_workload = [&](const std::string& plural, const std::string& singular,
                                const std::string& kind, const std::string& short_name) {
    auto& info = with_status(add("apps", plural, singular, kind, {short_name}, true));
    info.has_generation = info.in_all = true;
  };
  add_workload("deployments", "deployment", "Deployment", "deploy");
  add_workload("statefulsets", "statefulset", "StatefulSet", "sts");
  add_workload("daemonsets", "daemonset", "DaemonSet", "ds");
  add_workload("replicasets", "replicaset", "ReplicaSet", "rs");

  const std::string storage = "storage.k8s.io";
  add(storage, "storageclasses", "storageclass", "StorageClass", {"sc"}, false).returns_deleted =
      true;
  {
    auto& info = with_status(
        add(storage, "volumeattachments", "volumeattachment", "VolumeAttachment", {}, false));
    info.returns_deleted = info.needs_version = true;
  }
  {
    auto& info = add(storage, "csinodes", "csinode", "CSINode", {}, false);
    info.returns_deleted = info.needs_version = true;
  }
  add(storage, "csidrivers", "csidriver", "CSIDriver", {}, false).returns_deleted = true;
  add(storage, "csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity", {}, true);

  add("networking.k8s.io", "networkpolicies", "networkpolicy", "NetworkPolicy", {"netpol"}, true)
      .has_generation = true;

  add("coordination.k8s.io", "leases", "lease", "Lease", {}, true).needs_version = true;

  const std::string rbac = "rbac.authorization.k8s.io";
  add(rbac, "roles", "role", "Role", {}, true);
  add(rbac, "rolebindings", "rolebinding", "RoleBinding", {}, true);
  add(rbac, "clusterroles", "clusterrole", "ClusterRole", {}, false);
  add(rbac, "clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding", {}, false);
  return table;
}

}  // namespace

const std::vector<ResourceInfo>& resource_table() {
  static const std::vector<ResourceInfo> table = build_table();
  return table;
}

const ResourceInfo* find_resource(std::string_view plural) {
  for (const auto& info : resource_table()) {
    if (info.plural == plural) return &info;
  }
  return nullptr;
}

const ResourceInfo* find_resource(std::string_view group, std::string_view version,
                                  std::string_view plural) {
  const auto* info = find_resource(plural);
  return info != nullptr && info->group == group && info->version == version ? info : nullptr;
}

const ResourceInfo* find_kind(std::string_view kind) {
  for (const auto& info : resource_table()) {
    if (info.kind == kind) return &info;
  }
  return nullptr;
}

std::size_t resource_index(const ResourceInfo& info) {
  return static_cast<std::size_t>(&info - resource_table().data());
}

}  // namespace lpp::devcluster
