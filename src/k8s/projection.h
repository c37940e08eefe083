// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
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
  /// Not 0: entries of a map or a list are left out when those before them cost so many bytes, and
  /// any other value when it is longer. The object that it would stand in then has kLeftOut.
  std::uint32_t most = 0;
  /// Entries of a map that do not count for `most`: each is left out only if it alone is longer.
  std::span<const std::string_view> keys{};
};

/// Not a name that Kubernetes has for a field.
inline constexpr std::string_view kLeftOut = "~leftOut";

/// What an entry costs besides its bytes, once it stands in a map.
inline constexpr std::size_t kEntryCost = 96;

/// Whether an entry may still be read; `used` counts the bytes of what came before it, and what it
/// costs.
inline bool fits(const ReadField& field, std::string_view key, std::size_t bytes,
                 std::size_t& used) {
  if (field.most == 0) return true;
  if (std::find(field.keys.begin(), field.keys.end(), key) != field.keys.end()) {
    return bytes <= field.most;
  }
  used += bytes + kEntryCost;
  return used <= field.most;
}

/// What is looked at of an object. Everything else is left out, and costs little more than finding
/// its end. Empty means all. The fields must outlive the call.
using Projection = std::span<const ReadField>;

}  // namespace lpp::k8s
