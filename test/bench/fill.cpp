// SPDX-License-Identifier: Apache-2.0
#include "bench/fill.h"

#include <nlohmann/json.hpp>

#include "bench/parallel.h"
#include "harness/kinds.h"
#include "harness/objects.h"

namespace lpp::bench {

namespace {

using nlohmann::json;

json volume_object(const FillOptions& options, const json& claim, const std::string& volume) {
  const json& meta = claim.at("metadata");
  const json term = {
      {"matchExpressions", json::array({{{"key", "kubernetes.io/hostname"},
                                         {"operator", "In"},
                                         {"values", json::array({options.node})}}})}};
  return {
      {"apiVersion", "v1"},
      {"kind", "PersistentVolume"},
      {"metadata",
       {{"name", volume},
        {"annotations",
         {{"pv.kubernetes.io/provisioned-by", options.provisioner},
          {"pv.kubernetes.io/bound-by-controller", "yes"},
          {"local.path.provisioner/selected-node", options.node}}},
        {"finalizers", json::array({testing::kVolumeFinalizer, "kubernetes.io/pv-protection"})}}},
      {"spec",
       {{"capacity", {{"storage", "1Mi"}}},
        {"accessModes", json::array({"ReadWriteOnce"})},
        {"persistentVolumeReclaimPolicy", "Delete"},
        {"storageClassName", options.storage_class},
        {"hostPath",
         {{"path", "/opt/local-path-provisioner/" + volume}, {"type", "DirectoryOrCreate"}}},
        {"claimRef",
         {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"namespace", options.ns},
          {"name", meta.at("name")},
          {"uid", meta.at("uid")}}},
        {"nodeAffinity", {{"required", {{"nodeSelectorTerms", json::array({term})}}}}}}}};
}

Result<void> put_one(k8s::ApiClient& client, const FillOptions& options, std::size_t number) {
  const k8s::ObjectKey key{options.ns, "full-" + std::to_string(options.first + number)};
  const std::string volume = "pvc-" + options.ns + "-" + key.name;
  json object = testing::claim_object(
      {.key = key,
       .storage_class = options.storage_class,
       .selected_node = options.node,
       .annotations = {{"pv.kubernetes.io/bind-completed", "yes"},
                       {"pv.kubernetes.io/bound-by-controller", "yes"},
                       {"volume.kubernetes.io/storage-provisioner", options.provisioner}}});
  object["spec"]["volumeName"] = volume;
  LPP_ASSIGN_OR_RETURN(const auto claim,
                       client.create(k8s::kPersistentVolumeClaims, options.ns, object), "claim");
  const auto made =
      client.create(k8s::kPersistentVolumes, {}, volume_object(options, claim, volume));
  if (!made.ok()) return made.error().wrap("volume");
  const auto volume_status =
      client.patch(k8s::kPersistentVolumes, {"", volume}, k8s::PatchType::kMerge,
                   {{"status", {{"phase", "Bound"}}}}, "status");
  if (!volume_status.ok()) return volume_status.error().wrap("volume's status");
  const auto claim_status = client.patch(k8s::kPersistentVolumeClaims, key, k8s::PatchType::kMerge,
                                         {{"status",
                                           {{"phase", "Bound"},
                                            {"accessModes", json::array({"ReadWriteOnce"})},
                                            {"capacity", {{"storage", "1Mi"}}}}}},
                                         "status");
  if (!claim_status.ok()) return claim_status.error().wrap("claim's status");
  return {};
}

}  // namespace

std::set<std::string> fill_flags() {
  return {"kubeconfig", "namespace", "class", "provisioner",
          "node",       "claims",    "first", "connections"};
}

Result<FillOptions> fill_options(const Arguments& arguments) {
  FillOptions options;
  options.ns = arguments.text("namespace", options.ns);
  options.storage_class = arguments.text("class", options.storage_class);
  options.provisioner = arguments.text("provisioner", options.provisioner);
  options.node = arguments.text("node", options.node);
  LPP_ASSIGN_OR_RETURN(options.claims, arguments.number("claims", options.claims), "fill");
  LPP_ASSIGN_OR_RETURN(options.first, arguments.number("first", options.first), "fill");
  LPP_ASSIGN_OR_RETURN(options.connections, arguments.number("connections", options.connections),
                       "fill");
  return options;
}

Result<void> fill(k8s::ApiClient& client, const FillOptions& options) {
  const auto made = client.create(testing::kNamespaces, {}, testing::namespace_object(options.ns));
  if (!made.ok() && !made.error().is(ErrorCode::kAlreadyExists)) return made.error();
  return in_parallel(options.claims, options.connections,
                     [&](std::size_t i) { return put_one(client, options, i); });
}

}  // namespace lpp::bench
