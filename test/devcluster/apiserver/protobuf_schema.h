// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

/// The field numbers of Kubernetes' protobuf, as k8s.io/api and k8s.io/apimachinery have them in
/// their files generated.proto. Made for the embedded cluster alone: what the daemon reads by its
/// own numbers is checked against these. Constant, shared by all threads.
namespace lpp::devcluster {

enum class ProtobufType : std::uint8_t {
  kString,
  kStrings,
  kBytesMap,
  kStringMap,
  kQuantityMap,  ///< texts in JSON, a message each in protobuf
  kTime,         ///< text in JSON, seconds since 1970 in protobuf
  kInt,
  kBool,
  kMessage,
  kMessages,
  kInline,  ///< a message whose fields stand in the object itself in JSON
  kIntOrString,
};

/// When a field is written.
enum class Presence : std::uint8_t {
  kAlways,  ///< as Go does what is no pointer, be it empty or 0; lists and maps have no such state
  kIfSet,
};

struct ProtobufField {
  std::uint32_t number = 0;
  const char* name = "";
  ProtobufType type = ProtobufType::kString;
  const char* message = "";  ///< schema of kMessage, kMessages and kInline
  Presence presence = Presence::kAlways;
};

using ProtobufSchema = std::vector<ProtobufField>;

/// Of a message or kind; null when it is not in the table.
const ProtobufSchema* protobuf_schema(std::string_view name);

}  // namespace lpp::devcluster
