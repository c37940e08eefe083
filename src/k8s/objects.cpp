#include "k8s/objects.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/paths.h"

namespace lpp::k8s {

namespace {

constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";

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

// What the decoders below look at, by its names in JSON and its numbers in the files
// generated.proto of k8s.io/api and k8s.io/apimachinery. Objects arrive with these fields only.

using enum FieldType;

constexpr std::array kOwnerFields =
    std::to_array<ReadField>({{"kind", 1}, {"name", 3}, {"uid", 4}, {"apiVersion", 5}});
constexpr std::array kMetaFields =
    std::to_array<ReadField>({{"name", 1},
                              {"generateName", 2},
                              {"namespace", 3},
                              {"uid", 5},
                              {"resourceVersion", 6},
                              {"generation", 7, kInteger},
                              {"creationTimestamp", 8, kTime},
                              {"deletionTimestamp", 9, kTime},
                              {"labels", 11, kTextMap},
                              {"annotations", 12, kTextMap},
                              {"ownerReferences", 13, kObjects, kOwnerFields},
                              {"finalizers", 14, kTexts}});
constexpr std::array kPhaseField = std::to_array<ReadField>({{"phase", 1}});

constexpr std::array kResourceFields = std::to_array<ReadField>({{"requests", 2, kQuantityMap}});
constexpr std::array kDataSourceFields = std::to_array<ReadField>({{"kind", 2}, {"name", 3}});
constexpr std::array kClaimSpecFields =
    std::to_array<ReadField>({{"accessModes", 1, kTexts},
                              {"resources", 2, kObject, kResourceFields},
                              {"volumeName", 3},
                              {"selector", 4, kObject},
                              {"storageClassName", 5},
                              {"volumeMode", 6},
                              {"dataSource", 7, kObject, kDataSourceFields},
                              {"dataSourceRef", 8, kObject, kDataSourceFields}});
constexpr std::array kClaimConditionFields = std::to_array<ReadField>({{"type", 1}, {"status", 2}});
constexpr std::array kClaimStatusFields =
    std::to_array<ReadField>({{"phase", 1},
                              {"capacity", 3, kQuantityMap},
                              {"conditions", 4, kObjects, kClaimConditionFields},
                              {"allocatedResources", 5, kQuantityMap},
                              {"allocatedResourceStatuses", 7, kTextMap}});
constexpr std::array kClaimFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields},
                              {"spec", 2, kObject, kClaimSpecFields},
                              {"status", 3, kObject, kClaimStatusFields}});

constexpr std::array kPathField = std::to_array<ReadField>({{"path", 1}});
constexpr std::array kClaimRefFields =
    std::to_array<ReadField>({{"namespace", 2}, {"name", 3}, {"uid", 4}});
constexpr std::array kRequirementFields =
    std::to_array<ReadField>({{"key", 1}, {"operator", 2}, {"values", 3, kTexts}});
constexpr std::array kTermFields =
    std::to_array<ReadField>({{"matchExpressions", 1, kObjects, kRequirementFields},
                              {"matchFields", 2, kObjects, kRequirementFields}});
constexpr std::array kSelectorFields =
    std::to_array<ReadField>({{"nodeSelectorTerms", 1, kObjects, kTermFields}});
constexpr std::array kAffinityFields =
    std::to_array<ReadField>({{"required", 1, kObject, kSelectorFields}});
constexpr std::uint32_t kVolumeSource = 2;  // what hostPath and local are kept in
constexpr std::array kVolumeSpecFields =
    std::to_array<ReadField>({{"capacity", 1, kQuantityMap},
                              {"hostPath", 3, kObject, kPathField, kVolumeSource},
                              {"local", 20, kObject, kPathField, kVolumeSource},
                              {"accessModes", 3, kTexts},
                              {"claimRef", 4, kObject, kClaimRefFields},
                              {"persistentVolumeReclaimPolicy", 5},
                              {"storageClassName", 6},
                              {"volumeMode", 8},
                              {"nodeAffinity", 9, kObject, kAffinityFields}});
constexpr std::array kVolumeFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields},
                              {"spec", 2, kObject, kVolumeSpecFields},
                              {"status", 3, kObject, kPhaseField}});

constexpr std::array kStorageClassFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields},
                              {"provisioner", 2},
                              {"parameters", 3, kTextMap},
                              {"reclaimPolicy", 4},
                              {"mountOptions", 5, kTexts},
                              {"volumeBindingMode", 7}});

constexpr std::array kNodeFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields}});

constexpr std::array kPodSpecFields = std::to_array<ReadField>({{"nodeName", 10}});
constexpr std::array kWaitingFields = std::to_array<ReadField>({{"reason", 1}, {"message", 2}});
constexpr std::array kTerminatedFields =
    std::to_array<ReadField>({{"exitCode", 1, kInteger}, {"reason", 3}, {"message", 4}});
constexpr std::array kStateFields = std::to_array<ReadField>(
    {{"waiting", 1, kObject, kWaitingFields}, {"terminated", 3, kObject, kTerminatedFields}});
constexpr std::array kContainerStatusFields =
    std::to_array<ReadField>({{"name", 1}, {"state", 2, kObject, kStateFields}});
constexpr std::array kConditionFields =
    std::to_array<ReadField>({{"type", 1}, {"status", 2}, {"reason", 5}, {"message", 6}});
constexpr std::array kPodStatusFields =
    std::to_array<ReadField>({{"phase", 1},
                              {"conditions", 2, kObjects, kConditionFields},
                              {"message", 3},
                              {"reason", 4},
                              {"containerStatuses", 8, kObjects, kContainerStatusFields},
                              {"initContainerStatuses", 10, kObjects, kContainerStatusFields}});
constexpr std::array kPodFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields},
                              {"spec", 2, kObject, kPodSpecFields},
                              {"status", 3, kObject, kPodStatusFields}});

constexpr std::array kConfigMapFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields}, {"data", 2, kTextMap}});

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
Projection fields_of<PersistentVolumeClaim>() {
  return kClaimFields;
}
template <>
Projection fields_of<PersistentVolume>() {
  return kVolumeFields;
}
template <>
Projection fields_of<StorageClass>() {
  return kStorageClassFields;
}
template <>
Projection fields_of<Node>() {
  return kNodeFields;
}
template <>
Projection fields_of<Pod>() {
  return kPodFields;
}
template <>
Projection fields_of<ConfigMap>() {
  return kConfigMapFields;
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
