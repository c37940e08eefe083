#include "devcluster/apiserver/protobuf.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "devcluster/apiserver/json_util.h"

namespace lpp::devcluster {
namespace {

enum class Type {
  kString,
  kStrings,
  kBytesMap,
  kStringMap,
  kInt,
  kBool,
  kMessage,
  kMessages,
  kIntOrString,
};

struct Field {
  std::uint64_t number = 0;
  const char* name = "";
  Type type = Type::kString;
  const char* message = "";  ///< schema of kMessage and kMessages
};

using Schema = std::vector<Field>;

/// Field numbers of k8s.io/api's generated.proto files.
const std::map<std::string, Schema, std::less<>>& schemas() {
  static const std::map<std::string, Schema, std::less<>> table = {
      {"ObjectMeta",
       {{1, "name"},
        {2, "generateName"},
        {3, "namespace"},
        {5, "uid"},
        {6, "resourceVersion"},
        {11, "labels", Type::kStringMap},
        {12, "annotations", Type::kStringMap},
        {14, "finalizers", Type::kStrings}}},
      {"Namespace", {{1, "metadata", Type::kMessage, "ObjectMeta"}}},
      {"ConfigMap",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "data", Type::kStringMap},
        {3, "binaryData", Type::kBytesMap},
        {4, "immutable", Type::kBool}}},
      {"Secret",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "data", Type::kBytesMap},
        {3, "type"},
        {4, "stringData", Type::kStringMap},
        {5, "immutable", Type::kBool}}},
      {"ServiceAccount", {{1, "metadata", Type::kMessage, "ObjectMeta"}}},
      {"TokenRequest",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "spec", Type::kMessage, "TokenRequestSpec"}}},
      {"TokenRequestSpec",
       {{1, "audiences", Type::kStrings}, {4, "expirationSeconds", Type::kInt}}},
      {"PolicyRule",
       {{1, "verbs", Type::kStrings},
        {2, "apiGroups", Type::kStrings},
        {3, "resources", Type::kStrings},
        {4, "resourceNames", Type::kStrings},
        {5, "nonResourceURLs", Type::kStrings}}},
      {"Role",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "rules", Type::kMessages, "PolicyRule"}}},
      {"ClusterRole",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "rules", Type::kMessages, "PolicyRule"}}},
      {"Subject", {{1, "kind"}, {2, "apiGroup"}, {3, "name"}, {4, "namespace"}}},
      {"RoleRef", {{1, "apiGroup"}, {2, "kind"}, {3, "name"}}},
      {"RoleBinding",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "subjects", Type::kMessages, "Subject"},
        {3, "roleRef", Type::kMessage, "RoleRef"}}},
      {"ClusterRoleBinding",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "subjects", Type::kMessages, "Subject"},
        {3, "roleRef", Type::kMessage, "RoleRef"}}},
      {"Service",
       {{1, "metadata", Type::kMessage, "ObjectMeta"}, {2, "spec", Type::kMessage, "ServiceSpec"}}},
      {"ServiceSpec",
       {{1, "ports", Type::kMessages, "ServicePort"},
        {2, "selector", Type::kStringMap},
        {3, "clusterIP"},
        {4, "type"}}},
      {"ServicePort",
       {{1, "name"},
        {2, "protocol"},
        {3, "port", Type::kInt},
        {4, "targetPort", Type::kIntOrString}}},
      {"Deployment",
       {{1, "metadata", Type::kMessage, "ObjectMeta"},
        {2, "spec", Type::kMessage, "DeploymentSpec"}}},
      {"DeploymentSpec",
       {{1, "replicas", Type::kInt},
        {2, "selector", Type::kMessage, "LabelSelector"},
        {3, "template", Type::kMessage, "PodTemplate"}}},
      {"LabelSelector", {{1, "matchLabels", Type::kStringMap}}},
      {"PodTemplate",
       {{1, "metadata", Type::kMessage, "ObjectMeta"}, {2, "spec", Type::kMessage, "PodSpec"}}},
      {"PodSpec",
       {{2, "containers", Type::kMessages, "Container"},
        {3, "restartPolicy"},
        {4, "terminationGracePeriodSeconds", Type::kInt},
        {7, "nodeSelector", Type::kStringMap},
        {8, "serviceAccountName"},
        {10, "nodeName"}}},
      {"Container",
       {{1, "name"},
        {2, "image"},
        {3, "command", Type::kStrings},
        {4, "args", Type::kStrings},
        {6, "ports", Type::kMessages, "ContainerPort"},
        {7, "env", Type::kMessages, "EnvVar"}}},
      {"ContainerPort", {{1, "name"}, {3, "containerPort", Type::kInt}, {4, "protocol"}}},
      {"EnvVar", {{1, "name"}, {2, "value"}}},
      {"DeleteOptions",
       {{1, "gracePeriodSeconds", Type::kInt},
        {2, "preconditions", Type::kMessage, "Preconditions"},
        {4, "propagationPolicy"},
        {5, "dryRun", Type::kStrings}}},
      {"Preconditions", {{1, "uid"}, {2, "resourceVersion"}}},
      {"IntOrString", {{1, "type", Type::kInt}, {2, "int", Type::kInt}, {3, "string"}}},
      {"Entry", {{1, "key"}, {2, "value"}}},
      {"TypeMeta", {{1, "apiVersion"}, {2, "kind"}}},
      {"Unknown", {{1, "typeMeta", Type::kMessage, "TypeMeta"}, {2, "raw"}}},
  };
  return table;
}

