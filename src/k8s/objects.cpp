#include "k8s/objects.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace lpp::k8s {

namespace {

using nlohmann::json;

constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";

/// Reads one JSON object field by field. The first wrong type is kept with its place and all reads
/// of the same object tree after it give empty values, so that decoders need one check at the end.
/// An absent field and null are the same. Children refer to their parent: keep it alive.
class Fields {
 public:
  Fields(const json& root, std::optional<Error>& error) : error_(error) { open(root); }

  std::string text(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(name, "expected a string"), std::string();
    return value->get_ref<const std::string&>();
  }

  std::optional<std::string> optional_text(const char* name) const {
    if (find(name) == nullptr) return std::nullopt;
    return text(name);
  }

  /// A resource quantity: text, or a bare number (behaviour rule C9.2).
  std::string quantity(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get_ref<const std::string&>();
    if (value->is_number()) return value->dump();
    return fail(name, "expected a quantity"), std::string();
  }

  int integer(const char* name) const {
    const json* value = find(name);
    if (value == nullptr) return 0;
    const bool fits =
        value->is_number_unsigned()
            ? std::in_range<int>(value->get<std::uint64_t>())
            : value->is_number_integer() && std::in_range<int>(value->get<std::int64_t>());
    if (!fits) return fail(name, "expected an integer"), 0;
    return value->get<int>();
  }

  bool has(const char* name) const { return find(name) != nullptr; }

  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    const json* list = find_list(name);
    if (list == nullptr) return result;
    result.reserve(list->size());
    for (const json& item : *list) {
      if (item.is_null()) continue;
      if (!item.is_string()) return fail(name, "expected a list of strings"), result;
      result.push_back(item.get_ref<const std::string&>());
    }
    return result;
  }

  StringMap map(const char* name) const {
    StringMap result;
    const json* object = find(name);
    if (object == nullptr) return result;
    if (!object->is_object()) return fail(name, "expected an object"), result;
    for (const auto& [key, value] : object->items()) {
      if (value.is_null()) continue;
      if (!value.is_string()) {
        return fail((std::string(name) + "." + key).c_str(), "expected a string"), result;
      }
      result.emplace_hint(result.end(), key, value.get_ref<const std::string&>());
    }
    return result;
  }

  /// The object in that field; an empty one when it is absent.
  Fields object(const char* name) const {
    Fields child(*this, name, -1);
    if (const json* value = find(name)) child.open(*value);
    return child;
  }

  /// Calls visit(Fields) for each object of the list in that field.
  template <typename Visit>
  void each(const char* name, Visit visit) const {
    const json* list = find_list(name);
    if (list == nullptr) return;
    int index = -1;
    for (const json& item : *list) {
      ++index;
      if (item.is_null()) continue;
      Fields child(*this, name, index);
      child.open(item);
      visit(std::as_const(child));
    }
  }

  void require(const char* name) const {
    if (!error_ && text(name).empty()) fail(name, "required");
  }

 private:
  Fields(const Fields& parent, const char* name, int index)
      : parent_(&parent), name_(name), index_(index), error_(parent.error_) {}

  void open(const json& value) {
    if (value.is_object()) {
      object_ = &value;
    } else if (!value.is_null() && !error_) {
      error_ =
          invalid((parent_ == nullptr ? std::string("object") : path()) + ": expected an object");
    }
  }

  const json* find(const char* name) const {
    if (error_ || object_ == nullptr) return nullptr;
    const auto it = object_->find(name);
    return it == object_->end() || it->is_null() ? nullptr : &*it;
  }

  const json* find_list(const char* name) const {
    const json* value = find(name);
    if (value == nullptr || value->is_array()) return value;
    return fail(name, "expected a list"), nullptr;
  }

  void fail(const char* name, const char* what) const {
    if (error_) return;
    const std::string place = path();
    error_ = invalid((place.empty() ? place : place + ".") + name + ": " + what);
  }

  std::string path() const {
    if (parent_ == nullptr) return {};
    std::string place = parent_->path();
    if (!place.empty()) place += '.';
    place += name_;
    if (index_ >= 0) place += "[" + std::to_string(index_) + "]";
    return place;
  }

  const Fields* parent_ = nullptr;
  const char* name_ = "";
  int index_ = -1;
  const json* object_ = nullptr;
  std::optional<Error>& error_;
};

// What the decoders below look at; what they get is read with these (fields_of()).

