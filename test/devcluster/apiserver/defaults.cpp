// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/defaults.h"

#include <algorithm>

#include "devcluster/apiserver/quantities.h"
#include "devcluster/json_names.h"
#include "k8s/base64.h"

namespace lpp::devcluster {
namespace {

void default_probe(Json& container, const char* key) {
  if (!child(container, key).is_object()) return;
  Json& probe = container[key];
  set_default(probe, "timeoutSeconds", 1);
  set_default(probe, "periodSeconds", 10);
  set_default(probe, "successThreshold", 1);
  set_default(probe, "failureThreshold", 3);
}

/// requests and limits of a container or a claim.
void canonicalize_members(Json& resources) {
  for (const char* member : {"requests", "limits"}) {
    if (child(resources, member).is_object()) canonicalize_quantities(resources[member]);
  }
}

void default_container(Json& container) {
  if (!container.is_object()) return;
  const std::string image = text_at(container, {"image"});
  const auto name_start = image.rfind('/') == std::string::npos ? 0 : image.rfind('/') + 1;
  const auto tag = image.find_first_of(":@", name_start);
  const bool latest = tag == std::string::npos || image.substr(tag) == ":latest";
  set_default(container, "imagePullPolicy", latest ? "Always" : "IfNotPresent");
  set_default(container, "terminationMessagePath", "/dev/termination-log");
  set_default(container, "terminationMessagePolicy", "File");
  set_default(container, "resources", Json::object());
  canonicalize_members(container["resources"]);
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    default_probe(container, probe);
  }
  if (child(container, "ports").is_array()) {
    for (auto& port : container["ports"]) {
      if (port.is_object()) set_default(port, "protocol", "TCP");
    }
  }
  if (child(container, "env").is_array()) {
    for (auto& variable : container["env"]) {
      if (at_path(variable, {"valueFrom", "fieldRef"}).is_object()) {
        set_default(variable["valueFrom"]["fieldRef"], "apiVersion", "v1");
      }
    }
  }
}

void default_volume(Json& volume) {
  if (!volume.is_object()) return;
  if (volume.size() == 1) volume["emptyDir"] = Json::object();
  for (const char* source : {"configMap", "secret", "downwardAPI", "projected"}) {
    if (child(volume, source).is_object()) set_default(volume[source], "defaultMode", 420);
  }
  if (child(volume, "hostPath").is_object()) set_default(volume["hostPath"], "type", "");
}

void default_pod_spec(Json& spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (!child(spec, list).is_array()) continue;
    for (auto& container : spec[list]) default_container(container);
  }
  if (child(spec, "volumes").is_array()) {
    for (auto& volume : spec["volumes"]) default_volume(volume);
  }
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "dnsPolicy", "ClusterFirst");
  set_default(spec, "schedulerName", "default-scheduler");
  set_default(spec, "securityContext", Json::object());
  set_default(spec, "terminationGracePeriodSeconds", 30);
  const std::string account = text_at(spec, {"serviceAccountName"});
  if (!account.empty()) set_default(spec, "serviceAccount", account);
}

