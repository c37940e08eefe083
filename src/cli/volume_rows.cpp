// SPDX-License-Identifier: Apache-2.0
#include "cli/volume_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/log.h"
#include "helperpod/manifest.h"
#include "helperpod/outcome.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"
#include "provisioner/plan.h"
#include "provisioner/resize_decision.h"
#include "provisioner/volume_rules.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

using operation::Kind;
using State = operation::Progress::State;
using k8s::find;

const EventNote* newest_event(const ClusterView& view, const std::string& uid) {
  if (uid.empty()) return nullptr;
  const auto it = std::find_if(view.events.begin(), view.events.end(),
                               [&](const EventNote& note) { return note.uid == uid; });
  return it == view.events.end() ? nullptr : &*it;
}

/// The helper pod of the volume with the highest attempt; a delete operation before a create one.
const HelperPod* helper_pod_of(const ClusterView& view, std::string_view volume) {
  const HelperPod* best = nullptr;
  for (const HelperPod& one : view.helper_pods) {
    if (one.operation.volume_name != volume || one.operation.kind == Kind::kResize) continue;
    const auto rank = [](const HelperPod& pod) {
      return std::pair(pod.operation.kind != Kind::kMake, pod.operation.attempt);
    };
    if (best == nullptr || rank(one) > rank(*best)) best = &one;
  }
  return best;
}

/// A pod that waits for the claim; nullptr = none.
const nlohmann::json* waiting_pod(const ClusterView& view, const k8s::ObjectKey& claim) {
  for (const auto& pod : view.waiting_pods) {
    if (text(member(pod, "metadata"), "namespace") != claim.ns) continue;
    for (const auto& volume : member(member(pod, "spec"), "volumes")) {
      const bool ephemeral =
          member(volume, "ephemeral").is_object() &&
          text(member(pod, "metadata"), "name") + "-" + text(volume, "name") == claim.name;
      if (ephemeral || text(member(volume, "persistentVolumeClaim"), "claimName") == claim.name) {
        return &pod;
      }
    }
  }
  return nullptr;
}

std::string not_scheduled_because(const nlohmann::json& pod) {
  for (const auto& condition : member(member(pod, "status"), "conditions")) {
    if (text(condition, "type") == "PodScheduled" && text(condition, "status") == "False") {
      return text(condition, "message");
    }
  }
  return {};
}

/// What an Event says, without what the table says anyway.
std::string reason_of(const EventNote& note) {
  constexpr std::string_view kPrefix = "failed to provision volume with StorageClass \"";
  std::string text = note.message;
  if (const auto end = text.find("\": "); text.starts_with(kPrefix) && end != std::string::npos) {
    text.erase(0, end + 3);
  }
  if (note.count > 1) text += fmt::format(" ({} times)", note.count);
  return text;
}

/// How the operation stands; the Event says more about a failure (the log's end is in it).
void describe_operation(const HelperPod& helper, const EventNote* event, VolumeRow& row) {
  const auto& operation = helper.operation;
  const bool making = operation.kind == Kind::kMake;
  row.helper_pod = helper.pod.meta.key().to_string();
  row.operation = std::string(operation::script_action(operation.kind));
  row.attempt = operation.attempt;
  if (row.node.empty()) row.node = operation.node;
  if (row.path.empty()) row.path = operation.path;
  const auto outcome = helperpod::observe(helper.pod);
  const std::string look =
      fmt::format("kubectl -n {} describe pod {}", helper.pod.meta.ns, helper.pod.meta.name);
  switch (outcome.progress.state) {
    case State::kSucceeded:
      row.why = making ? "the directory is made; the PersistentVolume follows"
                       : "the directory is removed; the PersistentVolume goes now";
      return;
    case State::kFailed:
      row.problem = true;
      row.why = event != nullptr
                    ? reason_of(*event)
                    : fmt::format("attempt {}: {}", operation.attempt, outcome.progress.message);
      row.next =
          fmt::format("it is tried again by itself; output of the script: kubectl -n {} logs {}",
                      helper.pod.meta.ns, helper.pod.meta.name);
      return;
    case State::kWaiting:
    case State::kRunning:
    case State::kLate:
    case State::kEnding: break;
  }
  if (outcome.progress.message.empty()) {
    row.why = fmt::format("helper pod {} {} the directory ({}, attempt {})", helper.pod.meta.name,
                          making ? "makes" : "removes", helper.pod.phase, operation.attempt);
    return;
  }
  row.problem = true;
  row.why = outcome.progress.message;
  row.next = look;
}

