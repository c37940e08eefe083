#include "provisioner/volume_reconciler.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "k8s/quantity.h"
#include "provisioner/names.h"
#include "provisioner/undo.h"

namespace lpp::provisioner {

using helperpod::Executor;
using helperpod::Operation;
using helperpod::Progress;

namespace {

k8s::ObjectReference reference_to(const k8s::PersistentVolume& volume) {
  return {.kind = "PersistentVolume",
          .api_version = "v1",
          .ns = {},
          .name = volume.meta.name,
          .uid = volume.meta.uid,
          .resource_version = volume.meta.resource_version};
}

}  // namespace

Action VolumeReconciler::step(const std::string& name, std::optional<TimePoint> waiting_since) {
  const auto volume = world_.volumes.get({"", name});
  const std::string claim_name = volume == nullptr ? std::string() : volume->claim.to_string();
  const log::Scope fields({{"volume", name}, {"claim", claim_name}});
  if (volume == nullptr) return volume_gone(name);
  if (!is_ours(*volume, world_.provisioner_name)) return Action::done();
  if (!wants_delete(*volume, world_.claims)) return keep(*volume);
  return remove_directory(*volume, waiting_since);
}

Action VolumeReconciler::volume_gone(const std::string& name) {
  attempts_.erase(name);
  world_.operations.forget(Work::kDelete, name);
  const auto recorded = world_.executor.recorded(helperpod::HelperAction::kDelete, name);
  if (!recorded.ok()) return Action::retry();
  // What an undo records belongs to the claim queue.
  if (!*recorded || Undo::is_undo(**recorded)) return Action::done();
  const auto clean =
      world_.executor.clean_up(helperpod::HelperAction::kDelete, name, Executor::When::kWhenQuiet);
  if (!clean.ok())
    return clean.error().is(ErrorCode::kCancelled) ? Action::done() : Action::retry();
  return *clean ? Action::done() : Action::await_change(kRecheck);
}

/// Our finalizer is on volumes whose directory we will remove, and on no others.
Action VolumeReconciler::keep(const k8s::PersistentVolume& volume) {
  attempts_.erase(volume.meta.name);
  world_.operations.forget(Work::kDelete, volume.meta.name);
  const bool wanted = volume.reclaim_policy == "Delete";
  const bool present = has_finalizer(volume);
  const bool add = wanted && !present && !volume.meta.deleting() && volume.phase == "Bound";
  const bool take_away = !wanted && present;
  if (!add && !take_away) return Action::done();
  const auto patched = patch_finalizer(volume, add);
  if (!patched.ok()) return api_failed(volume, patched.error());
  log::debug("finalizer {}", add ? "added" : "removed");
  return Action::done();
}

Action VolumeReconciler::remove_directory(const k8s::PersistentVolume& volume,
                                          std::optional<TimePoint> waiting_since) {
  const auto config = world_.config.current();
  Attempt attempt = attempts_.get(volume.meta.name);
  const VolumeNode node = removal_node_of(volume, world_.nodes, *config);
  const log::Scope fields({{"node", node.name}});
  const std::string seen = fmt::format("{}/{}/{}/{}", volume.meta.resource_version, node.name,
                                       node.description, config->generation);
  if (const auto left = attempts_.held(attempt, seen)) return Action::await_change(*left);
  if (world_.clock.now() < attempt.removal_seen_by) return Action::await_change(kRecheck);

  if (volume.source == k8s::VolumeSource::kOther || volume.path.empty()) {
    return refuse(volume, seen, "the volume has neither hostPath.path nor local.path");
  }
  if (node.kind == VolumeNode::Kind::kGone) {
    if (!node.name.empty()) {
      const auto gone = node_is_gone(world_, node.name);
      if (!gone.ok()) return api_failed(volume, gone.error());
      if (!*gone) return Action::await_change(std::chrono::seconds(1));  // the cache will show it
    }
    const std::string text = "node " + node.description +
                             " does not exist any more: its directory " + volume.path +
                             " cannot be removed, the volume is let go";
    world_.events.event(reference_to(volume), k8s::EventType::kWarning, kVolumeNodeGone, text);
    log::warn("{}", text);
    return remove_volume(volume);
  }
  if (node.kind == VolumeNode::Kind::kUnclear) {
    return refuse(volume, seen,
                  "it is not clear on which node the directory " + volume.path +
                      " is: " + node.description + "; say it with the volume's annotation " +
                      std::string(kVolumeSelectedNode));
  }
  if (const auto removable = check_removable(volume, *config); !removable.ok()) {
    return refuse(volume, seen, removable.error().message);
  }
  Operation operation;
  operation.action = helperpod::HelperAction::kDelete;
  operation.volume_name = volume.meta.name;
  operation.claim = volume.claim;
  operation.owner_uid = volume.meta.uid;
  operation.storage_class = volume.storage_class_name;
  operation.node = node.name;
  operation.path = volume.path;
  operation.base_path = base_path_of(volume.path, *config);
  if (!volume.volume_mode.empty()) operation.volume_mode = volume.volume_mode;
  if (const auto size = k8s::Quantity::parse(volume.capacity); size.ok()) {
    operation.size_bytes = size->value();
  }
  // The attempt goes on counting after a restart: the record knows it.
  const auto recorded =
      world_.executor.recorded(helperpod::HelperAction::kDelete, volume.meta.name);
  if (!recorded.ok()) return api_failed(volume, recorded.error());
  const bool known = *recorded && (*recorded)->owner_uid == volume.meta.uid;
  if (known) {
    operation.attempt = (*recorded)->attempt;
    operation.base_path = (*recorded)->base_path;  // the configuration may have changed since
  }
  if (attempt.number >= operation.attempt) operation.attempt = attempt.number + 1;
  const bool under_way =
      known && (*recorded)->attempt == operation.attempt && (*recorded)->path == operation.path;
  if (!under_way) {
    // Once, before it begins, for it looks at every volume of the cluster.
    if (const auto other = overlapping_volume(world_.volumes, world_.nodes, operation,
                                              world_.provisioner_name, volume.meta.name)) {
      const std::string text = "refusing to remove path " + volume.path +
                               ": it overlaps the directory " + other->path + " of volume " +
                               other->meta.name;
      count_failure(volume, "PathTaken", text);
      report(volume, text);
      return Action::await_change(kRecheck);
    }
    // Without its volume, what records that it was made would be taken back.
    const auto clean = world_.executor.clean_up(helperpod::HelperAction::kCreate, volume.meta.name,
                                                Executor::When::kNow);
    if (!clean.ok()) return api_failed(volume, clean.error());
    const auto begun = begin_removal(volume);
    if (!begun.ok()) return api_failed(volume, begun.error());
    if (!*begun) return Action::await_change(kRecheck);
    world_.operations.progressed(Work::kDelete, operation, Step::kQueued, {}, waiting_since);
  }
  const auto reached = world_.executor.advance(operation, under_way);
  if (!reached.ok()) return api_failed(volume, reached.error());
  const auto& progress = *reached;
  if (!progress) return Action::await_change(kRecheck);
  world_.operations.progressed(Work::kDelete, operation, step_of(*progress), progress->message);
  switch (progress->state) {
    case Progress::State::kRunning:
      if (!progress->message.empty()) report(volume, progress->message);
      return Action::await_change(kRecheck);
    case Progress::State::kSucceeded:
      return remove_volume(volume);
    case Progress::State::kFailed:
      break;
  }
  const Duration wait = attempts_.wait_after(operation.attempt);
  attempt.number = operation.attempt;
  attempt.reported.clear();
  attempt.hold_until = world_.clock.now() + wait;
  attempt.seen = seen;
  attempts_.set(volume.meta.name, attempt);
  count_failure(volume, progress->reason, progress->message);
  report(volume, progress->message);
  return Action::await_change(wait);
}

/// The cache may be behind, most of all where this process has just begun to lead: the volume may
/// be gone and its path another one's by now, bound again, or to be kept. Data is not removed on
/// such a word. So the API server has the last one, at best by deleting the object in exactly the
/// version that was seen: from then on nobody can bind it, and our finalizer keeps it until the
/// directory is gone. False: the cache will show what has changed.
Result<bool> VolumeReconciler::begin_removal(const k8s::PersistentVolume& seen) {
  if (has_finalizer(seen) && !seen.meta.deleting()) {
    const auto deleted = delete_object(seen);
    if (deleted.ok()) return true;
    const Error& error = deleted.error();
    if (error.is(ErrorCode::kNotFound) || error.is(ErrorCode::kConflict)) return false;
    return error;
  }
  const auto volume = read_volume(world_, seen.meta.name);
  if (!volume.ok()) return volume.error();
  return *volume && (*volume)->meta.uid == seen.meta.uid && (*volume)->path == seen.path &&
         wants_delete(**volume, world_.claims);
}

Result<void> VolumeReconciler::delete_object(const k8s::PersistentVolume& seen) {
  const auto deleted =
      world_.client.remove(k8s::kPersistentVolumes, seen.meta.key(),
                           {.uid = seen.meta.uid, .resource_version = seen.meta.resource_version});
  if (!deleted.ok()) return deleted.error().wrap("delete volume");
  return {};
}

Action VolumeReconciler::refuse(const k8s::PersistentVolume& volume, const std::string& seen,
                                const std::string& message) {
  Attempt attempt = attempts_.get(volume.meta.name);
  attempt.hold_until = world_.clock.now() + Attempts::kResync;
  attempt.seen = seen;
  attempts_.set(volume.meta.name, attempt);
  count_failure(volume, "Refused", message);
  report(volume, message);
  return Action::await_change(Attempts::kResync);
}

/// The directory is gone (or out of reach for good): the object goes, if it is not on its way yet,
/// then our finalizer; the helper pod last, when the volume is seen to be gone, because it is the
/// record that the work was done.
Action VolumeReconciler::remove_volume(const k8s::PersistentVolume& volume) {
  if (!volume.meta.deleting()) {
    const auto deleted = delete_object(volume);
    if (!deleted.ok() && !deleted.error().is(ErrorCode::kNotFound)) {
      return api_failed(volume, deleted.error());
    }
  }
  if (has_finalizer(volume)) {
    const auto patched = patch_finalizer(volume, false);
    if (!patched.ok() && !patched.error().is(ErrorCode::kNotFound)) {
      return api_failed(volume, patched.error());
    }
  }
  // Somebody else's finalizer may keep it: then this is repeated, but it is no other deletion.
  if (attempts_.get(volume.meta.name).removal_seen_by != TimePoint{}) {
    world_.operations.forget(Work::kDelete, volume.meta.name);
  } else {
    world_.operations.succeeded(Work::kDelete, volume.meta.name, volume.storage_class_name);
  }
  const log::Scope fields({{"path", volume.path}});
  log::info("volume deleted");
  Attempt removed;
  removed.removal_seen_by = world_.clock.now() + kRecheck;
  attempts_.set(volume.meta.name, removed);
  return Action::await_change(kRecheck);
}

/// A strategic merge touches our entry of the list only, whatever else has changed meanwhile; the
/// UID makes the server refuse if the name stands for another volume by now.
Result<void> VolumeReconciler::patch_finalizer(const k8s::PersistentVolume& volume, bool present) {
  nlohmann::json patch{{"metadata", {{"uid", volume.meta.uid}}}};
  const char* const list = present ? "finalizers" : "$deleteFromPrimitiveList/finalizers";
  patch["metadata"][list] = nlohmann::json::array({kFinalizer});
  const auto patched =
      world_.client.patch(k8s::kPersistentVolumes, volume.meta.key(),
                          k8s::PatchType::kStrategicMerge, patch, {}, k8s::Answer::kIdentity);
  if (!patched.ok()) return patched.error().wrap("patch the volume's finalizers");
  return {};
}

Action VolumeReconciler::api_failed(const k8s::PersistentVolume& volume, const Error& error) {
  if (!error.is(ErrorCode::kCancelled)) count_failure(volume, reason_of(error), error.message);
  switch (error.code) {
    case ErrorCode::kCancelled:
      return Action::done();
    case ErrorCode::kForbidden:
    case ErrorCode::kInvalid:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kInternal:
      report(volume, error.message);
      break;
    default:
      log::warn("tried again soon: {}", error.message);
  }
  return Action::retry();
}

void VolumeReconciler::count_failure(const k8s::PersistentVolume& volume, std::string reason,
                                     const std::string& message) {
  world_.operations.failed({.work = Work::kDelete,
                            .volume = volume.meta.name,
                            .claim = volume.claim,
                            .node = node_of(volume, world_.nodes).name,
                            .storage_class = volume.storage_class_name,
                            .reason = std::move(reason),
                            .message = message});
}

/// One Warning event and log line per distinct message and attempt.
void VolumeReconciler::report(const k8s::PersistentVolume& volume, const std::string& message) {
  if (!attempts_.worth_saying(volume.meta.name, message)) return;
  const std::string text = "failed to delete volume " + volume.meta.name + ": " + message;
  world_.events.event(reference_to(volume), k8s::EventType::kWarning, kVolumeFailedDelete, text);
  log::warn("{}", first_line(text));
}

}  // namespace lpp::provisioner
