// What the API server sends: the bytes of a watch, cut anywhere, give the same lines; every frame
// that can be read gives an object or an Error, and what is JSON is read as what it says. The first
// byte says where the stream is cut.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "helperpod/manifest.h"
#include "k8s/json_reader.h"
#include "k8s/line_splitter.h"
#include "k8s/objects.h"
#include "property.h"

namespace {

using lpp::fuzz::require;
using nlohmann::json;

std::vector<std::string> lines_of(std::string_view stream, std::size_t step) {
  std::vector<std::string> lines;
  lpp::k8s::LineSplitter splitter(1 << 16);
  while (!stream.empty()) {
    const auto outcome = splitter.feed(stream.substr(0, step), [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    });
    if (outcome != lpp::k8s::LineSplitter::Outcome::kMore) break;
    stream.remove_prefix(std::min(step, stream.size()));
  }
  return lines;
}

/// Takes out the members that may be left unread, at any depth.
json without(json value, const std::set<std::string>& names) {
  if (value.is_object()) {
    for (const std::string& name : names) value.erase(name);
  }
  if (value.is_structured()) {
    for (json& part : value) part = without(std::move(part), names);
  }
  return value;
}

/// What stands in the members that are left out is not looked at: they need not even be JSON.
void check_reading(const std::string& line, lpp::k8s::Detail detail,
                   const std::set<std::string>& unread) {
  const json read = lpp::k8s::read_json(line, detail);
  const json all = json::parse(line, nullptr, false);
  if (read.is_discarded()) return;
  if (all.is_discarded()) {
    const bool excused = std::any_of(unread.begin(), unread.end(), [&](const std::string& name) {
      return line.find("\"" + name + "\":[") != std::string::npos;
    });
    require(excused, "what is read is JSON");
  } else {
    require(without(read, unread) == without(all, unread), "JSON is read as what it says");
  }
}

template <typename T>
void decode(const json& object) {
  const auto decoded = lpp::k8s::decode<T>(object);
  require(decoded.ok() || !decoded.error().message.empty(), "an error says why");
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
  const auto lines = lines_of(stream, stream.size());
  require(lines == lines_of(stream, 1U + data[0]), "cuts do not matter");
  for (const auto& line : lines) {
    const json frame = lpp::k8s::read_json(line);
    check_reading(line, lpp::k8s::Detail::kAll, {"managedFields"});
    check_reading(line, lpp::k8s::Detail::kNoContainers,
                  {"managedFields", "containers", "initContainers", "tolerations", "volumes"});
    if (frame.is_discarded()) continue;
    if (frame.is_object() && frame.contains("object")) decode_all(frame["object"]);
    decode_all(frame);
    decode_all(lpp::k8s::read_json(line, lpp::k8s::Detail::kNoContainers));
  }
  std::size_t items = 0;
  const json list = lpp::k8s::read_list(stream, [&](const json& item) {
    ++items;
    decode_all(item);
  });
  const json whole = json::parse(stream, nullptr, false);
  if (!list.is_discarded() && whole.is_object() && whole.contains("items") &&
      whole["items"].is_array()) {
    require(items >= whole["items"].size(), "no item of a list is lost");
  }
  return 0;
}