/// One message's bytes, read field by field.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }

  std::optional<std::string_view> bytes() {
    const auto size = varint();
    return size ? take(*size) : std::nullopt;
  }

  std::optional<std::string_view> take(std::uint64_t size) {
    if (size > bytes_.size()) return std::nullopt;
    const auto out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }

 private:
  std::string_view bytes_;
};

std::optional<Json> decode_message(std::string_view bytes, std::string_view schema_name);

/// Puts one length-delimited field into `object`; false when it is malformed.
bool put_bytes(Json& object, const Field& field, std::string_view bytes) {
  switch (field.type) {
    case Type::kString:
      // Optional strings are sent even when they are empty.
      if (!bytes.empty()) object[field.name] = std::string(bytes);
      return true;
    case Type::kStrings:
      object[field.name].push_back(std::string(bytes));
      return true;
    case Type::kStringMap:
    case Type::kBytesMap: {
      const auto entry = decode_message(bytes, "Entry");
      if (!entry) return false;
      const std::string value = text_at(*entry, {"value"});
      object[field.name][text_at(*entry, {"key"})] =
          field.type == Type::kBytesMap ? base64_encode(value) : value;
      return true;
    }
    case Type::kMessage:
    case Type::kMessages: {
      auto message = decode_message(bytes, field.message);
      if (!message) return false;
      if (field.type == Type::kMessages) {
        object[field.name].push_back(std::move(*message));
      } else {
        object[field.name] = std::move(*message);
      }
      return true;
    }
    case Type::kIntOrString: {
      const auto value = decode_message(bytes, "IntOrString");
      if (!value) return false;
      const bool is_text = number_at(*value, {"type"}).value_or(0) == 1;
      object[field.name] = is_text ? child(*value, "string") : child(*value, "int");
      return true;
    }
    case Type::kInt:
    case Type::kBool:
      break;
  }
  return false;
}

std::optional<Json> decode_message(std::string_view bytes, std::string_view schema_name) {
  const auto schema = schemas().find(schema_name);
  if (schema == schemas().end()) return std::nullopt;
  Json object = Json::object();
  Reader reader(bytes);
  while (!reader.at_end()) {
    const auto tag = reader.varint();
    if (!tag) return std::nullopt;
    const Field* field = nullptr;
    for (const auto& candidate : schema->second) {
      if (candidate.number == *tag >> 3) field = &candidate;
    }
    switch (*tag & 7U) {
      case 0: {
        const auto value = reader.varint();
        if (!value) return std::nullopt;
        if (field == nullptr) break;
        if (field->type == Type::kBool) {
          object[field->name] = *value != 0;
        } else {
          object[field->name] = static_cast<std::int64_t>(*value);
        }
        break;
      }
      case 2: {
        const auto value = reader.bytes();
        if (!value || (field != nullptr && !put_bytes(object, *field, *value))) {
          return std::nullopt;
        }
        break;
      }
      case 1:
      case 5:
        if (!reader.take((*tag & 7U) == 1 ? 8 : 4)) return std::nullopt;
        break;
      default:
        return std::nullopt;
    }
  }
  return object;
}

}  // namespace

bool is_protobuf(std::string_view media_type) {
  return media_type == "application/vnd.kubernetes.protobuf";
}

std::optional<Json> decode_protobuf(std::string_view bytes) {
  constexpr std::string_view kMagic("k8s\0", 4);
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  const auto envelope = decode_message(bytes.substr(kMagic.size()), "Unknown");
  if (!envelope) return std::nullopt;
  const std::string kind = text_at(*envelope, {"typeMeta", "kind"});
  auto object = decode_message(text_at(*envelope, {"raw"}), kind);
  if (!object) return std::nullopt;
  (*object)["kind"] = kind;
  (*object)["apiVersion"] = text_at(*envelope, {"typeMeta", "apiVersion"});
  return object;
}

}  // namespace lpp::devcluster
