// SPDX-License-Identifier: Apache-2.0
#include "k8s/protobuf_reader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <string>

#include "base/clock.h"
#include "k8s/json_writer.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Field numbers of k8s.io/apimachinery's messages.
constexpr std::uint32_t kUnknownTypeMeta = 1;
constexpr std::uint32_t kUnknownRaw = 2;
constexpr std::uint32_t kUnknownContentEncoding = 3;
constexpr std::uint32_t kTypeMetaKind = 2;
constexpr std::uint32_t kEventType = 1;
constexpr std::uint32_t kEventObject = 2;
constexpr std::uint32_t kRawExtensionRaw = 1;
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

/// No byte is above ASCII's. Most texts are looked at, so this takes eight at a time.
bool is_ascii(std::string_view bytes) {
  std::uint64_t seen = 0;
  for (; bytes.size() >= sizeof(seen); bytes.remove_prefix(sizeof(seen))) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes.data(), sizeof(eight));
    seen |= eight;
  }
  for (const char c : bytes) seen |= static_cast<unsigned char>(c);
  return (seen & 0x8080808080808080U) == 0;
}

std::string format_time(std::string_view bytes) {
  std::int64_t since_epoch = 0;
  pbf_reader message(bytes);
  while (message.next(kTimeSeconds)) since_epoch = number_of(message);
  // What the system's clock can express; no object is older.
  constexpr std::int64_t kLongest = std::int64_t{1} << 33U;
  if (since_epoch < -kLongest || since_epoch > kLongest) throw Malformed();
  return format_rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(since_epoch)));
}

/// Puts what is read of one message into a tree.
class Reading {
 public:
  using Index = ValueTree::Index;

  explicit Reading(ValueTree& tree) : tree_(tree) {}

  /// The server does not look whether texts that came as protobuf are UTF-8, but ours must be.
  std::string_view text(std::string_view bytes) {
    if (is_ascii(bytes)) return bytes;
    return tree_.keep(json::parse(write_json(json(bytes))).get<std::string>());
  }

  /// Reads what the projection asks for, of the fields that are `within` the message of that
  /// number.
  void fields(std::string_view bytes, Projection projection, Index object,
              std::uint32_t within = 0) {
    std::array<std::size_t, kMostFields> used{};  // of each field that has bounds
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
        fields(bytes_of(message), projection, object, number);
      } else {
        const auto place = static_cast<std::size_t>(field - projection.begin());
        read(message, *field, object, used.at(place));
      }
    }
  }

 private:
  // More than any table has.
  static constexpr std::size_t kMostFields = 32;

  void read(pbf_reader& message, const ReadField& field, Index object, std::size_t& used) {
    using Type = Value::Type;
    if (field.most != 0 && message.wire_type() == pbf_wire_type::length_delimited) {
      pbf_reader ahead = message;
      const std::string_view entry = ahead.get_view();
      const bool is_map =
          field.type == FieldType::kTextMap || field.type == FieldType::kQuantityMap;
      const auto key = is_map ? bytes_in(entry, kEntryKey) : std::string_view();
      const bool is_one = field.type == FieldType::kObject || field.type == FieldType::kText;
      if (is_one ? entry.size() > field.most : !fits(field, key, entry.size(), used)) {
        tree_.put(object, kLeftOut, Type::kBoolean, "true");
        message.skip();
        return;
      }
    }
    switch (field.type) {
      case FieldType::kText:
        tree_.put(object, field.name, Type::kText, text(bytes_of(message)));
        break;
      case FieldType::kTexts:
        tree_.add(tree_.reopen(object, field.name, Type::kList), {}, Type::kText,
                  text(bytes_of(message)));
        break;
      case FieldType::kInteger:
        tree_.put(object, field.name, Type::kNumber,
                  tree_.keep(std::to_string(number_of(message))));
        break;
      case FieldType::kTime: {
        const std::string_view bytes = bytes_of(message);
        if (bytes.empty()) {
          tree_.put(object, field.name, Type::kNull);
        } else {
          tree_.put(object, field.name, Type::kText, tree_.keep(format_time(bytes)));
        }
        break;
      }
      case FieldType::kTextMap:
      case FieldType::kQuantityMap: {
        const std::string_view entry = bytes_of(message);
        const std::string_view value = bytes_in(entry, kEntryValue);
        const bool quantity = field.type == FieldType::kQuantityMap;
        tree_.add(tree_.reopen(object, field.name, Type::kObject), text(bytes_in(entry, kEntryKey)),
                  Type::kText, text(quantity ? bytes_in(value, kQuantityText) : value));
        break;
      }
      case FieldType::kObject: {
        const Index inside = tree_.put(object, field.name, Type::kObject);
        fields(bytes_of(message), field.inside, inside);
        break;
      }
      case FieldType::kObjects: {
        const Index list = tree_.reopen(object, field.name, Type::kList);
        fields(bytes_of(message), field.inside, tree_.add(list, {}, Type::kObject));
        break;
      }
    }
  }

  ValueTree& tree_;
};

