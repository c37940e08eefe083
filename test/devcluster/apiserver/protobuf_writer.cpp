// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/protobuf_writer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <protozero/pbf_writer.hpp>

#include "base/parse_time.h"
#include "devcluster/apiserver/protobuf_schema.h"
#include "devcluster/json_names.h"
#include "k8s/base64.h"

namespace lpp::devcluster {
namespace {

using Field = ProtobufField;
using Type = ProtobufType;
using protozero::pbf_writer;

constexpr std::array<std::string_view, 7> kWrittenKinds = {
    "ConfigMap", "PersistentVolume", "PersistentVolumeClaim",
    "Pod",       "StorageClass",     "PartialObjectMetadata",
    "Status"};

/// Writes messages and remembers whether anything had to be left out.
class Encoder {
 public:
  std::string message(const Json& object, std::string_view schema_name) {
    const auto* schema = protobuf_schema(schema_name);
    std::string bytes;
    if (schema == nullptr || !object.is_object()) {
      complete_ = false;
      return bytes;
    }
    for (const auto& [name, value] : object.items()) {
      const bool blank = value.is_null() || (value.is_array() && value.empty());
      if (!blank && !knows(*schema, name)) complete_ = false;
    }
    write_fields(bytes, object, *schema);
    return bytes;
  }

  bool complete() const { return complete_; }

 private:
  static bool knows(const ProtobufSchema& schema, const std::string& name) {
    return std::any_of(schema.begin(), schema.end(), [&](const Field& one) {
      if (one.type != Type::kInline) return name == one.name;
      const auto* inside = protobuf_schema(one.message);
      return knows(*inside, name);
    });
  }

  void write_fields(std::string& bytes, const Json& object, const ProtobufSchema& schema) {
    pbf_writer out(bytes);
    for (const auto& field : schema) {
      if (field.type != Type::kInline) {
        write_value(out, field, child(object, field.name));
        continue;
      }
      std::string inside;
      write_fields(inside, object, *protobuf_schema(field.message));
      out.add_message(field.number, inside);
    }
  }

  void write_value(pbf_writer& out, const Field& field, const Json& value) {
    if (value.is_null()) {
      if (field.presence == Presence::kAlways) write_zero(out, field);
      return;
    }
    switch (field.type) {
      case Type::kString: return out.add_string(field.number, text_of(value));
      case Type::kInt:
        return out.add_int64(field.number, value.is_number_integer() ? value.get<std::int64_t>()
                                                                     : wrong<std::int64_t>());
      case Type::kBool:
        return out.add_bool(field.number, value.is_boolean() ? value.get<bool>() : wrong<bool>());
      case Type::kTime: return out.add_message(field.number, time_of(text_of(value)));
      case Type::kMessage: return out.add_message(field.number, message(value, field.message));
      case Type::kStrings:
        if (!value.is_array()) complete_ = false;
        for (const auto& item : value) out.add_string(field.number, text_of(item));
        return;
      case Type::kMessages:
        if (!value.is_array()) complete_ = false;
        for (const auto& item : value) {
          out.add_message(field.number, message(item, field.message));
        }
        return;
      case Type::kStringMap:
      case Type::kBytesMap:
      case Type::kQuantityMap: return write_map(out, field, value);
      case Type::kInline:
      case Type::kIntOrString: complete_ = false;
    }
  }

  /// What Go writes of a field that is not set, but is no pointer.
  void write_zero(pbf_writer& out, const Field& field) {
    switch (field.type) {
      case Type::kString: return out.add_string(field.number, "");
      case Type::kInt: return out.add_int64(field.number, 0);
      case Type::kBool: return out.add_bool(field.number, false);
      case Type::kTime: return out.add_message(field.number, std::string());
      case Type::kMessage:
        return out.add_message(field.number, message(Json::object(), field.message));
      default: return;
    }
  }

