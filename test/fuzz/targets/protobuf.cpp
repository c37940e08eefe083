// SPDX-License-Identifier: Apache-2.0
// What the API server sends as protobuf: the bytes of a watch, cut anywhere, give the same frames;
// whatever they are, reading them ends, with something that can be decoded and printed or with
// nothing. The first byte says where the stream is cut; the bytes after it are a watch, an object
// and a list as well, each with what has to stand at its beginning.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frames.h"
#include "helperpod/manifest.h"
#include "k8s/api_client.h"
#include "k8s/object_reader.h"
#include "k8s/objects.h"
#include "k8s/protobuf_reader.h"
#include "property.h"

namespace {

using lpp::fuzz::require;
using lpp::k8s::Projection;
using lpp::k8s::Value;
using lpp::k8s::ValueTree;
using nlohmann::json;

const std::string kMagic("k8s\0", 4);

/// Texts are UTF-8, whatever was sent: the log and written objects take them as they are.
void check_value(Value value) {
  if (value.is_null()) return;
  require(value.is_object(), "what is read is an object");
  require(json::accept(to_json(value).dump()), "what is read can be printed");
}

template <typename T>
void check_object(Value object) {
  check_value(object);
  const auto decoded = lpp::k8s::decode<T>(object);
  require(decoded.ok() || !decoded.error().message.empty(), "an error says why");
  if constexpr (std::is_same_v<T, lpp::k8s::Pod>) {
    if (decoded.ok()) (void)lpp::helperpod::operation_of(*decoded);
  }
}

template <typename T>
void read_as(std::string_view bytes, const std::vector<std::string>& frames) {
  const Projection fields = lpp::k8s::fields_of<T>();
  ValueTree tree;
  for (const auto& frame : frames) {
    const Value event = lpp::k8s::read_frame(frame, fields, tree);
    if (!frame.starts_with('\n')) continue;  // JSON: the target "watch"
    check_value(event);
    if (!event.is_null()) check_object<T>(event.find("object"));
  }
  const std::string body = kMagic + std::string(bytes);
  const Value object = lpp::k8s::read_protobuf(body, fields, tree);
  if (!object.is_null()) check_object<T>(object);
  lpp::fuzz::check_list(body, fields, [](Value item) { check_object<T>(item); });
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = lpp::fuzz::text_of(data + 1, size - 1);
  // A stream that does not begin with a zero is lines.
  const std::string stream = std::string(1, '\0') + std::string(bytes);
  const auto frames = lpp::fuzz::frames_of(stream, data[0]);
  read_as<lpp::k8s::PersistentVolumeClaim>(bytes, frames);
  read_as<lpp::k8s::PersistentVolume>(bytes, frames);
  read_as<lpp::k8s::StorageClass>(bytes, frames);
  read_as<lpp::k8s::Node>(bytes, frames);
  read_as<lpp::k8s::Pod>(bytes, frames);
  read_as<lpp::k8s::ConfigMap>(bytes, frames);
  ValueTree tree;
  const std::string body = kMagic + std::string(bytes);
  check_value(lpp::k8s::read_protobuf(body, lpp::k8s::status_fields(), tree));
  const auto error = lpp::k8s::error_from_response({.status = 500, .body = body});
  require(!error.message.empty(), "an error says why");
  return 0;
}