void describe_waiting_for_pod(const ClusterView& view, const EventNote* event, VolumeRow& row) {
  const nlohmann::json* const pod = waiting_pod(view, row.claim);
  const std::string name = pod == nullptr ? "" : text(member(*pod, "metadata"), "name");
  if (event != nullptr) {
    // The provisioner gave the claim back, so that the scheduler can choose another node.
    row.problem = true;
    row.why = reason_of(*event);
    row.next =
        "the scheduler looks for another node; if there is none, see nodePathMap in the "
        "configuration";
  } else if (pod == nullptr) {
    row.why = "waits for the first pod that uses it (WaitForFirstConsumer)";
    row.next = "create a pod that uses the claim";
  } else if (const std::string because = not_scheduled_because(*pod); !because.empty()) {
    row.problem = true;
    row.why = fmt::format("pod {} cannot be scheduled: {}", name, because);
    row.next = fmt::format("kubectl -n {} describe pod {}", row.claim.ns, name);
  } else {
    row.why = fmt::format("the scheduler is choosing a node for pod {}", name);
  }
}

void describe_pending_claim(const ClusterView& view, const k8s::PersistentVolumeClaim& claim,
                            VolumeRow& row) {
  const std::string volume = provisioner::volume_name_of(claim.meta.uid);
  const EventNote* const event = newest_event(view, claim.meta.uid);
  row.node = provisioner::selected_node(claim);
  if (const HelperPod* const helper = helper_pod_of(view, volume)) {
    return describe_operation(*helper, event, row);
  }
  const auto storage_class = view.classes.get({"", claim.class_name()});
  const bool is_asked = provisioner::asks_for(claim, view.names);
  if (storage_class == nullptr && !view.classes_known && !(is_asked && event == nullptr)) {
    return describe_waiting_for_pod(view, event, row);
  }
  if (storage_class == nullptr && view.classes_known) {
    row.problem = true;
    row.why = fmt::format("StorageClass \"{}\" does not exist", claim.class_name());
    row.next = "create it, or name another class in a new claim";
    return;
  }
  if (storage_class != nullptr &&
      !provisioner::should_provision(claim, storage_class.get(), view.names)) {
    if (storage_class->waits_for_first_consumer() && row.node.empty()) {
      return describe_waiting_for_pod(view, event, row);
    }
    row.why = "Kubernetes has not asked the provisioner yet";
    row.next = "look at the kube-controller-manager if this lasts";
    return;
  }
  if (event != nullptr) {
    row.problem = true;
    row.why = reason_of(*event);
    return;
  }
  row.why = "the provisioner has not taken it up yet";
  row.next = fmt::format("if this lasts, see whether it runs: kubectl -n {} get pods",
                         view.provisioner_namespace);
}

void describe_released(const ClusterView& view, const k8s::PersistentVolume& volume,
                       VolumeRow& row) {
  const EventNote* const event = newest_event(view, volume.meta.uid);
  if (const HelperPod* const helper = helper_pod_of(view, volume.meta.name)) {
    return describe_operation(*helper, event, row);
  }
  if (event != nullptr) {
    row.problem = true;
    row.why = reason_of(*event);
  } else if (volume.reclaim_policy == "Delete") {
    row.why = "the directory is to be removed; the provisioner has not begun yet";
    row.next = fmt::format("if this lasts, see whether it runs: kubectl -n {} get pods",
                           view.provisioner_namespace);
  } else {
    row.why = fmt::format("its claim is gone; volume and data are kept (reclaim policy {})",
                          volume.reclaim_policy);
    row.next = fmt::format(
        "when the data is not needed: set the policy to Delete, kubectl patch pv "
        "{} -p '{{\"spec\":{{\"persistentVolumeReclaimPolicy\":\"Delete\"}}}}'",
        volume.meta.name);
  }
}

