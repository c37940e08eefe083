// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/table.h"

#include <array>
#include <chrono>
#include <functional>
#include <map>

#include "base/parse_time.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

using Time = std::chrono::system_clock::time_point;

struct Row {
  const Json& object;
  Time now;
};

struct Column {
  std::string name;
  std::function<Json(const Row&)> value;
  int priority = 0;  ///< 1: only with -o wide
  std::string type = "string";
};

std::string age_of(const std::string& timestamp, Time now) {
  const auto then = parse_rfc3339(timestamp);
  if (!then) return "<unknown>";
  return human_duration(std::chrono::duration_cast<std::chrono::seconds>(now - *then));
}

std::string or_none(std::string text) { return text.empty() ? "<none>" : std::move(text); }

Column text_column(std::string name, std::vector<std::string> path, int priority = 0,
                   bool none = false) {
  return {std::move(name),
          [path = std::move(path), none](const Row& row) -> Json {
            const Json* value = &row.object;
            for (const auto& key : path) value = &child(*value, key);
            if (value->is_string() || value->is_number()) return *value;
            if (value->is_boolean()) return value->get<bool>() ? "true" : "false";
            return none ? "<none>" : "";
          },
          priority};
}

Column age_column() {
  return {"Age", [](const Row& row) -> Json {
            return age_of(text_at(row.object, {"metadata", "creationTimestamp"}), row.now);
          }};
}

Column name_column() { return text_column("Name", {"metadata", "name"}); }

std::string access_modes(const Json& modes) {
  static const std::map<std::string, std::string> short_names = {{"ReadWriteOnce", "RWO"},
                                                                 {"ReadOnlyMany", "ROX"},
                                                                 {"ReadWriteMany", "RWX"},
                                                                 {"ReadWriteOncePod", "RWOP"}};
  std::string out;
  for (const auto& mode : modes) {
    const auto it = short_names.find(mode.is_string() ? mode.get<std::string>() : "");
    if (it != short_names.end()) out += (out.empty() ? "" : ",") + it->second;
  }
  return out;
}

std::string pod_status(const Json& pod) {
  std::string status = text_at(pod, {"status", "phase"});
  if (const auto reason = text_at(pod, {"status", "reason"}); !reason.empty()) status = reason;
  for (const auto& container : at_path(pod, {"status", "containerStatuses"})) {
    const std::string waiting = text_at(container, {"state", "waiting", "reason"});
    const Json& terminated = at_path(container, {"state", "terminated"});
    if (!waiting.empty()) {
      status = waiting;
    } else if (terminated.is_object()) {
      const std::string reason = text_at(terminated, {"reason"});
      status = !reason.empty()
                   ? reason
                   : "ExitCode:" + std::to_string(number_at(terminated, {"exitCode"}, 0));
    }
  }
  if (!text_at(pod, {"metadata", "deletionTimestamp"}).empty()) status = "Terminating";
  return status;
}

std::string ready_containers(const Json& pod) {
  std::size_t ready = 0;
  for (const auto& container : at_path(pod, {"status", "containerStatuses"})) {
    ready += flag_at(container, {"ready"}) ? 1 : 0;
  }
  return std::to_string(ready) + "/" + std::to_string(at_path(pod, {"spec", "containers"}).size());
}

std::string restarts(const Json& pod) {
  std::int64_t count = 0;
  for (const auto& container : at_path(pod, {"status", "containerStatuses"})) {
    count += number_at(container, {"restartCount"}, 0);
  }
  return std::to_string(count);
}

std::string node_status(const Json& node) {
  std::string status = "Unknown";
  for (const auto& condition : at_path(node, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) != "Ready") continue;
    status = text_at(condition, {"status"}) == "True" ? "Ready" : "NotReady";
  }
  return flag_at(node, {"spec", "unschedulable"}) ? status + ",SchedulingDisabled" : status;
}

std::string node_roles(const Json& node) {
  static constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::string roles;
  for (const auto& [key, value] : at_path(node, {"metadata", "labels"}).items()) {
    if (key.starts_with(kPrefix)) roles += (roles.empty() ? "" : ",") + key.substr(kPrefix.size());
  }
  return or_none(roles);
}

