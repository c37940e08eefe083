// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/runtime/event_emitter.h"

namespace lpp::devcluster {

/// The control plane's part in the life of claims and volumes: binds them, asks provisioners for
/// volumes, releases volumes whose claim is gone, and holds objects in use back from deletion
/// (pvc-protection, pv-protection). The rules are those of kube-controller-manager.
/// One step per call, safe to repeat; used by one thread at a time.
class VolumeBinder {
 public:
  VolumeBinder(Registry& registry, Clock& clock);

  void sync_claim(const std::string& ns, const std::string& name);
  void sync_volume(const std::string& name);

 private:
  void sync_unbound(const nlohmann::json& claim);
  void sync_bound(const nlohmann::json& claim);
  void provision(const nlohmann::json& claim, const nlohmann::json& storage_class);
  void bind(const nlohmann::json& volume, const nlohmann::json& claim);
  /// The claim is bound elsewhere.
  void unbind(const nlohmann::json& volume);
  void set_claim_pending(const nlohmann::json& claim);
  void set_claim_lost(const nlohmann::json& claim, std::string_view reason,
                      std::string_view message);
  void set_volume_phase(const nlohmann::json& volume, std::string_view phase);
  ObjectPtr find_match(const nlohmann::json& claim, bool only_prebound) const;
  /// A pod on a node names the claim: the kubelet may have it mounted.
  bool in_use(const nlohmann::json& claim) const;
  void drop_finalizer(const std::string& resource, const nlohmann::json& object,
                      std::string_view finalizer);

  Registry& registry_;
  EventEmitter events_;
};

}  // namespace lpp::devcluster
