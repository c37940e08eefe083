// SPDX-License-Identifier: Apache-2.0
#include "k8s/objects.h"

#include <charconv>
#include <utility>

#include "base/paths.h"

namespace lpp::k8s {

namespace {

/// Reads one object field by field. The first wrong type is kept with its place and all reads
/// of the same object tree after it give empty values, so that decoders need one check at the end.
/// An absent field and null are the same. Children refer to their parent: keep it alive.
class ObjectFields {
 public:
  ObjectFields(Value root, std::optional<Error>& error) : error_(error) { open(root); }

  std::string text(const char* name) const {
    const Value value = find(name);
    if (!value.is_text() && !value.is_null()) fail(name, "expected a string");
    return std::string(value.text());
  }

  std::optional<std::string> optional_text(const char* name) const {
    if (!has(name)) return std::nullopt;
    return text(name);
  }

  /// A resource quantity: text, or a bare number (behaviour rule C9.2).
  std::string quantity(const char* name) const {
    const Value value = find(name);
    if (value.is_text()) return std::string(value.text());
    if (value.type() == Value::Type::kNumber) return std::string(value.spelling());
    if (!value.is_null()) fail(name, "expected a quantity");
    return {};
  }

  int integer(const char* name) const {
    const Value value = find(name);
    if (value.is_null()) return 0;
    int number = 0;
    const std::string_view digits = value.spelling();
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
    if (value.type() == Value::Type::kNumber && error == std::errc() && end == digits.end()) {
      return number;
    }
    fail(name, "expected an integer");
    return 0;
  }

  bool has(const char* name) const { return !find(name).is_null(); }

  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    find_list(name).each([&](Value item) {
      if (item.is_text()) {
        result.emplace_back(item.text());
      } else if (!item.is_null()) {
        fail(name, "expected a list of strings");
      }
    });
    return result;
  }

  StringMap map(const char* name) const {
    StringMap result;
    const Value object = find(name);
    if (!object.is_object() && !object.is_null()) fail(name, "expected an object");
    object.each([&](Value entry) {
      if (entry.is_text()) {
        result.insert_or_assign(result.end(), std::string(entry.name()), entry.text());
      } else if (!entry.is_null()) {
        fail(std::string(name) + "." + std::string(entry.name()), "expected a string");
      }
    });
    return result;
  }

  /// The object in that field; an empty one when it is absent.
  ObjectFields object(const char* name) const {
    ObjectFields child(*this, name, -1);
    child.open(find(name));
    return child;
  }

  /// Calls visit(ObjectFields) for each object of the list in that field.
  template <typename Visit>
  void each(const char* name, Visit visit) const {
    int index = -1;
    find_list(name).each([&](Value item) {
      ++index;
      if (item.is_null()) return;
      ObjectFields child(*this, name, index);
      child.open(item);
      visit(std::as_const(child));
    });
  }

  void require(const char* name) const {
    if (!error_ && text(name).empty()) fail(name, "required");
  }

 private:
  ObjectFields(const ObjectFields& parent, const char* name, int index)
      : parent_(&parent), name_(name), index_(index), error_(parent.error_) {}

  void open(Value value) {
    if (value.is_object()) {
      object_ = value;
    } else if (!value.is_null() && !error_) {
      error_ =
          invalid((parent_ == nullptr ? std::string("object") : path()) + ": expected an object");
    }
  }

  Value find(const char* name) const { return error_ ? Value() : object_.find(name); }

  Value find_list(const char* name) const {
    const Value value = find(name);
    if (value.is_list()) return value;
    if (!value.is_null()) fail(name, "expected a list");
    return {};
  }

  void fail(std::string_view name, const char* what) const {
    if (error_) return;
    const std::string place = path();
    error_ = invalid((place.empty() ? place : place + ".") + std::string(name) + ": " + what);
  }

  std::string path() const {
    if (parent_ == nullptr) return {};
    std::string place = parent_->path();
    if (!place.empty()) place += '.';
    place += name_;
    if (index_ >= 0) place += "[" + std::to_string(index_) + "]";
    return place;
  }