std::string event_object(const Json& event) {
  std::string kind = text_at(event, {"involvedObject", "kind"});
  for (auto& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return kind + "/" + text_at(event, {"involvedObject", "name"});
}

std::string last_seen(const Row& row) {
  std::string time = text_at(row.object, {"lastTimestamp"});
  if (time.empty()) time = text_at(row.object, {"eventTime"});
  if (time.empty()) time = text_at(row.object, {"metadata", "creationTimestamp"});
  return age_of(time, row.now);
}

std::string ready_replicas(const Json& object) {
  return std::to_string(number_at(object, {"status", "readyReplicas"}, 0)) + "/" +
         std::to_string(number_at(object, {"spec", "replicas"}, 0));
}

Column of(std::string name, std::string (*value)(const Json&), int priority = 0) {
  return {std::move(name), [value](const Row& row) -> Json { return value(row.object); }, priority};
}

Column count_of(std::string name, std::string member) {
  return {std::move(name),
          [member = std::move(member)](const Row& row) -> Json {
            return child(row.object, member).size();
          },
          0, "integer"};
}

Column number_column(std::string name, std::vector<std::string> path) {
  return {std::move(name),
          [path = std::move(path)](const Row& row) -> Json {
            const Json* value = &row.object;
            for (const auto& key : path) value = &child(*value, key);
            return value->is_number() ? *value : Json(0);
          },
          0, "integer"};
}

std::vector<Column> pod_columns() {
  return {name_column(),
          of("Ready", ready_containers),
          of("Status", pod_status),
          of("Restarts", restarts),
          age_column(),
          text_column("IP", {"status", "podIP"}, 1, true),
          text_column("Node", {"spec", "nodeName"}, 1, true),
          text_column("Nominated Node", {"status", "nominatedNodeName"}, 1, true),
          {"Readiness Gates", [](const Row&) -> Json { return "<none>"; }, 1}};
}

std::vector<Column> volume_columns() {
  return {name_column(),
          text_column("Capacity", {"spec", "capacity", "storage"}),
          {"Access Modes",
           [](const Row& row) -> Json {
             return access_modes(at_path(row.object, {"spec", "accessModes"}));
           }},
          text_column("Reclaim Policy", {"spec", "persistentVolumeReclaimPolicy"}),
          {"Status",
           [](const Row& row) -> Json {
             return text_at(row.object, {"metadata", "deletionTimestamp"}).empty()
                        ? text_at(row.object, {"status", "phase"})
                        : "Terminating";
           }},
          {"Claim",
           [](const Row& row) -> Json {
             const std::string name = text_at(row.object, {"spec", "claimRef", "name"});
             return name.empty()
                        ? name
                        : text_at(row.object, {"spec", "claimRef", "namespace"}) + "/" + name;
           }},
          text_column("StorageClass", {"spec", "storageClassName"}),
          {"VolumeAttributesClass", [](const Row&) -> Json { return "<unset>"; }},
          text_column("Reason", {"status", "reason"}),
          age_column(),
          text_column("VolumeMode", {"spec", "volumeMode"}, 1)};
}

std::vector<Column> claim_columns() {
  return {name_column(),
          {"Status",
           [](const Row& row) -> Json {
             return text_at(row.object, {"metadata", "deletionTimestamp"}).empty()
                        ? text_at(row.object, {"status", "phase"})
                        : "Terminating";
           }},
          text_column("Volume", {"spec", "volumeName"}),
          text_column("Capacity", {"status", "capacity", "storage"}),
          {"Access Modes",
           [](const Row& row) -> Json {
             return access_modes(at_path(row.object, {"status", "accessModes"}));
           }},
          text_column("StorageClass", {"spec", "storageClassName"}),
          {"VolumeAttributesClass", [](const Row&) -> Json { return "<unset>"; }},
          age_column(),
          text_column("VolumeMode", {"spec", "volumeMode"}, 1)};
}

std::vector<Column> class_columns() {
  return {{"Name",
           [](const Row& row) -> Json {
             const bool is_default =
                 text_at(row.object, {"metadata", "annotations",
                                      "storageclass.kubernetes.io/is-default-class"}) == "true";
             return name_of(row.object) + (is_default ? " (default)" : "");
           }},
          text_column("Provisioner", {"provisioner"}),
          text_column("ReclaimPolicy", {"reclaimPolicy"}),
          text_column("VolumeBindingMode", {"volumeBindingMode"}),
          {"AllowVolumeExpansion",
           [](const Row& row) -> Json {
             return flag_at(row.object, {"allowVolumeExpansion"}) ? "true" : "false";
           }},
          age_column()};
}

std::vector<Column> event_columns() {
  return {{"Last Seen", [](const Row& row) -> Json { return last_seen(row); }},
          text_column("Type", {"type"}),
          text_column("Reason", {"reason"}),
          of("Object", event_object),
          text_column("Source", {"source", "component"}, 1),
          text_column("Message", {"message"}),
          text_column("Count", {"count"}, 1),
          text_column("Name", {"metadata", "name"}, 1)};
}

std::vector<Column> columns_of(const ResourceInfo& info) {
  const std::string& name = info.plural;
  if (name == "pods") return pod_columns();
  if (name == "persistentvolumes") return volume_columns();
  if (name == "persistentvolumeclaims") return claim_columns();
  if (name == "storageclasses") return class_columns();
  if (name == "events") return event_columns();
  if (name == "nodes") {
    return {name_column(), of("Status", node_status), of("Roles", node_roles), age_column(),
            text_column("Version", {"status", "nodeInfo", "kubeletVersion"})};
  }
  if (name == "namespaces") {
    return {name_column(), text_column("Status", {"status", "phase"}), age_column()};
  }
  if (name == "configmaps") return {name_column(), count_of("Data", "data"), age_column()};
  if (name == "secrets") {
    return {name_column(), text_column("Type", {"type"}), count_of("Data", "data"), age_column()};
  }
  if (name == "deployments") {
    return {name_column(), of("Ready", ready_replicas),
            number_column("Up-to-date", {"status", "updatedReplicas"}),
            number_column("Available", {"status", "availableReplicas"}), age_column()};
  }
  if (name == "statefulsets") {
    return {name_column(), of("Ready", ready_replicas), age_column()};
  }
  if (name == "leases") {
    return {name_column(), text_column("Holder", {"spec", "holderIdentity"}), age_column()};
  }
  if (name == "services") {
    return {name_column(), text_column("Type", {"spec", "type"}),
            text_column("Cluster-IP", {"spec", "clusterIP"}, 0, true), age_column()};
  }
  if (name == "serviceaccounts") {
    return {name_column(), count_of("Secrets", "secrets"), age_column()};
  }
  return {name_column(), age_column()};
}

}  // namespace

