// SPDX-License-Identifier: Apache-2.0
#include "devcluster/controllers/volume_binder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "devcluster/controllers/storage_names.h"
#include "devcluster/controllers/storage_rules.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

ObjectRef claim_ref(const json& claim) {
  return {"persistentvolumeclaims", namespace_of(claim), name_of(claim)};
}
ObjectRef volume_ref(const json& volume) { return {"persistentvolumes", "", name_of(volume)}; }

bool annotate(json& object, std::string_view key, std::string_view value) {
  json& annotations = object["metadata"]["annotations"];
  if (text_at(annotations, {key}) == value) return false;
  annotations[std::string(key)] = value;
  return true;
}

/// Somebody else changed the object meanwhile: that change brings the next step by itself.
void note(const Reply& reply, std::string_view what) {
  if (!reply.ok()) log::debug("{}: {}", what, reply.message());
}

}  // namespace

VolumeBinder::VolumeBinder(Registry& registry, Clock& clock)
    : registry_(registry), events_(registry, clock, "persistentvolume-controller") {}

void VolumeBinder::sync_claim(const std::string& ns, const std::string& name) {
  const ObjectPtr claim = registry_.find("persistentvolumeclaims", ns, name);
  if (claim == nullptr) return;
  if (is_deleting(*claim) && has_finalizer(*claim, kClaimProtection) && !in_use(*claim)) {
    return drop_finalizer("persistentvolumeclaims", *claim, kClaimProtection);
  }
  if (has_annotation(*claim, kBindCompleted)) {
    sync_bound(*claim);
  } else {
    sync_unbound(*claim);
  }
}

void VolumeBinder::sync_unbound(const json& claim) {
  const std::string wanted(text_at(claim, {"spec", "volumeName"}));
  if (!wanted.empty()) {  // asked for by name
    const ObjectPtr volume = registry_.find("persistentvolumes", "", wanted);
    const bool free = volume != nullptr && find_at(*volume, {"spec", "claimRef"}) == nullptr;
    if (volume != nullptr && (free || refers_to(*volume, claim))) return bind(*volume, claim);
    if (volume != nullptr) {
      events_.warning(claim, "FailedBinding",
                      "volume \"" + wanted + "\" already bound to a different claim.");
    }
    return set_claim_pending(claim);
  }
  const std::string class_name(class_of(claim));
  const ObjectPtr storage_class =
      class_name.empty() ? nullptr : registry_.find("storageclasses", "", class_name);
  const bool delayed = storage_class != nullptr && waits_for_consumer(*storage_class) &&
                       annotation(claim, kSelectedNode).empty();
  if (const ObjectPtr volume = find_match(claim, delayed); volume != nullptr) {
    return bind(*volume, claim);
  }
  set_claim_pending(claim);
  if (class_name.empty()) {
    events_.normal(claim, "FailedBinding",
                   "no persistent volumes available for this claim and no storage class is set");
  } else if (storage_class == nullptr) {
    events_.warning(claim, "ProvisioningFailed",
                    "storageclass.storage.k8s.io \"" + class_name + "\" not found");
  } else if (delayed) {
    events_.normal(claim, "WaitForFirstConsumer",
                   "waiting for first consumer to be created before binding");
  } else {
    provision(claim, *storage_class);
  }
}

void VolumeBinder::provision(const json& claim, const json& storage_class) {
  const std::string provisioner(text_at(storage_class, {"provisioner"}));
  if (provisioner == kNoProvisioner) return;
  if (annotation(claim, kStorageProvisioner) == provisioner) return;  // asked already
  note(registry_.modify(claim_ref(claim),
                        [&](json& stored) {
                          if (uid_of(stored) != uid_of(claim)) return false;
                          const bool beta = annotate(stored, kBetaStorageProvisioner, provisioner);
                          return annotate(stored, kStorageProvisioner, provisioner) || beta;
                        }),
       "ask for a volume");
  events_.normal(claim, "ExternalProvisioning",
                 "Waiting for a volume to be created either by the external provisioner '" +
                     provisioner +
                     "' or manually by the system administrator. If volume creation is delayed, "
                     "please verify that the provisioner is running and correctly registered.");
}

