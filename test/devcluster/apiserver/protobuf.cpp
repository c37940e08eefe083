// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/protobuf.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "devcluster/apiserver/protobuf_schema.h"
#include "devcluster/json_names.h"
#include "k8s/base64.h"

namespace lpp::devcluster {
namespace {

using Field = ProtobufField;
using Type = ProtobufType;

/// Kinds that clients send as protobuf. Of others, pods above all, the table lacks what a client
/// may want to have stored.
constexpr std::array<std::string_view, 12> kReadKinds = {
    "Namespace",          "ConfigMap", "Secret",      "ServiceAccount",
    "TokenRequest",       "Role",      "ClusterRole", "RoleBinding",
    "ClusterRoleBinding", "Service",   "Deployment",  "DeleteOptions"};

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
    case Type::kStrings: object[field.name].push_back(std::string(bytes)); return true;
    case Type::kStringMap:
    case Type::kBytesMap: {
      const auto entry = decode_message(bytes, "Entry");
      if (!entry) return false;
      const std::string value = text_at(*entry, {"value"});
      object[field.name][text_at(*entry, {"key"})] =
          field.type == Type::kBytesMap ? k8s::base64_encode(value) : value;
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
      const bool is_text = number_at(*value, {"type"}, 0) == 1;
      object[field.name] = is_text ? child(*value, "string") : child(*value, "int");
      return true;
    }
    case Type::kQuantityMap: {
      const auto entry = decode_message(bytes, "Entry");
      const auto value =
          entry ? decode_message(text_at(*entry, {"value"}), "Quantity") : std::nullopt;
      if (!value) return false;
      object[field.name][text_at(*entry, {"key"})] = text_at(*value, {"text"});
      return true;
    }
    case Type::kTime: {
      const auto value = decode_message(bytes, "Time");
      if (!value) return false;
      if (bytes.empty()) return true;
      object[field.name] = format_rfc3339(std::chrono::system_clock::time_point(
          std::chrono::seconds(number_at(*value, {"seconds"}, 0))));
      return true;
    }
    case Type::kInline: {
      const auto message = decode_message(bytes, field.message);
      if (!message) return false;
      object.update(*message);
      return true;
    }
    case Type::kInt:
    case Type::kBool: break;
  }
  return false;
}

std::optional<Json> decode_message(std::string_view bytes, std::string_view schema_name) {
  const auto* schema = protobuf_schema(schema_name);
  if (schema == nullptr) return std::nullopt;
  Json object = Json::object();
  Reader reader(bytes);
  while (!reader.at_end()) {
    const auto tag = reader.varint();
    if (!tag) return std::nullopt;
    const Field* field = nullptr;
    for (const auto& candidate : *schema) {
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
      default: return std::nullopt;
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
  if (std::find(kReadKinds.begin(), kReadKinds.end(), kind) == kReadKinds.end()) {
    return std::nullopt;
  }
  auto object = decode_message(text_at(*envelope, {"raw"}), kind);
  if (!object) return std::nullopt;
  (*object)["kind"] = kind;
  (*object)["apiVersion"] = text_at(*envelope, {"typeMeta", "apiVersion"});
  return object;
}

}  // namespace lpp::devcluster
