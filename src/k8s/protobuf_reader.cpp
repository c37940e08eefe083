#include "k8s/protobuf_reader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <string>

#include "base/clock.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::string_view kMagic("k8s\0", 4);

// Field numbers of k8s.io/apimachinery's messages.
constexpr std::uint32_t kUnknownTypeMeta = 1;
constexpr std::uint32_t kUnknownRaw = 2;
constexpr std::uint32_t kUnknownContentEncoding = 3;
constexpr std::uint32_t kTypeMetaKind = 2;
constexpr std::uint32_t kEventType = 1;
constexpr std::uint32_t kEventObject = 2;
constexpr std::uint32_t kRawExtensionRaw = 1;
constexpr std::uint32_t kListMetadata = 1;
constexpr std::uint32_t kListItems = 2;
constexpr std::uint32_t kEntryKey = 1;
constexpr std::uint32_t kEntryValue = 2;
constexpr std::uint32_t kTimeSeconds = 1;
constexpr std::uint32_t kQuantityText = 1;

constexpr std::array kListMetaFields =
    std::to_array<ReadField>({{"resourceVersion", 2}, {"continue", 3}});

/// Malformed input leaves the reading as an exception, as it does protozero; the public functions
/// end it.
struct Malformed : std::exception {};

/// The text or message of the field the reader stands at.
std::string_view bytes_of(pbf_reader& message) {
  if (message.wire_type() != pbf_wire_type::length_delimited) throw Malformed();
  return message.get_view();
}

std::int64_t number_of(pbf_reader& message) {
  if (message.wire_type() != pbf_wire_type::varint) throw Malformed();
  return message.get_int64();
}

/// The bytes of a message's field with this number; empty when there is none.
std::string_view bytes_in(std::string_view bytes, std::uint32_t number) {
  std::string_view found;
  pbf_reader message(bytes);
  while (message.next(number)) found = bytes_of(message);
  return found;
}

/// The server does not look whether texts that came as protobuf are UTF-8, JSON must be.
json text(std::string_view bytes) {
  const bool ascii = std::all_of(bytes.begin(), bytes.end(), [](char c) { return c > 0; });
  json value(bytes);
  if (ascii) return value;
  return json::parse(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

json time(std::string_view bytes) {
  if (bytes.empty()) return nullptr;
  std::int64_t seconds = 0;
  pbf_reader message(bytes);
  while (message.next(kTimeSeconds)) seconds = number_of(message);
  // What the system's clock can express; no object is older.
  constexpr std::int64_t kLongest = std::int64_t{1} << 33U;
  if (seconds < -kLongest || seconds > kLongest) throw Malformed();
  return format_rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(seconds)));
}

void put_entry(json& map, std::string_view entry, bool quantity) {
  const json key = text(bytes_in(entry, kEntryKey));
  const std::string_view value = bytes_in(entry, kEntryValue);
  map[key.get_ref<const std::string&>()] = text(quantity ? bytes_in(value, kQuantityText) : value);
}

json read_message(std::string_view bytes, Projection projection);

void read_field(pbf_reader& message, const ReadField& field, json& value) {
  switch (field.type) {
    case FieldType::kText:
      value = text(bytes_of(message));
      break;
    case FieldType::kTexts:
      value.push_back(text(bytes_of(message)));
      break;
    case FieldType::kInteger:
      value = number_of(message);
      break;
    case FieldType::kTime:
      value = time(bytes_of(message));
      break;
    case FieldType::kTextMap:
    case FieldType::kQuantityMap:
      put_entry(value, bytes_of(message), field.type == FieldType::kQuantityMap);
      break;
    case FieldType::kObject:
      value = read_message(bytes_of(message), field.inside);
      break;
    case FieldType::kObjects:
      value.push_back(read_message(bytes_of(message), field.inside));
      break;
  }
}

/// Reads what the projection asks for, of the fields that are `within` the message of that number.
void read_fields(std::string_view bytes, Projection projection, std::uint32_t within,
                 json& object) {
  pbf_reader message(bytes);
  while (message.next()) {
    const std::uint32_t number = message.tag();
    const auto field =
        std::find_if(projection.begin(), projection.end(), [&](const ReadField& one) {
          return (one.number == number && one.within == within) ||
                 (within == 0 && one.within == number);
        });
    if (field == projection.end()) {
      message.skip();
    } else if (field->within != within) {
      read_fields(bytes_of(message), projection, number, object);
    } else {
      read_field(message, *field, object[field->name]);
    }
  }
}

json read_message(std::string_view bytes, Projection projection) {
  json object = json::object();
  read_fields(bytes, projection, 0, object);
  return object;
}

/// What stands around every object: its kind, and its message.
struct Envelope {
  std::string_view kind;
  std::string_view message;
};

Envelope open_envelope(std::string_view body) {
  if (!is_protobuf(body)) throw Malformed();
  body.remove_prefix(kMagic.size());
  if (!bytes_in(body, kUnknownContentEncoding).empty()) throw Malformed();
  return {.kind = bytes_in(bytes_in(body, kUnknownTypeMeta), kTypeMetaKind),
          .message = bytes_in(body, kUnknownRaw)};
}

json read_enveloped(std::string_view body, Projection projection) {
  const Envelope envelope = open_envelope(body);
  json object = read_message(envelope.message, projection);
  object["kind"] = text(envelope.kind);
  return object;
}

/// What `read` gives; discarded when it meets something malformed.
template <typename Read>
json guarded(const Read& read) {
  try {
    return read();
  } catch (const std::exception&) {
    return json(json::value_t::discarded);
  }
}

}  // namespace

bool is_protobuf(std::string_view body) { return body.starts_with(kMagic); }

json read_protobuf(std::string_view body, Projection projection) {
  return guarded([&] { return read_enveloped(body, projection); });
}

json read_protobuf_frame(std::string_view frame, Projection projection) {
  return guarded([&] {
    const std::string_view object = bytes_in(bytes_in(frame, kEventObject), kRawExtensionRaw);
    json result = json::object();
    result["type"] = text(bytes_in(frame, kEventType));
    result["object"] = read_enveloped(object, projection);
    return result;
  });
}

json read_protobuf_list(std::string_view body, const std::function<void(const json&)>& on_item,
                        Projection projection) {
  return guarded([&] {
    const Envelope envelope = open_envelope(body);
    if (!envelope.kind.ends_with("List")) throw Malformed();
    json list = {{"metadata", json::object()}, {"items", json::array()}};
    pbf_reader message(envelope.message);
    while (message.next()) {
      if (message.tag() == kListMetadata) {
        list["metadata"] = read_message(bytes_of(message), kListMetaFields);
      } else if (message.tag() == kListItems) {
        on_item(read_message(bytes_of(message), projection));
      } else {
        message.skip();
      }
    }
    return list;
  });
}

}  // namespace lpp::k8s
