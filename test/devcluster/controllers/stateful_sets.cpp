// SPDX-License-Identifier: Apache-2.0
#include "devcluster/controllers/stateful_sets.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/log.h"
#include "devcluster/controllers/storage_rules.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

bool is_pod_ready(const json& pod) {
  for (const json& condition : array_at(pod, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) == "Ready") return text_at(condition, {"status"}) == "True";
  }
  return false;
}

bool owned_by(const json& object, const json& owner) {
  const json& owners = array_at(object, {"metadata", "ownerReferences"});
  return std::any_of(owners.begin(), owners.end(),
                     [&](const json& o) { return text_at(o, {"uid"}) == uid_of(owner); });
}

std::optional<int> ordinal_of(std::string_view pod_name, std::string_view set_name) {
  if (!pod_name.starts_with(set_name) || pod_name.size() < set_name.size() + 2) return std::nullopt;
  const std::string_view digits = pod_name.substr(set_name.size() + 1);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string claim_name(const json& claim_template, const json& set, const std::string& ordinal) {
  return name_of(claim_template) + "-" + name_of(set) + "-" + ordinal;
}

}  // namespace

StatefulSets::StatefulSets(Registry& registry, Clock& clock)
    : registry_(registry), events_(registry, clock, "statefulset-controller") {}

void StatefulSets::sync(const std::string& ns, const std::string& name) {
  const ObjectPtr set = registry_.find("statefulsets", ns, name);
  if (set == nullptr || is_deleting(*set)) return;
  const int wanted = static_cast<int>(number_at(*set, {"spec", "replicas"}, 1));
  const bool parallel = text_at(*set, {"spec", "podManagementPolicy"}) == "Parallel";

  std::map<int, ObjectPtr> pods;
  int ready = 0;
  for (const ObjectPtr& pod : registry_.all("pods", ns)) {
    if (!owned_by(*pod, *set)) continue;
    if (const auto ordinal = ordinal_of(name_of(*pod), name)) pods[*ordinal] = pod;
    if (is_pod_ready(*pod)) ++ready;
  }
  write_status(*set, static_cast<int>(pods.size()), ready);

  const auto remove = [&](const json& pod) {
    const Reply reply =
        registry_.remove({"pods", ns, name_of(pod)}, {.uid_precondition = uid_of(pod)});
    if (!reply.ok()) log::debug("pod {} not deleted: {}", key_of(pod), reply.message());
  };
  for (int i = 0; i < wanted; ++i) {
    const auto pod = pods.find(i);
    if (pod == pods.end()) {
      const std::string ordinal = std::to_string(i);
      create_claims(*set, ordinal);
      create_pod(*set, ordinal);
    } else if (has_ended(*pod->second) && !is_deleting(*pod->second)) {
      remove(*pod->second);
    } else if (text_at(*pod->second, {"status", "phase"}) == "Pending") {
      create_claims(*set, std::to_string(i));  // it may have lost them, as of Kubernetes 1.27
    }
    const bool is_up = pod != pods.end() && is_pod_ready(*pod->second);
    if (!parallel && !is_up) return;  // its change brings the next step
  }
  for (auto surplus = pods.rbegin(); surplus != pods.rend() && surplus->first >= wanted;
       ++surplus) {
    if (!is_deleting(*surplus->second)) remove(*surplus->second);
    if (!parallel) return;
  }
}

void StatefulSets::create_claims(const json& set, const std::string& ordinal) {
  const std::string ns(namespace_of(set));
  for (const json& claim_template : array_at(set, {"spec", "volumeClaimTemplates"})) {
    const std::string name = claim_name(claim_template, set, ordinal);
    if (registry_.find("persistentvolumeclaims", ns, name) != nullptr) continue;
    json claim{{"metadata", object_at(claim_template, {"metadata"})},
               {"spec", object_at(claim_template, {"spec"})}};
    claim["metadata"]["name"] = name;
    claim["metadata"]["namespace"] = ns;
    for (const auto& [key, value] : object_at(set, {"spec", "selector", "matchLabels"}).items()) {
      claim["metadata"]["labels"][key] = value;
    }
    const Reply reply = registry_.create("persistentvolumeclaims", ns, claim);
    if (reply.ok()) {
      events_.normal(set, "SuccessfulCreate", "create Claim " + name + " success");
    } else {
      events_.warning(set, "FailedCreate", "create Claim " + name + " failed: " + reply.message());
    }
  }
}

void StatefulSets::create_pod(const json& set, const std::string& ordinal) {
  const std::string ns(namespace_of(set));
  const std::string pod_name = name_of(set) + "-" + ordinal;
  json pod = object_at(set, {"spec", "template"});
  json& metadata = pod["metadata"];
  metadata["name"] = pod_name;
  metadata["namespace"] = ns;
  metadata["labels"]["statefulset.kubernetes.io/pod-name"] = pod_name;
  metadata["labels"]["apps.kubernetes.io/pod-index"] = ordinal;
  metadata["ownerReferences"] = json::array({{{"apiVersion", "apps/v1"},
                                              {"kind", "StatefulSet"},
                                              {"name", name_of(set)},
                                              {"uid", uid_of(set)},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
  json& spec = pod["spec"];
  spec["hostname"] = pod_name;
  if (!spec["volumes"].is_array()) spec["volumes"] = json::array();
  for (const json& claim_template : array_at(set, {"spec", "volumeClaimTemplates"})) {
    json& volumes = spec["volumes"];
    volumes.erase(std::remove_if(volumes.begin(), volumes.end(),
                                 [&](const json& volume) {
                                   return text_at(volume, {"name"}) == name_of(claim_template);
                                 }),
                  volumes.end());
    volumes.push_back(
        {{"name", name_of(claim_template)},
         {"persistentVolumeClaim", {{"claimName", claim_name(claim_template, set, ordinal)}}}});
  }
  const Reply reply = registry_.create("pods", ns, pod);
  if (reply.ok()) {
    events_.normal(set, "SuccessfulCreate", "create Pod " + pod_name + " successful");
  } else {
    events_.warning(set, "FailedCreate", "create Pod " + pod_name + " failed: " + reply.message());
  }
}

void StatefulSets::write_status(const json& set, int replicas, int ready) {
  const Reply reply = registry_.modify(
      {"statefulsets", namespace_of(set), name_of(set)},
      [&](json& stored) {
        const json before = object_at(stored, {"status"});
        json& status = stored["status"];
        status["observedGeneration"] = number_at(stored, {"metadata", "generation"}, 1);
        status["replicas"] = replicas;
        status["currentReplicas"] = replicas;
        status["updatedReplicas"] = replicas;
        status["readyReplicas"] = ready;
        status["availableReplicas"] = ready;
        return status != before;
      },
      {.subresource = "status"});
  if (!reply.ok()) log::debug("statefulset status: {}", reply.message());
}

}  // namespace lpp::devcluster
