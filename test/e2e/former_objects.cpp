// SPDX-License-Identifier: Apache-2.0
#include "former_objects.h"

#include <filesystem>

#include "disk.h"
#include "harness/installation.h"
#include "harness/objects.h"

namespace lpp::testing {

using nlohmann::json;

namespace {

void replace(std::string& text, const std::string& what, const std::string& with) {
  if (const auto at = text.find(what); at != std::string::npos) text.replace(at, what.size(), with);
}

json volume_object(const FormerVolume& volume, const json& claim) {
  const json& meta = claim["metadata"];
  json annotations = volume.annotations;
  annotations["pv.kubernetes.io/provisioned-by"] = "rancher.io/local-path";
  json source = {{"path", volume.path}};
  if (volume.type == "hostPath") source["type"] = "DirectoryOrCreate";
  json object = {
      {"apiVersion", "v1"},
      {"kind", "PersistentVolume"},
      {"metadata",
       {{"name", volume.pv}, {"annotations", annotations}, {"finalizers", volume.finalizers}}},
      {"spec",
       {{"accessModes", {volume.access_mode}},
        {"capacity", {{"storage", "1Mi"}}},
        {"claimRef",
         {{"kind", "PersistentVolumeClaim"},
          {"apiVersion", "v1"},
          {"namespace", meta["namespace"]},
          {"name", meta["name"]},
          {"uid", meta["uid"]},
          {"resourceVersion", meta["resourceVersion"]}}},
        {"persistentVolumeReclaimPolicy", volume.reclaim_policy},
        {"storageClassName", volume.storage_class},
        {"volumeMode", "Filesystem"},
        {volume.type, source}}}};
  if (!volume.affinity.is_null()) {
    object["spec"]["nodeAffinity"] = {
        {"required", {{"nodeSelectorTerms", json::array({volume.affinity})}}}};
  }
  return object;
}

}  // namespace

json label_is(const std::string& key, const std::string& value) {
  const json expression = {{"key", key}, {"operator", "In"}, {"values", {value}}};
  return {{"matchExpressions", json::array({expression})}};
}

json hostname_is(const std::string& node) { return label_is("kubernetes.io/hostname", node); }

Result<void> make_former_volume(AppliedObjects& applied, TestBed& bed, FormerVolume& volume) {
  const auto key = applied.key(volume.claim);
  LPP_RETURN_IF_ERROR(
      applied.apply(claim_object(
          {.key = key, .storage_class = volume.storage_class, .access_mode = volume.access_mode})),
      "claim");
  LPP_ASSIGN_OR_RETURN(const json claim, bed.admin().get(k8s::kPersistentVolumeClaims, key),
                       "claim");
  volume.pv = "pvc-" + claim["metadata"].value("uid", "");
  std::string folder = volume.folder;
  replace(folder, "{pv}", volume.pv);
  replace(folder, "{ns}", key.ns);
  replace(folder, "{claim}", key.name);
  volume.path = volume.base + "/" + folder;
  write_text(volume.path + "/file", "data of " + volume.claim + "\n");
  std::filesystem::permissions(volume.path, std::filesystem::perms::all);
  LPP_RETURN_IF_ERROR(applied.apply(volume_object(volume, claim)), "volume");
  return wait_until(
      "claim " + key.to_string() + " is bound",
      [&]() -> std::string {
        const auto found = bed.admin().get(k8s::kPersistentVolumeClaims, key);
        if (!found.ok()) return found.error().message;
        const json status = found->value("status", json::object());
        return status.value("phase", "") == "Bound" ? "" : status.dump();
      },
      bed.patience());
}

json former_helper_pod(const std::string& action, const std::string& pv, const std::string& node,
                       const std::string& parent, const std::string& script) {
  const json item = {{"key", "setup"}, {"path", "setup"}};
  const json scripts = {{"name", "local-path-config"}, {"items", json::array({item})}};
  const json data = {{"path", parent + "/"}, {"type", "DirectoryOrCreate"}};
  const json toleration = {{"key", "node.kubernetes.io/disk-pressure"},
                           {"operator", "Exists"},
                           {"effect", "NoSchedule"}};
  const std::string path = parent + "/" + pv;
  const json args = {"-p", path, "-s", "1048576", "-m", "Filesystem", "-a", action};
  json mounts = json::array({{{"name", "script"}, {"mountPath", "/script"}},
                             {{"name", "data"}, {"mountPath", parent + "/"}}});
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"namespace", kDaemonNamespace}, {"name", "helper-pod-" + action + "-" + pv}}},
      {"spec",
       {{"nodeName", node},
        {"serviceAccountName", "local-path-provisioner-service-account"},
        {"restartPolicy", "Never"},
        {"terminationGracePeriodSeconds", 1},
        {"tolerations", json::array({toleration})},
        {"volumes", json::array({{{"name", "data"}, {"hostPath", data}},
                                 {{"name", "script"}, {"configMap", scripts}}})},
        {"containers", json::array({{{"name", "helper-pod"},
                                     {"image", "rancher/library-busybox:1.32.1"},
                                     {"imagePullPolicy", "IfNotPresent"},
                                     {"command", {"/bin/sh", "-c", script, "sh"}},
                                     {"args", args},
                                     {"volumeMounts", mounts}}})}}}};
}

Result<void> wait_phase(TestBed& bed, const std::string& pod, const std::string& phase) {
  return wait_until(
      "pod " + pod + " is " + phase,
      [&]() -> std::string {
        const auto found = bed.admin().get(k8s::kPods, {kDaemonNamespace, pod});
        if (!found.ok()) return found.error().message;
        const json status = found->value("status", json::object());
        return status.value("phase", "") == phase ? "" : status.dump();
      },
      bed.patience());
}

}  // namespace lpp::testing