/// What stands around every object: its kind, and its message.
struct Envelope {
  std::string_view kind;
  std::string_view message;
};

Envelope open_envelope(std::string_view body) {
  if (!is_protobuf(body)) throw Malformed();
  body.remove_prefix(kProtobufMagic.size());
  if (!bytes_in(body, kUnknownContentEncoding).empty()) throw Malformed();
  return {.kind = bytes_in(bytes_in(body, kUnknownTypeMeta), kTypeMetaKind),
          .message = bytes_in(body, kUnknownRaw)};
}

void read_enveloped(std::string_view body, Projection projection, ValueTree& tree,
                    ValueTree::Index object) {
  const Envelope envelope = open_envelope(body);
  Reading reading(tree);
  reading.fields(envelope.message, projection, object);
  tree.put(object, "kind", Value::Type::kText, reading.text(envelope.kind));
}

/// Begins anew, with an object.
ValueTree::Index begin_object(ValueTree& tree) {
  tree.clear();
  return tree.add(0, {}, Value::Type::kObject);
}

/// What `read` leaves in the tree; null when it meets something malformed.
template <typename Read>
Value guarded(ValueTree& tree, const Read& read) {
  try {
    read();
    return tree.root();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

bool is_protobuf(std::string_view body) { return body.starts_with(kProtobufMagic); }

Value read_protobuf(std::string_view body, Projection projection, ValueTree& tree) {
  return guarded(tree, [&] { read_enveloped(body, projection, tree, begin_object(tree)); });
}

std::string_view protobuf_frame_type(std::string_view frame) {
  try {
    return bytes_in(frame, kEventType);
  } catch (const std::exception&) {
    return {};
  }
}

Value read_protobuf_frame(std::string_view frame, Projection projection, ValueTree& tree) {
  return guarded(tree, [&] {
    const auto event = begin_object(tree);
    tree.add(event, "type", Value::Type::kText, Reading(tree).text(bytes_in(frame, kEventType)));
    const std::string_view object = bytes_in(bytes_in(frame, kEventObject), kRawExtensionRaw);
    read_enveloped(object, projection, tree, tree.add(event, "object", Value::Type::kObject));
  });
}

Value read_protobuf_message(std::string_view bytes, Projection projection, ValueTree& tree) {
  return guarded(tree, [&] { Reading(tree).fields(bytes, projection, begin_object(tree)); });
}

Value read_protobuf_list_metadata(std::string_view bytes, ValueTree& tree) {
  return guarded(tree, [&] {
    const auto metadata = tree.add(begin_object(tree), "metadata", Value::Type::kObject);
    Reading(tree).fields(bytes, kListMetaFields, metadata);
  });
}

std::string_view protobuf_kind(std::string_view type_meta) {
  try {
    return bytes_in(type_meta, kTypeMetaKind);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace lpp::k8s
