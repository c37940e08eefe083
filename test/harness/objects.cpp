// SPDX-License-Identifier: Apache-2.0
#include "harness/objects.h"

namespace lpp::testing {

using nlohmann::json;

json claim_object(const ClaimSpec& spec) {
  json claim = {
      {"apiVersion", "v1"},
      {"kind", "PersistentVolumeClaim"},
      {"metadata",
       {{"namespace", spec.key.ns}, {"name", spec.key.name}, {"annotations", spec.annotations}}},
      {"spec",
       {{"storageClassName", spec.storage_class},
        {"accessModes", json::array({spec.access_mode})},
        {"resources", {{"requests", {{"storage", spec.size}}}}}}},
  };
  if (!spec.selected_node.empty()) {
    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = spec.selected_node;
  }
  return claim;
}

json pod_object(const PodSpec& spec) {
  json container = {{"name", "main"},
                    {"image", spec.image},
                    {"imagePullPolicy", "IfNotPresent"},
                    {"command", {"/bin/sh", "-c", spec.script}}};
  json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"namespace", spec.key.ns}, {"name", spec.key.name}}},
      {"spec",
       {{"restartPolicy", spec.restart_policy},
        {"terminationGracePeriodSeconds", 1},
        {"automountServiceAccountToken", false},
        {"enableServiceLinks", false}}},
  };
  if (!spec.claim.empty()) {
    container["volumeMounts"] = json::array({{{"name", "data"}, {"mountPath", "/data"}}});
    const json source = {{"claimName", spec.claim}};
    pod["spec"]["volumes"] = json::array({{{"name", "data"}, {"persistentVolumeClaim", source}}});
  }
  if (!spec.node.empty()) {
    pod["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", spec.node}};
  }
  pod["spec"]["containers"] = json::array({container});
  return pod;
}

json class_object(const ClassSpec& spec) {
  return {
      {"apiVersion", "storage.k8s.io/v1"},
      {"kind", "StorageClass"},
      {"metadata", {{"name", spec.name}, {"annotations", spec.annotations}}},
      {"provisioner", spec.provisioner},
      {"reclaimPolicy", spec.reclaim_policy},
      {"volumeBindingMode", spec.binding_mode},
      {"parameters", spec.parameters},
  };
}

json volume_object(const VolumeSpec& spec) {
  const json term = {{"matchExpressions", json::array({{{"key", "kubernetes.io/hostname"},
                                                        {"operator", "In"},
                                                        {"values", json::array({spec.node})}}})}};
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata", {{"name", spec.name}, {"annotations", spec.annotations}}},
          {"spec",
           {{"accessModes", json::array({"ReadWriteOnce"})},
            {"capacity", {{"storage", "1Mi"}}},
            {"hostPath", {{"path", spec.path}, {"type", "DirectoryOrCreate"}}},
            {"nodeAffinity", {{"required", {{"nodeSelectorTerms", json::array({term})}}}}},
            {"persistentVolumeReclaimPolicy", spec.reclaim_policy},
            {"storageClassName", spec.storage_class}}}};
}

json namespace_object(const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
}

}  // namespace lpp::testing
