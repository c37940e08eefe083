#pragma once

#include <string>

#include "provisioner/action.h"
#include "provisioner/attempts.h"
#include "provisioner/plan.h"
#include "provisioner/undo.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// A claim as the claim queue knows it. The UID is part of it: a claim deleted and created again
/// under the same name is another claim.
struct ClaimKey {
  k8s::ObjectKey claim;
  std::string uid;
  bool operator==(const ClaimKey&) const = default;
};

/// One idempotent pass over one claim: looks at the stores, takes the single next action, never
/// waits for a pod. Thread-safe for different keys; the queue never runs one key twice at once.
class ClaimReconciler {
 public:
  ClaimReconciler(World& world, Attempts& attempts)
      : world_(world), attempts_(attempts), undo_(world, attempts) {}

  /// `waiting_since` is when the key came into the queue.
  Action step(const ClaimKey& key, std::optional<TimePoint> waiting_since = {});

 private:
  struct Scene;  // what one step found

  Action take_back_lost(const std::string& volume_name);
  Action claim_gone(const ClaimKey& key, const std::string& volume_name);
  Action volume_exists(const Scene& scene, const k8s::PersistentVolume& volume);
  Action provision(Scene& scene);
  Action path_taken(const Scene& scene, const std::string& path, const std::string& other_path,
                    const std::string& other_volume);
  Action run(Scene& scene, helperpod::Operation operation, const VolumeShape& shape);
  Action attempt_failed(Scene& scene, int number, const std::string& message, std::string reason);
  Result<bool> clean_up(const Scene& scene);
  Action create_volume(Scene& scene, const helperpod::Operation& operation,
                       const VolumeShape& shape);
  Action await_made_volume(Scene& scene);
  Action refuse(Scene& scene, const Refusal& refusal);
  Action reschedule(Scene& scene, const std::string& why);
  Action api_failed(const Scene& scene, const Error& error);
  void announce(const Scene& scene);
  void count_failure(const Scene& scene, std::string reason, const std::string& message);
  void report(const Scene& scene, const std::string& message);

  World& world_;
  Attempts& attempts_;
  Undo undo_;
};

}  // namespace lpp::provisioner

template <>
struct std::hash<lpp::provisioner::ClaimKey> {
  std::size_t operator()(const lpp::provisioner::ClaimKey& key) const noexcept {
    return std::hash<std::string>()(key.uid);
  }
};