std::string human_duration(std::chrono::seconds age) {
  const auto s = age.count();
  const auto text = [](std::int64_t value, const char* unit, std::int64_t rest,
                       const char* rest_unit) {
    std::string out = std::to_string(value) + unit;
    if (rest > 0) out += std::to_string(rest) + rest_unit;
    return out;
  };
  if (s < -1) return "<invalid>";
  if (s < 0) return "0s";
  const auto m = s / 60;
  const auto h = m / 60;
  if (s < 120) return text(s, "s", 0, "");
  if (m < 10) return text(m, "m", s % 60, "s");
  if (m < 180) return text(m, "m", 0, "");
  if (h < 8) return text(h, "h", m % 60, "m");
  if (h < 48) return text(h, "h", 0, "");
  if (h < 192) return text(h / 24, "d", h % 24, "h");
  if (h < 24L * 365 * 2) return text(h / 24, "d", 0, "");
  return text(h / 24 / 365, "y", h / 24 % 365, "d");
}

Json metadata_only(const Json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", child(object, "metadata")}};
}

Json make_table(const ResourceInfo& info, const std::vector<ObjectPtr>& objects,
                TableObjects include, Time now) {
  const auto columns = columns_of(info);
  Json definitions = Json::array();
  for (const auto& column : columns) {
    definitions.push_back({{"name", column.name},
                           {"type", column.type},
                           {"format", column.name == "Name" ? "name" : ""},
                           {"description", ""},
                           {"priority", column.priority}});
  }
  Json rows = Json::array();
  for (const auto& object : objects) {
    Json cells = Json::array();
    for (const auto& column : columns) cells.push_back(column.value({*object, now}));
    Json row = {{"cells", std::move(cells)}};
    if (include == TableObjects::kMetadata) row["object"] = metadata_only(*object);
    if (include == TableObjects::kObject) row["object"] = *object;
    rows.push_back(std::move(row));
  }
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", Json::object()},
          {"columnDefinitions", std::move(definitions)},
          {"rows", std::move(rows)}};
}

}  // namespace lpp::devcluster