  const ObjectFields* parent_ = nullptr;
  const char* name_ = "";
  int index_ = -1;
  Value object_{};
  std::optional<Error>& error_;
};

ObjectMeta decode_meta(const ObjectFields& root) {
  const ObjectFields fields = root.object("metadata");
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
  fields.each("ownerReferences", [&](const ObjectFields& owner) {
    meta.owner_references.push_back({.api_version = owner.text("apiVersion"),
                                     .kind = owner.text("kind"),
                                     .name = owner.text("name"),
                                     .uid = owner.text("uid")});
  });
  meta.incomplete = fields.has(kLeftOut.data()) || root.object("spec").has(kLeftOut.data());
  return meta;
}

std::string decode_data_source(const ObjectFields& spec) {
  for (const char* name : {"dataSource", "dataSourceRef"}) {
    if (!spec.has(name)) continue;
    const ObjectFields source = spec.object(name);
    return source.text("kind") + "/" + source.text("name");
  }
  return {};
}

std::vector<NodeSelectorRequirement> decode_requirements(const ObjectFields& term,
                                                         const char* name) {
  std::vector<NodeSelectorRequirement> requirements;
  term.each(name, [&](const ObjectFields& fields) {
    requirements.push_back({.key = fields.text("key"),
                            .op = fields.text("operator"),
                            .values = fields.texts("values")});
  });
  return requirements;
}

ContainerStatus decode_container_status(const ObjectFields& fields) {
  ContainerStatus status;
  status.name = fields.text("name");
  const ObjectFields state = fields.object("state");
  const ObjectFields waiting = state.object("waiting");
  status.waiting_reason = waiting.text("reason");
  status.waiting_message = waiting.text("message");
  const ObjectFields terminated = state.object("terminated");
  status.terminated = state.has("terminated");
  status.exit_code = terminated.integer("exitCode");
  status.terminated_reason = terminated.text("reason");
  status.terminated_message = terminated.text("message");
  return status;
}

void fill(PersistentVolumeClaim& claim, const ObjectFields& root) {
  const ObjectFields spec = root.object("spec");
  claim.storage_class_name = spec.optional_text("storageClassName");
  claim.volume_name = spec.text("volumeName");
  claim.volume_mode = spec.text("volumeMode");
  const ObjectFields resources = spec.object("resources");
  claim.storage_request = resources.object("requests").quantity("storage");
  claim.access_modes = spec.texts("accessModes");
  claim.has_selector = spec.has("selector");
  claim.data_source = decode_data_source(spec);
  const ObjectFields status = root.object("status");
  claim.phase = status.text("phase");
  claim.capacity = status.object("capacity").quantity("storage");
  claim.allocated = status.object("allocatedResources").quantity("storage");
  claim.resize_status = status.object("allocatedResourceStatuses").text("storage");
  status.each("conditions", [&](const ObjectFields& condition) {
    claim.conditions.push_back(
        {.type = condition.text("type"), .status = condition.text("status")});
  });
}

void fill(PersistentVolume& volume, const ObjectFields& root) {
  const ObjectFields spec = root.object("spec");
  const ObjectFields claim = spec.object("claimRef");
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
  const ObjectFields affinity = spec.object("nodeAffinity");
  affinity.object("required").each("nodeSelectorTerms", [&](const ObjectFields& term) {
    volume.node_affinity.push_back(
        {.match_expressions = decode_requirements(term, "matchExpressions"),
         .match_fields = decode_requirements(term, "matchFields")});
  });
}

void fill(StorageClass& storage_class, const ObjectFields& root) {
  storage_class.provisioner = root.text("provisioner");
  storage_class.reclaim_policy = root.text("reclaimPolicy");
  storage_class.volume_binding_mode = root.text("volumeBindingMode");
  storage_class.parameters = root.map("parameters");
  storage_class.mount_options = root.texts("mountOptions");
}

void fill(Node&, const ObjectFields&) {}

void fill(Pod& pod, const ObjectFields& root) {
  pod.node_name = root.object("spec").text("nodeName");
  const ObjectFields status = root.object("status");
  pod.phase = status.text("phase");
  pod.reason = status.text("reason");
  pod.message = status.text("message");
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    status.each(list, [&](const ObjectFields& fields) {
      pod.containers.push_back(decode_container_status(fields));
    });
  }
  status.each("conditions", [&](const ObjectFields& fields) {
    pod.conditions.push_back({.type = fields.text("type"),
                              .status = fields.text("status"),
                              .reason = fields.text("reason"),
                              .message = fields.text("message")});
  });
}

void fill(ConfigMap& config_map, const ObjectFields& root) { config_map.data = root.map("data"); }

template <typename T>
Result<T> decode_object(Value object) {
  std::optional<Error> error;
  const ObjectFields root(object, error);
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