void take_volume(const ClusterView& view, const k8s::PersistentVolume& volume, VolumeRow& row) {
  row.volume = volume.meta.name;
  row.path = volume.path;
  row.size = volume.capacity;
  const std::string* const quota = find(volume.meta.annotations, provisioner::kVolumeQuota);
  row.limited = quota != nullptr && *quota == provisioner::kQuotaHard;
  row.storage_class = volume.storage_class_name;
  row.reclaim_policy = volume.reclaim_policy;
  row.phase = volume.meta.deleting() ? "Terminating" : volume.phase;
  row.created = volume.meta.creation_timestamp;
  const std::string* const annotated =
      find(volume.meta.annotations, provisioner::kVolumeSelectedNode);
  row.node = annotated == nullptr ? "" : *annotated;
  const auto node = provisioner::node_of(volume, view.nodes);
  if (node.kind == provisioner::VolumeNode::Kind::kAny) {
    row.shared = volume.node_affinity.empty();
  } else if (node.kind == provisioner::VolumeNode::Kind::kNode) {
    row.node = node.name;
  } else if (view.nodes_known && node.kind == provisioner::VolumeNode::Kind::kUnclear) {
    row.problem = true;
    row.why = fmt::format("it is not clear on which node it is: {}", node.description);
    row.next =
        fmt::format("say it with the volume's annotation {}", provisioner::kVolumeSelectedNode);
  } else if (view.nodes_known) {
    row.problem = true;
    row.why = fmt::format("its node is gone ({}): no pod can use it", node.description);
    row.next = "bring the node back under the same name, or delete the claim";
  }
  if (row.why.empty() && (volume.phase == "Released" || volume.phase == "Failed")) {
    describe_released(view, volume, row);
  } else if (row.why.empty() && volume.meta.deleting()) {
    row.why = volume.phase == "Bound" ? "is deleted once its claim is gone" : "is being deleted";
  } else if (row.why.empty() && volume.phase == "Available") {
    row.why = "is made; Kubernetes has not bound it to its claim yet";
  }
}

void describe_growing(const ClusterView& view, const k8s::PersistentVolumeClaim& claim,
                      VolumeRow& row) {
  row.why = fmt::format("grows from {} to {}", claim.capacity, claim.storage_request);
  const EventNote* const event = newest_event(view, claim.meta.uid);
  if (event != nullptr && event->reason == provisioner::kVolumeResizeFailed) {
    row.problem = true;
    row.why += ": " + reason_of(*event);
  }
  if (claim.resize_status == provisioner::kResizeInfeasible) {
    row.problem = true;
    row.next = fmt::format("ask for less, but for more than {}", claim.capacity);
  }
}

/// A bound claim whose volume may not be read.
void take_unknown_volume(const k8s::PersistentVolumeClaim& claim, VolumeRow& row) {
  row.volume = claim.volume_name;
  row.node = provisioner::selected_node(claim);
  if (!claim.capacity.empty()) row.size = claim.capacity;
}

/// Whether the claim names a provisioner, whichever.
bool names_a_provisioner(const k8s::PersistentVolumeClaim& claim) {
  return find(claim.meta.annotations, provisioner::kStorageProvisioner) != nullptr ||
         find(claim.meta.annotations, provisioner::kBetaStorageProvisioner) != nullptr;
}

VolumeRow claim_row(const ClusterView& view, const k8s::PersistentVolumeClaim& claim,
                    const k8s::PersistentVolume* volume) {
  VolumeRow row;
  row.claim = claim.meta.key();
  row.claim_uid = claim.meta.uid;
  if (volume != nullptr) take_volume(view, *volume, row);
  row.size = row.size.empty() ? claim.storage_request : row.size;
  row.storage_class = claim.class_name();
  row.created = claim.meta.creation_timestamp;
  row.phase = claim.meta.deleting() ? "Terminating" : claim.phase;
  if (volume == nullptr && claim.phase == "Lost") {
    row.problem = true;
    row.volume = claim.volume_name;
    row.why = fmt::format("its volume {} is gone", claim.volume_name);
    row.next = "delete the claim; the data cannot be reached through it any more";
  } else if (volume == nullptr && !claim.volume_name.empty() && !view.volumes_known) {
    take_unknown_volume(claim, row);
  } else if (volume == nullptr) {
    describe_pending_claim(view, claim, row);
  }
  if (row.why.empty() && claim.meta.deleting()) {
    row.why = "is deleted once no pod uses it";
  }
  if (row.why.empty() && volume != nullptr && provisioner::wants_resize(claim)) {
    describe_growing(view, claim, row);
  }
  return row;
}