constexpr std::array kMetaFields = std::to_array<ReadField>({{"name"},
                                                             {"namespace"},
                                                             {"uid"},
                                                             {"resourceVersion"},
                                                             {"generateName"},
                                                             {"creationTimestamp"},
                                                             {"deletionTimestamp"},
                                                             {"labels"},
                                                             {"annotations"},
                                                             {"finalizers"},
                                                             {"ownerReferences"}});
constexpr std::array kPhaseField = std::to_array<ReadField>({{"phase"}});

constexpr std::array kClaimSpecFields = std::to_array<ReadField>({{"storageClassName"},
                                                                  {"volumeName"},
                                                                  {"volumeMode"},
                                                                  {"resources"},
                                                                  {"accessModes"},
                                                                  {"selector"},
                                                                  {"dataSource"},
                                                                  {"dataSourceRef"}});
constexpr std::array kClaimFields = std::to_array<ReadField>(
    {{"metadata", kMetaFields}, {"spec", kClaimSpecFields}, {"status", kPhaseField}});

constexpr std::array kVolumeSpecFields =
    std::to_array<ReadField>({{"claimRef"},
                              {"storageClassName"},
                              {"persistentVolumeReclaimPolicy"},
                              {"capacity"},
                              {"accessModes"},
                              {"hostPath"},
                              {"local"},
                              {"nodeAffinity"}});
constexpr std::array kVolumeFields = std::to_array<ReadField>(
    {{"metadata", kMetaFields}, {"spec", kVolumeSpecFields}, {"status", kPhaseField}});

constexpr std::array kStorageClassFields = std::to_array<ReadField>({{"metadata", kMetaFields},
                                                                     {"provisioner"},
                                                                     {"reclaimPolicy"},
                                                                     {"volumeBindingMode"},
                                                                     {"parameters"},
                                                                     {"mountOptions"}});

constexpr std::array kNodeFields = std::to_array<ReadField>({{"metadata", kMetaFields}});

constexpr std::array kPodSpecFields = std::to_array<ReadField>({{"nodeName"}});
constexpr std::array kContainerStatusFields = std::to_array<ReadField>({{"name"}, {"state"}});
constexpr std::array kConditionFields =
    std::to_array<ReadField>({{"type"}, {"status"}, {"reason"}, {"message"}});
constexpr std::array kPodStatusFields =
    std::to_array<ReadField>({{"phase"},
                              {"reason"},
                              {"message"},
                              {"initContainerStatuses", kContainerStatusFields},
                              {"containerStatuses", kContainerStatusFields},
                              {"conditions", kConditionFields}});
constexpr std::array kPodFields = std::to_array<ReadField>(
    {{"metadata", kMetaFields}, {"spec", kPodSpecFields}, {"status", kPodStatusFields}});

constexpr std::array kConfigMapFields =
    std::to_array<ReadField>({{"metadata", kMetaFields}, {"data"}});

ObjectMeta decode_meta(const Fields& root) {
  const Fields fields = root.object("metadata");
  fields.require("name");
  ObjectMeta meta;
  meta.name = fields.text("name");
  meta.ns = fields.text("namespace");
  meta.uid = fields.text("uid");
  meta.resource_version = fields.text("resourceVersion");
  meta.generate_name = fields.text("generateName");
  meta.creation_timestamp = fields.text("creationTimestamp");
  meta.deletion_timestamp = fields.text("deletionTimestamp");
  meta.labels = fields.map("labels");
  meta.annotations = fields.map("annotations");
  meta.finalizers = fields.texts("finalizers");
  fields.each("ownerReferences", [&](const Fields& owner) {
    meta.owner_references.push_back({.api_version = owner.text("apiVersion"),
                                     .kind = owner.text("kind"),
                                     .name = owner.text("name"),
                                     .uid = owner.text("uid")});
  });
  return meta;
}

std::string decode_data_source(const Fields& spec) {
  for (const char* name : {"dataSource", "dataSourceRef"}) {
    if (!spec.has(name)) continue;
    const Fields source = spec.object(name);
    return source.text("kind") + "/" + source.text("name");
  }
  return {};
}

std::vector<NodeSelectorRequirement> decode_requirements(const Fields& term, const char* name) {
  std::vector<NodeSelectorRequirement> requirements;
  term.each(name, [&](const Fields& fields) {
    requirements.push_back({.key = fields.text("key"),
                            .op = fields.text("operator"),
                            .values = fields.texts("values")});
  });
  return requirements;
}

