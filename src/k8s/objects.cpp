// SPDX-License-Identifier: Apache-2.0
#include "k8s/objects.h"

#include <utility>

#include "base/paths.h"
#include "k8s/value_fields.h"

namespace lpp::k8s {

namespace {

ObjectMeta decode_meta(const ValueFields& root) {
  const ValueFields fields = root.object("metadata");
  fields.require("name");
  ObjectMeta meta;
  meta.name = fields.text("name");
  meta.ns = fields.text("namespace");
  meta.uid = fields.text("uid");
  meta.resource_version = fields.text("resourceVersion");
  meta.generate_name = fields.text("generateName");
  meta.generation = fields.integer("generation");
  meta.creation_timestamp = fields.text("creationTimestamp");
  meta.deletion_timestamp = fields.text("deletionTimestamp");
  meta.labels = fields.map("labels");
  meta.annotations = fields.map("annotations");
  meta.finalizers = fields.texts("finalizers");
  fields.each("ownerReferences", [&](const ValueFields& owner) {
    meta.owner_references.push_back({.api_version = owner.text("apiVersion"),
                                     .kind = owner.text("kind"),
                                     .name = owner.text("name"),
                                     .uid = owner.text("uid")});
  });
  meta.incomplete = fields.has(kLeftOut.data()) || root.object("spec").has(kLeftOut.data());
  return meta;
}

std::string decode_data_source(const ValueFields& spec) {
  for (const char* name : {"dataSource", "dataSourceRef"}) {
    if (!spec.has(name)) continue;
    const ValueFields source = spec.object(name);
    return source.text("kind") + "/" + source.text("name");
  }
  return {};
}

std::vector<NodeSelectorRequirement> decode_requirements(const ValueFields& term,
                                                         const char* name) {
  std::vector<NodeSelectorRequirement> requirements;
  term.each(name, [&](const ValueFields& fields) {
    requirements.push_back({.key = fields.text("key"),
                            .op = fields.text("operator"),
                            .values = fields.texts("values")});
  });
  return requirements;
}

ContainerStatus decode_container_status(const ValueFields& fields) {
  ContainerStatus status;
  status.name = fields.text("name");
  const ValueFields state = fields.object("state");
  const ValueFields waiting = state.object("waiting");
  status.waiting_reason = waiting.text("reason");
  status.waiting_message = waiting.text("message");
  const ValueFields terminated = state.object("terminated");
  status.terminated = state.has("terminated");
  status.exit_code = terminated.integer("exitCode");
  status.terminated_reason = terminated.text("reason");
  status.terminated_message = terminated.text("message");
  return status;
}

void fill(PersistentVolumeClaim& claim, const ValueFields& root) {
  const ValueFields spec = root.object("spec");
  claim.storage_class_name = spec.optional_text("storageClassName");
  claim.volume_name = spec.text("volumeName");
  claim.volume_mode = spec.text("volumeMode");
  const ValueFields resources = spec.object("resources");
  claim.storage_request = resources.object("requests").quantity("storage");
  claim.access_modes = spec.texts("accessModes");
  claim.has_selector = spec.has("selector");
  claim.data_source = decode_data_source(spec);
  const ValueFields status = root.object("status");
  claim.phase = status.text("phase");
  claim.capacity = status.object("capacity").quantity("storage");
  claim.allocated = status.object("allocatedResources").quantity("storage");
  claim.resize_status = status.object("allocatedResourceStatuses").text("storage");
  status.each("conditions", [&](const ValueFields& condition) {
    claim.conditions.push_back(
        {.type = condition.text("type"), .status = condition.text("status")});
  });
}

void fill(PersistentVolume& volume, const ValueFields& root) {
  const ValueFields spec = root.object("spec");
  const ValueFields claim = spec.object("claimRef");
  volume.claim = {claim.text("namespace"), claim.text("name")};
  volume.claim_uid = claim.text("uid");
  volume.storage_class_name = spec.text("storageClassName");
  volume.reclaim_policy = spec.text("persistentVolumeReclaimPolicy");
  volume.volume_mode = spec.text("volumeMode");
  volume.capacity = spec.object("capacity").quantity("storage");
  volume.access_modes = spec.texts("accessModes");
  volume.phase = root.object("status").text("phase");
  if (spec.has("hostPath")) {
    volume.source = VolumeSource::kHostPath;
    volume.path = tidy_path(spec.object("hostPath").text("path"));
  } else if (spec.has("local")) {
    volume.source = VolumeSource::kLocal;
    volume.path = tidy_path(spec.object("local").text("path"));
  }
  const ValueFields affinity = spec.object("nodeAffinity");
  affinity.object("required").each("nodeSelectorTerms", [&](const ValueFields& term) {
    volume.node_affinity.push_back(
        {.match_expressions = decode_requirements(term, "matchExpressions"),
         .match_fields = decode_requirements(term, "matchFields")});
  });
}

void fill(StorageClass& storage_class, const ValueFields& root) {
  storage_class.provisioner = root.text("provisioner");
  storage_class.reclaim_policy = root.text("reclaimPolicy");
  storage_class.volume_binding_mode = root.text("volumeBindingMode");
  storage_class.parameters = root.map("parameters");
  storage_class.mount_options = root.texts("mountOptions");
}

void fill(Node&, const ValueFields&) {}

void fill(Pod& pod, const ValueFields& root) {
  pod.node_name = root.object("spec").text("nodeName");
  const ValueFields status = root.object("status");
  pod.phase = status.text("phase");
  pod.reason = status.text("reason");
  pod.message = status.text("message");
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    status.each(list, [&](const ValueFields& fields) {
      pod.containers.push_back(decode_container_status(fields));
    });
  }
  status.each("conditions", [&](const ValueFields& fields) {
    pod.conditions.push_back({.type = fields.text("type"),
                              .status = fields.text("status"),
                              .reason = fields.text("reason"),
                              .message = fields.text("message")});
  });
}

void fill(ConfigMap& config_map, const ValueFields& root) { config_map.data = root.map("data"); }

template <typename T>
Result<T> decode_object(Value object) {
  std::optional<Error> error;
  const ValueFields root(object, error);
  T result;
  result.meta = decode_meta(root);
  fill(result, root);
  if (error) return *std::move(error);
  return result;
}

}  // namespace

const std::string* find(const StringMap& map, std::string_view key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

std::string PersistentVolumeClaim::source_kind() const {
  return data_source.substr(0, data_source.find('/'));
}

std::string PersistentVolumeClaim::class_name() const {
  if (const std::string* beta = find(meta.annotations, kBetaStorageClass)) return *beta;
  return storage_class_name.value_or("");
}

template <>
Result<PersistentVolumeClaim> decode(Value object) {
  return decode_object<PersistentVolumeClaim>(object);
}
template <>
Result<PersistentVolume> decode(Value object) {
  return decode_object<PersistentVolume>(object);
}
template <>
Result<StorageClass> decode(Value object) {
  return decode_object<StorageClass>(object);
}
template <>
Result<Node> decode(Value object) {
  return decode_object<Node>(object);
}
template <>
Result<Pod> decode(Value object) {
  return decode_object<Pod>(object);
}
template <>
Result<ConfigMap> decode(Value object) {
  return decode_object<ConfigMap>(object);
}

}  // namespace lpp::k8s
