// SPDX-License-Identifier: Apache-2.0
#include "k8s/object_reader.h"

#include <array>
#include <nlohmann/json.hpp>

#include "k8s/json_reader.h"
#include "k8s/protobuf_reader.h"

namespace lpp::k8s {

using nlohmann::json;

namespace {

constexpr std::string_view kErrorFrame = "ERROR";

}  // namespace

Value read_object(std::string_view body, Projection projection, ValueTree& tree) {
  if (is_protobuf(body)) return read_protobuf(body, projection, tree);
  return tree.assign(read_json(body, projection));
}

Projection status_fields() {
  using enum FieldType;
  static constexpr auto kCause = std::to_array<ReadField>({{"reason", 1}, {"message", 2}});
  static constexpr auto kDetails = std::to_array<ReadField>(
      {{"causes", 4, kObjects, kCause}, {"retryAfterSeconds", 5, kInteger}});
  static constexpr auto kStatus = std::to_array<ReadField>({{"kind"},
                                                            {"message", 3},
                                                            {"reason", 4},
                                                            {"details", 5, kObject, kDetails},
                                                            {"code", 6, kInteger}});
  return kStatus;
}

Value read_frame(std::string_view frame, Projection projection, ValueTree& tree) {
  // The tag of an event's first field, which in a line of JSON would be its end.
  if (frame.starts_with('\n')) {
    const bool error = protobuf_frame_type(frame) == kErrorFrame;
    return read_protobuf_frame(frame, error ? status_fields() : projection, tree);
  }
  const Value value = tree.assign(read_json_frame(frame, projection));
  if (value.find("type").text() != kErrorFrame) return value;
  return tree.assign(read_json_frame(frame, status_fields()));
}

}  // namespace lpp::k8s
