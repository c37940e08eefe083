// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "devcluster/apiserver/registry.h"

/// Small valid objects for tests of the embedded API server.
namespace lpp::devcluster::test {

using Json = nlohmann::json;

inline Json pod(const std::string& name) {
  return {{"metadata", {{"name", name}}},
          {"spec", {{"containers", Json::array({{{"name", "c"}, {"image", "busybox:1"}}})}}}};
}

inline Json claim(const std::string& name) {
  return {{"metadata", {{"name", name}}},
          {"spec",
           {{"accessModes", {"ReadWriteOnce"}},
            {"resources", {{"requests", {{"storage", "1Gi"}}}}},
            {"storageClassName", "local-path"}}}};
}

inline Json volume(const std::string& name) {
  return {{"metadata", {{"name", name}}},
          {"spec",
           {{"accessModes", {"ReadWriteOnce"}},
            {"capacity", {{"storage", "1Gi"}}},
            {"hostPath", {{"path", "/data/" + name}}}}}};
}

inline Json storage_class(const std::string& name) {
  return {{"metadata", {{"name", name}}}, {"provisioner", "rancher.io/local-path"}};
}

inline Json config_map(const std::string& name, const std::string& value = "v") {
  return {{"metadata", {{"name", name}}}, {"data", {{"key", value}}}};
}

/// Reads "a.b.c"; null when there is no such member.
inline Json at(const Json& object, const std::string& path) {
  const Json* value = &object;
  std::size_t start = 0;
  while (start <= path.size()) {
    const auto dot = std::min(path.find('.', start), path.size());
    const auto key = path.substr(start, dot - start);
    if (!value->is_object() || !value->contains(key)) return nullptr;
    value = &(*value)[key];
    start = dot + 1;
  }
  return *value;
}
inline Json at(const ObjectPtr& object, const std::string& path) { return at(*object, path); }
inline Json at(const Reply& reply, const std::string& path) { return at(*reply.body, path); }

/// The field that a 422 complains about first; "" for anything else.
inline std::string bad_field(const Reply& reply) {
  const Json causes = at(*reply.body, "details.causes");
  return reply.code == 422 && causes.is_array() && !causes.empty()
             ? causes[0].value("field", std::string())
             : std::string();
}

inline std::vector<std::string> names(const std::vector<ObjectPtr>& objects) {
  std::vector<std::string> out;
  out.reserve(objects.size());
  for (const auto& object : objects) out.push_back(at(object, "metadata.name").get<std::string>());
  return out;
}

}  // namespace lpp::devcluster::test