ContainerStatus decode_container_status(const Fields& fields) {
  ContainerStatus status;
  status.name = fields.text("name");
  const Fields state = fields.object("state");
  const Fields waiting = state.object("waiting");
  status.waiting_reason = waiting.text("reason");
  status.waiting_message = waiting.text("message");
  const Fields terminated = state.object("terminated");
  status.terminated = state.has("terminated");
  status.exit_code = terminated.integer("exitCode");
  status.terminated_reason = terminated.text("reason");
  status.terminated_message = terminated.text("message");
  return status;
}

void fill(PersistentVolumeClaim& claim, const Fields& root) {
  const Fields spec = root.object("spec");
  claim.storage_class_name = spec.optional_text("storageClassName");
  claim.volume_name = spec.text("volumeName");
  claim.volume_mode = spec.text("volumeMode");
  const Fields resources = spec.object("resources");
  claim.storage_request = resources.object("requests").quantity("storage");
  claim.access_modes = spec.texts("accessModes");
  claim.has_selector = spec.has("selector");
  claim.data_source = decode_data_source(spec);
  claim.phase = root.object("status").text("phase");
}

void fill(PersistentVolume& volume, const Fields& root) {
  const Fields spec = root.object("spec");
  const Fields claim = spec.object("claimRef");
  volume.claim = {claim.text("namespace"), claim.text("name")};
  volume.claim_uid = claim.text("uid");
  volume.storage_class_name = spec.text("storageClassName");
  volume.reclaim_policy = spec.text("persistentVolumeReclaimPolicy");
  volume.capacity = spec.object("capacity").quantity("storage");
  volume.access_modes = spec.texts("accessModes");
  volume.phase = root.object("status").text("phase");
  if (spec.has("hostPath")) {
    volume.source = VolumeSource::kHostPath;
    volume.path = spec.object("hostPath").text("path");
  } else if (spec.has("local")) {
    volume.source = VolumeSource::kLocal;
    volume.path = spec.object("local").text("path");
  }
  const Fields affinity = spec.object("nodeAffinity");
  affinity.object("required").each("nodeSelectorTerms", [&](const Fields& term) {
    volume.node_affinity.push_back(
        {.match_expressions = decode_requirements(term, "matchExpressions"),
         .match_fields = decode_requirements(term, "matchFields")});
  });
}

void fill(StorageClass& storage_class, const Fields& root) {
  storage_class.provisioner = root.text("provisioner");
  storage_class.reclaim_policy = root.text("reclaimPolicy");
  storage_class.volume_binding_mode = root.text("volumeBindingMode");
  storage_class.parameters = root.map("parameters");
  storage_class.mount_options = root.texts("mountOptions");
}

void fill(Node&, const Fields&) {}

void fill(Pod& pod, const Fields& root) {
  pod.node_name = root.object("spec").text("nodeName");
  const Fields status = root.object("status");
  pod.phase = status.text("phase");
  pod.reason = status.text("reason");
  pod.message = status.text("message");
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    status.each(list, [&](const Fields& fields) {
      pod.containers.push_back(decode_container_status(fields));
    });
  }
  status.each("conditions", [&](const Fields& fields) {
    pod.conditions.push_back({.type = fields.text("type"),
                              .status = fields.text("status"),
                              .reason = fields.text("reason"),
                              .message = fields.text("message")});
  });
}

void fill(ConfigMap& config_map, const Fields& root) { config_map.data = root.map("data"); }

template <typename T>
Result<T> decode_object(const json& object) {
  std::optional<Error> error;
  const Fields root(object, error);
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
Result<PersistentVolumeClaim> decode(const json& object) {
  return decode_object<PersistentVolumeClaim>(object);
}
template <>
Result<PersistentVolume> decode(const json& object) {
  return decode_object<PersistentVolume>(object);
}
template <>
Result<StorageClass> decode(const json& object) {
  return decode_object<StorageClass>(object);
}
template <>
Result<Node> decode(const json& object) {
  return decode_object<Node>(object);
}
template <>
Result<Pod> decode(const json& object) {
  return decode_object<Pod>(object);
}
template <>
Result<ConfigMap> decode(const json& object) {
  return decode_object<ConfigMap>(object);
}

}  // namespace lpp::k8s