/// A helper pod whose claim and volume are both gone: its operation is being taken back.
VolumeRow undo_row(const HelperPod& helper) {
  VolumeRow row;
  row.claim = helper.operation.claim;
  row.volume = helper.operation.volume_name;
  row.storage_class = helper.operation.storage_class;
  row.created = helper.pod.meta.creation_timestamp;
  row.phase = "Undoing";
  describe_operation(helper, nullptr, row);
  if (helper.operation.kind == Kind::kMake) {
    row.why = "its claim is gone: the directory that may have been made is removed again";
    row.problem = false;
    row.next.clear();
  }
  return row;
}

}  // namespace

bool is_our_claim(const ClusterView& view, const k8s::PersistentVolumeClaim& claim) {
  if (!claim.volume_name.empty()) {
    if (view.volumes.get({"", claim.volume_name}) != nullptr) return true;
    if (claim.phase != "Lost" && view.volumes_known) return false;
  }
  // Its class may be gone, and one that was served early has no annotation.
  if (provisioner::asks_for(claim, view.names)) return true;
  const auto storage_class = view.classes.get({"", claim.class_name()});
  if (storage_class != nullptr) return view.names.has(storage_class->provisioner);
  // It may be.
  return !view.classes_known && claim.volume_name.empty() && !claim.class_name().empty() &&
         !names_a_provisioner(claim);
}

std::vector<VolumeRow> volume_rows(const ClusterView& view) {
  std::vector<VolumeRow> rows;
  std::set<std::string> shown;  // volumes that have a row
  for (const auto& claim : view.claims.list()) {
    if (!is_our_claim(view, *claim)) continue;
    const std::string name = claim->volume_name.empty()
                                 ? provisioner::volume_name_of(claim->meta.uid)
                                 : claim->volume_name;
    const auto volume = view.volumes.get({"", name});
    rows.push_back(claim_row(view, *claim, volume.get()));
    shown.insert(name);
  }
  for (const auto& volume : view.volumes.list()) {
    if (!shown.insert(volume->meta.name).second) continue;
    VolumeRow row;
    row.claim = volume->claim;
    row.claim_uid = volume->claim_uid;
    take_volume(view, *volume, row);
    rows.push_back(std::move(row));
  }
  for (const HelperPod& helper : view.helper_pods) {
    if (shown.insert(helper.operation.volume_name).second) rows.push_back(undo_row(helper));
  }
  std::sort(rows.begin(), rows.end(), [](const VolumeRow& a, const VolumeRow& b) {
    return std::tie(a.claim.ns, a.claim.name, a.created, a.volume) <
           std::tie(b.claim.ns, b.claim.name, b.created, b.volume);
  });
  return rows;
}

nlohmann::json to_json(const VolumeRow& row) {
  nlohmann::json out{{"namespace", row.claim.ns}, {"claim", row.claim.name}, {"phase", row.phase}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  add("volume", row.volume);
  add("node", row.node);
  add("executor", row.executor);
  add("path", row.path);
  add("size", row.size);
  add("storageClass", row.storage_class);
  add("reclaimPolicy", row.reclaim_policy);
  add("created", row.created);
  add("reason", row.why);
  add("next", row.next);
  out["problem"] = row.problem;
  if (row.shared) out["shared"] = true;
  if (row.limited) out["limited"] = true;
  if (row.usage) {
    out["usage"] = {{"usedBytes", row.usage->used_bytes},
                    {"capacityBytes", row.usage->capacity_bytes},
                    {"usedInodes", row.usage->used_inodes},
                    {"inodes", row.usage->inodes}};
    if (!row.usage->told_at.empty()) out["usage"]["toldAt"] = row.usage->told_at;
  }
  if (!row.helper_pod.empty()) {
    out["helperPod"] = {
        {"name", row.helper_pod}, {"operation", row.operation}, {"attempt", row.attempt}};
  }
  return out;
}

}  // namespace lpp::cli
