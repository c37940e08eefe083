#pragma once

#include <string>

#include "provisioner/action.h"
#include "provisioner/attempts.h"
#include "provisioner/volume_rules.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// One idempotent pass over one volume: keeps our finalizer where it belongs; deletes a released
/// volume, which our finalizer holds, removes its directory and then lets it go. Never waits for a
/// pod. Thread-safe for different names; the queue never runs one name twice at once.
class VolumeReconciler {
 public:
  VolumeReconciler(World& world, Attempts& attempts) : world_(world), attempts_(attempts) {}

  /// `name` is that of a PersistentVolume that exists or existed.
  /// `waiting_since` is when the name came into the queue.
  Action step(const std::string& name, std::optional<TimePoint> waiting_since = {});

 private:
  Action volume_gone(const std::string& name);
  Action keep(const k8s::PersistentVolume& volume);
  Action remove_directory(const k8s::PersistentVolume& volume,
                          std::optional<TimePoint> waiting_since);
  Result<bool> begin_removal(const k8s::PersistentVolume& seen);
  Result<void> delete_object(const k8s::PersistentVolume& seen);
  Action refuse(const k8s::PersistentVolume& volume, const std::string& seen,
                const std::string& message);
  Action remove_volume(const k8s::PersistentVolume& volume);
  Result<void> patch_finalizer(const k8s::PersistentVolume& volume, bool present);
  Action api_failed(const k8s::PersistentVolume& volume, const Error& error);
  void count_failure(const k8s::PersistentVolume& volume, std::string reason,
                     const std::string& message);
  void report(const k8s::PersistentVolume& volume, const std::string& message);

  World& world_;
  Attempts& attempts_;
};

}  // namespace lpp::provisioner
