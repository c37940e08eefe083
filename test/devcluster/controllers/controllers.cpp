// SPDX-License-Identifier: Apache-2.0
#include "devcluster/controllers/controllers.h"

#include <nlohmann/json.hpp>

#include "devcluster/controllers/storage_names.h"
#include "devcluster/controllers/storage_rules.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

constexpr std::string_view kClaim = "claim ";
constexpr std::string_view kVolume = "volume ";
constexpr std::string_view kSchedule = "schedule ";
constexpr std::string_view kOrphan = "orphan ";
constexpr std::string_view kDependents = "dependents";
constexpr std::string_view kSet = "set ";

std::string with(std::string_view kind, std::string_view key) {
  return std::string(kind).append(key);
}

/// The key without its kind; empty optional for another kind.
std::optional<std::string> key_for(std::string_view kind, const std::string& key) {
  if (!key.starts_with(kind)) return std::nullopt;
  return key.substr(kind.size());
}

/// A node's pods are left alone for a moment: the node may be about to come back.
constexpr std::chrono::milliseconds kOrphanGrace{500};
/// Many deletions at once need one look at everything that is left.
constexpr std::chrono::milliseconds kCollectTogether{50};

}  // namespace

Controllers::Controllers(Registry& registry, Clock& clock)
    : registry_(registry),
      binder_(registry, clock),
      scheduler_(registry, clock),
      collector_(registry),
      stateful_sets_(registry, clock),
      storage_(clock, "volumes", 1, [this](const std::string& key) { sync_storage(key); }),
      other_(clock, "scheduler", 1, [this](const std::string& key) { sync_other(key); }),
      changes_(registry, "controllers",
               {"pods", "persistentvolumeclaims", "persistentvolumes", "storageclasses", "nodes",
                "statefulsets", "deployments", "replicasets", "configmaps", "secrets",
                "serviceaccounts", "leases", "csidrivers", "csistoragecapacities"},
               [this](const WatchEvent& event) { on_event(event); }) {}

Controllers::~Controllers() { stop(); }

void Controllers::start() {
  storage_.start();
  other_.start();
  changes_.start();
}

void Controllers::stop() {
  changes_.stop();
  other_.stop();
  storage_.stop();
}

void Controllers::on_event(const WatchEvent& event) {
  const json& object = *event.object;
  const bool deleted = event.type == WatchEventType::kDeleted;
  if (event.resource == "pods") {
    on_pod(object, deleted);
  } else if (event.resource == "persistentvolumeclaims") {
    on_claim(object);
    if (deleted) {  // a volume that was made for it and not bound yet is released too
      for (const ObjectPtr& volume : registry_.all("persistentvolumes")) {
        if (text_at(*volume, {"spec", "claimRef", "uid"}) == text_at(object, {"metadata", "uid"})) {
          storage_.add(with(kVolume, name_of(*volume)));
        }
      }
    }
    const bool open = !deleted && text_at(object, {"status", "phase"}) != "Bound";
    if (open) {
      open_claims_.insert(key_of(object));
    } else {
      open_claims_.erase(key_of(object));
    }
  } else if (event.resource == "persistentvolumes") {
    on_volume(object, deleted);
  } else if (event.resource == "storageclasses") {
    look_at_open_claims();
    look_at_waiting_pods();
  } else if (event.resource == "csidrivers" || event.resource == "csistoragecapacities") {
    look_at_waiting_pods();
  } else if (event.resource == "nodes") {
    look_at_waiting_pods();
    if (deleted) {
      for (const ObjectPtr& pod : registry_.all("pods")) {
        if (text_at(*pod, {"spec", "nodeName"}) == name_of(object)) {
          other_.add_after(with(kOrphan, key_of(*pod)), kOrphanGrace);
        }
      }
    }
  } else if (event.resource == "statefulsets") {
    other_.add(with(kSet, key_of(object)));
  }
  if (deleted) other_.add_after(std::string(kDependents), kCollectTogether);
}

