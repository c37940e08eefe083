// SPDX-License-Identifier: Apache-2.0
#include "devcluster/controllers/scheduler.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "devcluster/controllers/storage_names.h"
#include "devcluster/controllers/storage_rules.h"
#include "devcluster/json_names.h"
#include "devcluster/runtime/selectors.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

constexpr std::size_t kMostChoices = 10'000;

bool is_ready(const json& node) {
  for (const json& condition : array_at(node, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) == "Ready") return text_at(condition, {"status"}) == "True";
  }
  return false;
}

/// Why the node cannot take the pod, in the scheduler's words; empty if it can.
std::string objection(const json& pod, const json& node, const std::string& selected,
                      const std::vector<ObjectPtr>& volumes) {
  if (flag_at(node, {"spec", "unschedulable"})) return "node(s) were unschedulable";
  if (!is_ready(node)) return "node(s) were not ready";
  if (!tolerates_taints(pod, node)) return "node(s) had untolerated taint(s)";
  const json* affinity = find_at(
      pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (!labels_match(object_at(pod, {"spec", "nodeSelector"}), node) ||
      (affinity != nullptr && !node_selector_matches(*affinity, node))) {
    return "node(s) didn't match Pod's node affinity/selector";
  }
  const bool reachable = std::all_of(volumes.begin(), volumes.end(), [&](const ObjectPtr& volume) {
    const json* required = find_at(*volume, {"spec", "nodeAffinity", "required"});
    return required == nullptr || node_selector_matches(*required, node);
  });
  if (!reachable) return "node(s) had volume node affinity conflict";
  if (!selected.empty() && selected != name_of(node)) {
    return "node(s) didn't find available persistent volumes to bind";
  }
  return {};
}

}  // namespace

Scheduler::Scheduler(Registry& registry, Clock& clock)
    : registry_(registry), clock_(clock), events_(registry, clock, "default-scheduler") {}

std::optional<Duration> Scheduler::sync_pod(const std::string& ns, const std::string& name) {
  const ObjectPtr pod = registry_.find("pods", ns, name);
  if (pod == nullptr || is_deleting(*pod) || has_ended(*pod)) return std::nullopt;
  if (!text_at(*pod, {"spec", "nodeName"}).empty()) {
    choices_.erase(uid_of(*pod));
    return std::nullopt;
  }
  if (text_at(*pod, {"spec", "schedulerName"}, "default-scheduler") != "default-scheduler") {
    return std::nullopt;
  }
  const auto claims = look_at_claims(*pod);
  if (!claims.ok()) return set_unschedulable(*pod, claims.error().message);
  // The claims were provisioned for the node chosen before, even if they can be used elsewhere.
  const auto choice = choices_.find(uid_of(*pod));
  const bool chosen = choice != choices_.end() && claims->waiting.empty();
  const auto node = choose_node(*pod, *claims, chosen ? choice->second.node : std::string());
  if (!node.ok()) return set_unschedulable(*pod, node.error().message);
  if (!claims->waiting.empty()) return select_node(*pod, *claims, *node);
  const Reply reply = registry_.bind_pod(ns, name, *node);
  if (reply.ok()) {
    events_.normal(*pod, "Scheduled", "Successfully assigned " + key_of(*pod) + " to " + *node);
  } else if (!reply.not_found() && !reply.conflict()) {
    events_.warning(*pod, "FailedScheduling", reply.message());
  }
  return std::nullopt;
}

std::optional<Duration> Scheduler::select_node(const json& pod, const Claims& claims,
                                               const std::string& node) {
  if (claims.all_selected) return std::nullopt;  // the provisioner's turn
  // A provisioner that refuses every node at once must not keep us busy.
  constexpr std::chrono::seconds kBetweenChoices{1};
  const std::string uid(uid_of(pod));
  const TimePoint now = clock_.now();
  if (const auto last = choices_.find(uid);
      last != choices_.end() && now < last->second.at + kBetweenChoices) {
    return last->second.at + kBetweenChoices - now;
  }
  if (choices_.size() > kMostChoices) choices_.clear();
  choices_[uid] = {now, node};
  for (const ObjectPtr& claim : claims.waiting) {
    const Reply reply = registry_.modify(
        {"persistentvolumeclaims", namespace_of(*claim), name_of(*claim)}, [&](json& stored) {
          if (has_annotation(stored, kSelectedNode) || uid_of(stored) != uid_of(*claim)) {
            return false;
          }
          stored["metadata"]["annotations"][std::string(kSelectedNode)] = node;
          return true;
        });
    if (!reply.ok()) log::debug("select a node for {}: {}", key_of(*claim), reply.message());
  }
  return std::nullopt;  // the claims' changes bring the next step
}

