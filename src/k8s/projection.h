#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lpp::k8s {

enum class FieldType : std::uint8_t {
  kText,
  kTexts,        // a list
  kInteger,      // of at most 32 bits
  kTime,         // text in JSON, seconds since 1970 in protobuf
  kTextMap,      // map<string, string>
  kQuantityMap,  // map<string, Quantity>: texts in JSON, a message each in protobuf
  kObject,
  kObjects,  // a list
};

/// A field that is looked at. In JSON it goes by its name, in protobuf by its number in
/// Kubernetes' generated.proto, which never changes.
struct ReadField {
  std::string_view name;
  std::uint32_t number = 0;
  FieldType type = FieldType::kText;
  std::span<const ReadField> inside{};  // of an object; none means that only its presence counts
  /// Not 0: protobuf keeps the field in a message of this number, which JSON does not know.
  std::uint32_t within = 0;
};

/// What is looked at of an object. Everything else is left out, and costs little more than finding
/// its end. Empty means all. The fields must outlive the call.
using Projection = std::span<const ReadField>;

}  // namespace lpp::k8s