void VolumeBinder::sync_bound(const json& claim) {
  const std::string name(text_at(claim, {"spec", "volumeName"}));
  if (name.empty()) {
    return set_claim_lost(claim, "ClaimLost",
                          "Bound claim has lost reference to PersistentVolume. Data on the volume "
                          "is lost!");
  }
  const ObjectPtr volume = registry_.find("persistentvolumes", "", name);
  if (volume == nullptr) {
    return set_claim_lost(claim, "ClaimLost",
                          "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  }
  if (find_at(*volume, {"spec", "claimRef"}) == nullptr || refers_to(*volume, claim)) {
    return bind(*volume, claim);
  }
  set_claim_lost(claim, "ClaimMisbound",
                 "Two claims are bound to the same volume, this one is bound incorrectly");
}

ObjectPtr VolumeBinder::find_match(const json& claim, bool only_prebound) const {
  ObjectPtr best;
  for (const ObjectPtr& volume : registry_.all("persistentvolumes")) {
    if (find_at(*volume, {"spec", "claimRef"}) != nullptr) {
      if (!is_deleting(*volume) && refers_to(*volume, claim)) return volume;
      continue;
    }
    if (only_prebound || !volume_fits(*volume, claim)) continue;
    const auto size = [](const json& v) {
      return quantity_value(text_at(v, {"spec", "capacity", "storage"}));
    };
    if (best == nullptr || size(*volume) < size(*best)) best = volume;
  }
  return best;
}

void VolumeBinder::bind(const json& volume, const json& claim) {
  // Four writes in the order of the real controller, each left out when it is done already, so
  // that a step cut short anywhere is finished by the next one.
  const std::string volume_name(name_of(volume));
  Reply reply = registry_.modify(volume_ref(volume), [&](json& stored) {
    if (is_deleting(stored) && find_at(stored, {"spec", "claimRef"}) == nullptr) return false;
    json& ref = stored["spec"]["claimRef"];
    if (text_at(ref, {"uid"}) == uid_of(claim)) return false;
    if (ref.is_null()) annotate(stored, kBoundByController, "yes");
    ref = {{"kind", "PersistentVolumeClaim"},
           {"apiVersion", "v1"},
           {"namespace", namespace_of(claim)},
           {"name", name_of(claim)},
           {"uid", uid_of(claim)},
           {"resourceVersion", text_at(claim, {"metadata", "resourceVersion"})}};
    return true;
  });
  if (!reply.ok()) return note(reply, "bind volume");
  if (text_at(*reply.body, {"spec", "claimRef", "uid"}) != uid_of(claim)) return;
  const ObjectPtr bound = reply.body;
  set_volume_phase(*bound, "Bound");
  reply = registry_.modify(claim_ref(claim), [&](json& stored) {
    if (uid_of(stored) != uid_of(claim)) return false;
    bool changed = annotate(stored, kBindCompleted, "yes");
    if (text_at(stored, {"spec", "volumeName"}).empty()) {
      stored["spec"]["volumeName"] = volume_name;
      annotate(stored, kBoundByController, "yes");
      changed = true;
    }
    return changed;
  });
  if (!reply.ok()) return note(reply, "bind claim");
  note(registry_.modify(claim_ref(claim),
                        [&](json& stored) {
                          if (uid_of(stored) != uid_of(claim)) return false;
                          json& status = stored["status"];
                          if (text_at(status, {"phase"}) == "Bound") return false;
                          status["phase"] = "Bound";
                          status["accessModes"] = array_at(*bound, {"spec", "accessModes"});
                          status["capacity"] = object_at(*bound, {"spec", "capacity"});
                          return true;
                        },
                        {.subresource = "status"}),
       "claim status");
}

void VolumeBinder::set_claim_pending(const json& claim) {
  if (text_at(claim, {"status", "phase"}) == "Pending") return;
  note(registry_.modify(claim_ref(claim),
                        [&](json& stored) {
                          stored["status"]["phase"] = "Pending";
                          return uid_of(stored) == uid_of(claim);
                        },
                        {.subresource = "status"}),
       "claim status");
}

void VolumeBinder::set_claim_lost(const json& claim, std::string_view reason,
                                  std::string_view message) {
  if (text_at(claim, {"status", "phase"}) == "Lost") return;
  const Reply reply = registry_.modify(claim_ref(claim),
                                       [&](json& stored) {
                                         stored["status"] = {{"phase", "Lost"}};
                                         return uid_of(stored) == uid_of(claim);
                                       },
                                       {.subresource = "status"});
  note(reply, "claim status");
  if (reply.ok()) events_.warning(claim, reason, message);
}

void VolumeBinder::set_volume_phase(const json& volume, std::string_view phase) {
  if (text_at(volume, {"status", "phase"}) == phase) return;
  note(registry_.modify(volume_ref(volume),
                        [&](json& stored) {
                          if (uid_of(stored) != uid_of(volume)) return false;
                          stored["status"]["phase"] = phase;
                          return true;
                        },
                        {.subresource = "status"}),
       "volume status");
}

void VolumeBinder::sync_volume(const std::string& name) {
  const ObjectPtr volume = registry_.find("persistentvolumes", "", name);
  if (volume == nullptr) return;
  const std::string phase = text_at(*volume, {"status", "phase"});
  if (is_deleting(*volume) && has_finalizer(*volume, kVolumeProtection) && phase != "Bound") {
    return drop_finalizer("persistentvolumes", *volume, kVolumeProtection);
  }
  const json& ref = object_at(*volume, {"spec", "claimRef"});
  const std::string uid(text_at(ref, {"uid"}));
  if (uid.empty()) return set_volume_phase(*volume, "Available");
  const ObjectPtr claim =
      registry_.find("persistentvolumeclaims", text_at(ref, {"namespace"}), text_at(ref, {"name"}));
  if (claim == nullptr || uid_of(*claim) != uid) {
    if (phase != "Released" && phase != "Failed") set_volume_phase(*volume, "Released");
    return;
  }
  const std::string bound_to = text_at(*claim, {"spec", "volumeName"});
  if (bound_to.empty() || bound_to == name) {
    sync_claim(namespace_of(*claim), name_of(*claim));
  } else if (has_annotation(*volume, kProvisionedBy) &&
             text_at(*volume, {"spec", "persistentVolumeReclaimPolicy"}) == "Delete") {
    set_volume_phase(*volume, "Released");  // the claim got another volume: this one is surplus
  } else {
    unbind(*volume);
  }
}

void VolumeBinder::unbind(const json& volume) {
  const Reply reply = registry_.modify(volume_ref(volume), [&](json& stored) {
    if (uid_of(stored) != uid_of(volume)) return false;
    if (has_annotation(stored, kBoundByController)) {
      stored["metadata"]["annotations"].erase(std::string(kBoundByController));
      stored["spec"].erase("claimRef");
    } else {  // somebody meant it for the claim: it stays so
      stored["spec"]["claimRef"].erase("uid");
    }
    return true;
  });
  note(reply, "unbind volume");
  if (reply.ok()) set_volume_phase(*reply.body, "Available");
}

bool VolumeBinder::in_use(const json& claim) const {
  for (const ObjectPtr& pod : registry_.all("pods", namespace_of(claim))) {
    if (text_at(*pod, {"spec", "nodeName"}).empty()) continue;
    const auto names = claims_of(*pod);
    if (std::find(names.begin(), names.end(), name_of(claim)) != names.end()) return true;
  }
  return false;
}

void VolumeBinder::drop_finalizer(const std::string& resource, const json& object,
                                  std::string_view finalizer) {
  const ObjectRef ref{resource, namespace_of(object), name_of(object)};
  note(registry_.modify(ref,
                        [&](json& stored) {
                          if (uid_of(stored) != uid_of(object)) return false;
                          json& list = stored["metadata"]["finalizers"];
                          const auto found = std::find(list.begin(), list.end(), finalizer);
                          if (found == list.end()) return false;
                          list.erase(found);
                          return true;
                        }),
       "drop finalizer");
}

}  // namespace lpp::devcluster