Result<Scheduler::Claims> Scheduler::look_at_claims(const json& pod) const {
  Claims result;
  for (const std::string& name : claims_of(pod)) {
    const ObjectPtr claim = registry_.find("persistentvolumeclaims", namespace_of(pod), name);
    if (claim == nullptr) return invalid("persistentvolumeclaim \"" + name + "\" not found");
    if (is_deleting(*claim)) {
      return invalid("persistentvolumeclaim \"" + name + "\" is being deleted");
    }
    const std::string volume_name(text_at(*claim, {"spec", "volumeName"}));
    if (text_at(*claim, {"status", "phase"}) == "Bound" && !volume_name.empty()) {
      const ObjectPtr volume = registry_.find("persistentvolumes", "", volume_name);
      if (volume == nullptr) return invalid("persistentvolume \"" + volume_name + "\" not found");
      result.volumes.push_back(volume);
      continue;
    }
    if (text_at(*claim, {"status", "phase"}) == "Lost") {
      return invalid("persistentvolumeclaim \"" + name + "\" bound to non-existent volume");
    }
    const ObjectPtr storage_class = registry_.find("storageclasses", "", class_of(*claim));
    if (storage_class == nullptr || !waits_for_consumer(*storage_class)) {
      return invalid("pod has unbound immediate PersistentVolumeClaims");
    }
    result.waiting.push_back(claim);
    if (const auto node = annotation(*claim, kSelectedNode); !node.empty()) {
      result.selected_node = std::string(node);
    } else {
      result.all_selected = false;
    }
  }
  return result;
}

bool Scheduler::has_room(const Claims& claims, const json& node) const {
  return std::all_of(claims.waiting.begin(), claims.waiting.end(), [&](const ObjectPtr& claim) {
    const ObjectPtr storage_class = registry_.find("storageclasses", "", class_of(*claim));
    if (storage_class == nullptr) return true;
    const ObjectPtr driver =
        registry_.find("csidrivers", "", text_at(*storage_class, {"provisioner"}));
    return has_enough_room(*claim, node, driver.get(), registry_.all("csistoragecapacities"));
  });
}

Result<std::string> Scheduler::choose_node(const json& pod, const Claims& claims,
                                           const std::string& preferred) const {
  const auto nodes = registry_.all("nodes");
  std::map<std::string, std::size_t> objections;
  std::vector<std::string> candidates;
  for (const ObjectPtr& node : nodes) {
    std::string why = objection(pod, *node, claims.selected_node, claims.volumes);
    if (why.empty() && !has_room(claims, *node)) why = "node(s) did not have enough free storage";
    if (why.empty()) {
      candidates.emplace_back(name_of(*node));
    } else {
      ++objections[why];
    }
  }
  if (candidates.empty()) {
    std::string message = "0/" + std::to_string(nodes.size()) + " nodes are available";
    const char* separator = ": ";
    for (const auto& [why, count] : objections) {
      message += separator + std::to_string(count) + " " + why;
      separator = ", ";
    }
    return invalid(message + ".");
  }
  if (candidates.size() == 1) return candidates.front();
  if (std::find(candidates.begin(), candidates.end(), preferred) != candidates.end()) {
    return preferred;
  }
  // A pod whose claims are being provisioned counts where they are.
  std::map<std::string, std::size_t, std::less<>> load;
  for (const ObjectPtr& other : registry_.all("pods")) {
    if (!has_ended(*other)) ++load[text_at(*other, {"spec", "nodeName"})];
  }
  std::size_t least = SIZE_MAX;
  for (const std::string& name : candidates) least = std::min(least, load[name]);
  std::erase_if(candidates, [&](const std::string& name) { return load[name] > least; });
  return candidates[random_below(candidates.size())];
}

std::optional<Duration> Scheduler::set_unschedulable(const json& pod, const std::string& message) {
  const std::string now = format_rfc3339(clock_.wall_now());
  bool changed = false;
  const Reply reply =
      registry_.modify({"pods", namespace_of(pod), name_of(pod)},
                       [&](json& stored) {
                         changed = uid_of(stored) == uid_of(pod) &&
                                   set_condition(stored["status"]["conditions"], "PodScheduled",
                                                 false, "Unschedulable", message, now);
                         return changed;
                       },
                       {.subresource = "status"});
  if (reply.ok() && changed) events_.warning(pod, "FailedScheduling", message);
  return std::nullopt;
}

}  // namespace lpp::devcluster