  void write_map(pbf_writer& out, const Field& field, const Json& map) {
    if (!map.is_object()) complete_ = false;
    for (const auto& [key, value] : map.items()) {
      std::string entry;
      pbf_writer writer(entry);
      writer.add_string(1, key);
      if (field.type == Type::kQuantityMap) {
        std::string quantity;
        pbf_writer(quantity).add_string(1, value.is_number() ? dump(value) : text_of(value));
        writer.add_message(2, quantity);
      } else if (field.type == Type::kBytesMap) {
        const auto decoded = k8s::base64_decode(text_of(value));
        writer.add_bytes(2, decoded ? *decoded : wrong<std::string>());
      } else {
        writer.add_string(2, text_of(value));
      }
      out.add_message(field.number, entry);
    }
  }

  std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : wrong<std::string>();
  }

  std::string time_of(const std::string& text) {
    const auto time = parse_rfc3339(text);
    if (!time) return wrong<std::string>();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(*time);
    if (seconds != *time) return wrong<std::string>();
    std::string bytes;
    pbf_writer out(bytes);
    out.add_int64(1, seconds.time_since_epoch().count());
    out.add_int64(2, 0);
    return bytes;
  }

  /// A value of another type than the table says.
  template <typename T>
  T wrong() {
    complete_ = false;
    return {};
  }

  bool complete_ = true;
};

std::string envelope(std::string_view api_version, std::string_view kind, const std::string& raw) {
  std::string type_meta;
  {
    pbf_writer out(type_meta);
    out.add_string(1, api_version.data(), api_version.size());
    out.add_string(2, kind.data(), kind.size());
  }
  std::string bytes("k8s\0", 4);
  pbf_writer out(bytes);
  out.add_message(1, type_meta);
  out.add_bytes(2, raw);
  out.add_string(3, "");  // content encoding
  out.add_string(4, "");  // content type
  return bytes;
}

/// Kind and version of an object stand in its envelope only.
Json without_type(const Json& object) {
  Json copy = object;
  copy.erase("kind");
  copy.erase("apiVersion");
  return copy;
}

std::string enveloped(Encoder& encoder, const Json& object) {
  const std::string kind = text_at(object, {"kind"});
  return envelope(text_at(object, {"apiVersion"}), kind,
                  encoder.message(without_type(object), kind));
}

}  // namespace

bool is_written_as_protobuf(std::string_view kind) {
  return std::find(kWrittenKinds.begin(), kWrittenKinds.end(), kind) != kWrittenKinds.end();
}

std::optional<std::string> protobuf_object(const Json& object) {
  if (!is_written_as_protobuf(text_at(object, {"kind"}))) return std::nullopt;
  Encoder encoder;
  std::string bytes = enveloped(encoder, object);
  if (!encoder.complete()) return std::nullopt;
  return bytes;
}

std::optional<std::string> protobuf_list(std::string_view kind, std::string_view api_version,
                                         const Json& metadata,
                                         const std::vector<ObjectPtr>& items) {
  if (!is_written_as_protobuf(kind)) return std::nullopt;
  const bool only_metadata = kind == "PartialObjectMetadata";
  Encoder encoder;
  std::string list;
  pbf_writer out(list);
  out.add_message(1, encoder.message(metadata, "ListMeta"));
  for (const auto& item : items) {
    out.add_message(2, encoder.message(only_metadata ? Json{{"metadata", child(*item, "metadata")}}
                                                     : without_type(*item),
                                       kind));
  }
  if (!encoder.complete()) return std::nullopt;
  return envelope(api_version, std::string(kind) + "List", list);
}

std::string protobuf_frame(std::string_view type, const Json& object) {
  Encoder encoder;
  std::string raw_extension;
  pbf_writer(raw_extension).add_bytes(1, enveloped(encoder, object));
  std::string event;
  pbf_writer out(event);
  out.add_string(1, type.data(), type.size());
  out.add_message(2, raw_extension);
  std::string frame;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame += static_cast<char>(event.size() >> shift & 0xffU);
  }
  return frame + event;
}

}  // namespace lpp::devcluster
