// SPDX-License-Identifier: Apache-2.0
// What the API server sends: the bytes of a watch, cut anywhere, give the same lines; every frame
// that can be read gives an object or an Error, and what is JSON is read as what it says. The first
// byte says where the stream is cut.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frames.h"
#include "helperpod/manifest.h"
#include "k8s/json_reader.h"
#include "k8s/objects.h"
#include "property.h"

namespace {

using lpp::fuzz::require;
using nlohmann::json;

/// Takes out the arrays of field managers, at any depth.
json without_managed_fields(json value) {
  if (value.is_object()) value.erase("managedFields");
  if (value.is_structured()) {
    for (json& part : value) part = without_managed_fields(std::move(part));
  }
  return value;
}

/// What stands in an array of field managers is not looked at: it need not even be JSON.
void check_reading(const std::string& line, const json& all) {
  const json read = lpp::k8s::read_json(line);
  if (read.is_discarded()) return;
  if (all.is_discarded()) {
    require(line.find("\"managedFields\":[") != std::string::npos, "what is read is JSON");
  } else {
    require(without_managed_fields(read) == without_managed_fields(all),
            "JSON is read as what it says");
  }
}

template <typename T>
void decode(const json& object) {
  const auto decoded = lpp::k8s::decode<T>(object);
  require(decoded.ok() || !decoded.error().message.empty(), "an error says why");
}

/// What is left out while an object is read makes no difference to what is read of it.
template <typename T>
void require_same(std::string_view text, const json& whole) {
  const auto expected = lpp::k8s::decode<T>(whole);
  const auto read = lpp::k8s::decode<T>(lpp::k8s::read_json(text, lpp::k8s::fields_of<T>()));
  require(read.ok() == expected.ok(), "the same objects are readable");
  if (!read.ok()) require(read.error().message == expected.error().message, "with the same error");
  if (read.ok()) require(read->meta.name == expected->meta.name, "with the same name");
}

void decode_all(const json& object) {
  decode<lpp::k8s::PersistentVolumeClaim>(object);
  decode<lpp::k8s::PersistentVolume>(object);
  decode<lpp::k8s::StorageClass>(object);
  decode<lpp::k8s::Node>(object);
  decode<lpp::k8s::ConfigMap>(object);
  const auto pod = lpp::k8s::decode<lpp::k8s::Pod>(object);
  if (pod.ok()) (void)lpp::helperpod::operation_of(*pod);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto stream = lpp::fuzz::text_of(data + 1, size - 1);
  const auto lines = lpp::fuzz::frames_of(stream, data[0]);
  for (const auto& line : lines) {
    const json all = json::parse(line, nullptr, false);
    check_reading(line, all);
    const json frame = lpp::k8s::read_json(line);
    if (frame.is_discarded()) continue;  // not JSON, or nested too deeply
    if (frame.is_object() && frame.contains("object")) decode_all(frame["object"]);
    decode_all(frame);
    if (all.is_discarded()) continue;
    require_same<lpp::k8s::PersistentVolumeClaim>(line, all);
    require_same<lpp::k8s::PersistentVolume>(line, all);
    require_same<lpp::k8s::StorageClass>(line, all);
    require_same<lpp::k8s::Node>(line, all);
    require_same<lpp::k8s::Pod>(line, all);
    require_same<lpp::k8s::ConfigMap>(line, all);
  }
  lpp::fuzz::check_list(stream, lpp::k8s::fields_of<lpp::k8s::PersistentVolumeClaim>(),
                        [](lpp::k8s::Value item) { decode_all(lpp::k8s::to_json(item)); });
  return 0;
}