/// What admission adds to pods (service account, priority, tolerations), not to templates.
void admit_pod(Json& spec) {
  set_default(spec, "enableServiceLinks", true);
  set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
  set_default(spec, "serviceAccountName", "default");
  set_default(spec, "serviceAccount", text_at(spec, {"serviceAccountName"}));
  const std::string priority_class = text_at(spec, {"priorityClassName"});
  set_default(spec, "priority",
              priority_class == "system-node-critical"      ? 2000001000
              : priority_class == "system-cluster-critical" ? 2000000000
                                                            : 0);
  Json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = Json::array();
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const bool there =
        std::any_of(tolerations.begin(), tolerations.end(), [&](const Json& toleration) {
          const std::string have = text_at(toleration, {"key"});
          const std::string effect = text_at(toleration, {"effect"});
          return (have == key || (have.empty() && text_at(toleration, {"operator"}) == "Exists")) &&
                 (effect.empty() || effect == "NoExecute");
        });
    if (there) continue;
    tolerations.push_back({{"key", key},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", 300}});
  }
}

/// Guaranteed, Burstable or BestEffort from the containers' requests and limits.
std::string qos_class(const Json& spec) {
  bool any = false;
  bool guaranteed = true;
  for (const char* list : {"containers", "initContainers"}) {
    for (const auto& container : child(spec, list)) {
      const Json& requests = at_path(container, {"resources", "requests"});
      const Json& limits = at_path(container, {"resources", "limits"});
      any = any || !is_blank(requests) || !is_blank(limits);
      for (const char* name : {"cpu", "memory"}) {
        const Json& limit = child(limits, name);
        const Json& request = child(requests, name);
        guaranteed = guaranteed && !limit.is_null() && (request.is_null() || request == limit);
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

void default_workload(const ResourceInfo& info, Json& spec) {
  if (info.plural != "daemonsets") set_default(spec, "replicas", 1);
  if (info.plural != "replicasets") set_default(spec, "revisionHistoryLimit", 10);
  if (info.plural == "deployments") {
    set_default(spec, "progressDeadlineSeconds", 600);
    set_default(spec, "strategy",
                {{"type", "RollingUpdate"},
                 {"rollingUpdate", {{"maxSurge", "25%"}, {"maxUnavailable", "25%"}}}});
  } else if (info.plural == "statefulsets") {
    set_default(spec, "podManagementPolicy", "OrderedReady");
    set_default(spec, "updateStrategy",
                {{"type", "RollingUpdate"}, {"rollingUpdate", {{"partition", 0}}}});
    set_default(spec, "persistentVolumeClaimRetentionPolicy",
                {{"whenDeleted", "Retain"}, {"whenScaled", "Retain"}});
  }
  if (at_path(spec, {"template", "spec"}).is_object()) {
    default_pod_spec(spec["template"]["spec"]);
  }
  if (child(spec, "volumeClaimTemplates").is_array()) {
    for (auto& claim : spec["volumeClaimTemplates"]) {
      set_default(claim, "apiVersion", "v1");
      set_default(claim, "kind", "PersistentVolumeClaim");
      if (child(claim, "spec").is_object()) set_default(claim["spec"], "volumeMode", "Filesystem");
    }
  }
}

void default_subjects(Json& binding) {
  if (child(binding, "roleRef").is_object()) {
    set_default(binding["roleRef"], "apiGroup", "rbac.authorization.k8s.io");
  }
}

void add_finalizer(Json& object, const char* finalizer) {
  Json& finalizers = object["metadata"]["finalizers"];
  if (!finalizers.is_array()) finalizers = Json::array();
  if (std::find(finalizers.begin(), finalizers.end(), finalizer) == finalizers.end()) {
    finalizers.push_back(finalizer);
  }
}

}  // namespace

void apply_defaults(const ResourceInfo& info, Json& object) {
  const std::string& name = info.plural;
  if (name == "pods") {
    default_pod_spec(object_in(object, "spec"));
    admit_pod(object["spec"]);
  } else if (name == "persistentvolumes") {
    Json& spec = object_in(object, "spec");
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
    set_default(spec, "volumeMode", "Filesystem");
    if (child(spec, "hostPath").is_object()) set_default(spec["hostPath"], "type", "");
    if (child(spec, "capacity").is_object()) canonicalize_quantities(spec["capacity"]);
  } else if (name == "persistentvolumeclaims") {
    Json& spec = object_in(object, "spec");
    set_default(spec, "volumeMode", "Filesystem");
    if (child(spec, "resources").is_object()) canonicalize_members(spec["resources"]);
  } else if (name == "storageclasses") {
    set_default(object, "reclaimPolicy", "Delete");
    set_default(object, "volumeBindingMode", "Immediate");
  } else if (name == "csidrivers") {
    Json& spec = object_in(object, "spec");
    set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set_default(spec, "volumeLifecycleModes", Json::array({"Persistent"}));
    set_default(spec, "attachRequired", true);
    for (const char* flag :
         {"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"}) {
      set_default(spec, flag, false);
    }
  } else if (name == "csistoragecapacities") {
    for (const char* size : {"capacity", "maximumVolumeSize"}) {
      if (object.contains(size) && object[size].is_string()) {
        object[size] = canonical_quantity(object[size].get<std::string>());
      }
    }
  } else if (name == "namespaces") {
    Json& spec = object_in(object, "spec");
    if (!spec.contains("finalizers")) spec["finalizers"] = {"kubernetes"};
    object_in(object_in(object, "metadata"), "labels")["kubernetes.io/metadata.name"] =
        name_of(object);
  } else if (name == "secrets") {
    set_default(object, "type", "Opaque");
    if (child(object, "stringData").is_object()) {
      Json& data = object_in(object, "data");
      for (const auto& [key, value] : object["stringData"].items()) {
        if (value.is_string()) data[key] = k8s::base64_encode(value.get<std::string>());
      }
      object.erase("stringData");
    }
  } else if (name == "services") {
    Json& spec = object_in(object, "spec");
    set_default(spec, "type", "ClusterIP");
    set_default(spec, "sessionAffinity", "None");
  } else if (name == "rolebindings" || name == "clusterrolebindings") {
    default_subjects(object);
  } else if (info.group == "apps") {
    default_workload(info, object_in(object, "spec"));
  }
}

void prepare_for_create(const ResourceInfo& info, Json& object) {
  const std::string& name = info.plural;
  if (info.has_status && name != "nodes") object.erase("status");
  if (name == "pods") {
    object["status"] = {{"phase", "Pending"}, {"qosClass", qos_class(object["spec"])}};
  } else if (name == "persistentvolumes") {
    object["status"] = {{"phase", "Pending"}};
    add_finalizer(object, "kubernetes.io/pv-protection");
  } else if (name == "persistentvolumeclaims") {
    object["status"] = {{"phase", "Pending"}};
    add_finalizer(object, "kubernetes.io/pvc-protection");
  } else if (name == "namespaces") {
    object["status"] = {{"phase", "Active"}};
  } else if (info.has_status && name != "nodes") {
    object["status"] = Json::object();
    if (name == "services") object["status"]["loadBalancer"] = Json::object();
    if (name == "replicasets" || name == "statefulsets") object["status"]["replicas"] = 0;
  }
}

}  // namespace lpp::devcluster