void Controllers::on_pod(const json& pod, bool deleted) {
  const std::string key = key_of(pod);
  const bool waiting = !deleted && text_at(pod, {"spec", "nodeName"}).empty() && !has_ended(pod);
  if (waiting) {
    waiting_pods_.insert(key);
    other_.add(with(kSchedule, key));
  } else if (waiting_pods_.erase(key) > 0) {
    other_.add(with(kSchedule, key));  // lets the scheduler forget it
  }
  if (!deleted && !text_at(pod, {"spec", "nodeName"}).empty()) {
    other_.add_after(with(kOrphan, key), kOrphanGrace);
  }
  for (const std::string& name : claims_of(pod)) {
    const std::string claim = namespace_of(pod) + "/" + name;
    if (waiting) {
      pods_of_claim_[claim].insert(key);
    } else if (const auto users = pods_of_claim_.find(claim); users != pods_of_claim_.end()) {
      users->second.erase(key);
      if (users->second.empty()) pods_of_claim_.erase(users);
    }
    if (deleted) storage_.add(with(kClaim, claim));  // its protection may end
  }
  look_at_set_of(pod);
}

void Controllers::look_at_set_of(const json& pod) {
  for (const json& owner : array_at(pod, {"metadata", "ownerReferences"})) {
    if (text_at(owner, {"kind"}) == "StatefulSet") {
      other_.add(with(kSet, namespace_of(pod) + "/" + text_at(owner, {"name"})));
    }
  }
}

void Controllers::on_claim(const json& claim) {
  const std::string key = key_of(claim);
  storage_.add(with(kClaim, key));
  if (const auto volume = text_at(claim, {"spec", "volumeName"}); !volume.empty()) {
    storage_.add(with(kVolume, volume));
  }
  if (const auto users = pods_of_claim_.find(key); users != pods_of_claim_.end()) {
    for (const std::string& pod : users->second) {
      other_.add(with(kSchedule, pod));
      const SplitKey name = split_key(pod);
      const ObjectPtr found = registry_.find("pods", name.ns, name.name);
      if (found != nullptr) look_at_set_of(*found);  // it may miss the claim
    }
  }
}

void Controllers::on_volume(const json& volume, bool deleted) {
  storage_.add(with(kVolume, name_of(volume)));
  const json& ref = object_at(volume, {"spec", "claimRef"});
  if (!ref.empty()) {
    storage_.add(with(kClaim, text_at(ref, {"namespace"}) + "/" + text_at(ref, {"name"})));
  } else if (!deleted) {
    look_at_open_claims();
  }
}

void Controllers::look_at_waiting_pods() {
  for (const std::string& key : waiting_pods_) other_.add(with(kSchedule, key));
}

void Controllers::look_at_open_claims() {
  for (const std::string& key : open_claims_) storage_.add(with(kClaim, key));
}

void Controllers::sync_storage(const std::string& key) {
  if (const auto claim = key_for(kClaim, key)) {
    const SplitKey name = split_key(*claim);
    binder_.sync_claim(name.ns, name.name);
  } else if (const auto volume = key_for(kVolume, key)) {
    binder_.sync_volume(*volume);
  }
}

void Controllers::sync_other(const std::string& key) {
  if (const auto pod = key_for(kSchedule, key)) {
    const SplitKey name = split_key(*pod);
    if (const auto again = scheduler_.sync_pod(name.ns, name.name)) other_.add_after(key, *again);
  } else if (const auto orphan = key_for(kOrphan, key)) {
    const SplitKey name = split_key(*orphan);
    collector_.sync_pod(name.ns, name.name);
  } else if (key == kDependents) {
    collector_.collect_dependents();
  } else if (const auto set = key_for(kSet, key)) {
    const SplitKey name = split_key(*set);
    stateful_sets_.sync(name.ns, name.name);
  }
}

}  // namespace lpp::devcluster
