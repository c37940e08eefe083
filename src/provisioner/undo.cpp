#include "provisioner/undo.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "provisioner/names.h"
#include "provisioner/plan.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

using helperpod::Operation;
using helperpod::Progress;
using When = helperpod::Executor::When;

namespace {

std::string undo_key(std::string_view volume_name) { return "undo/" + std::string(volume_name); }

/// A claim that has moved waits for its new volume; whether the old node does anything is known
/// soon.
constexpr std::chrono::seconds kSoon{2};

}  // namespace

bool Undo::is_undo(const Operation& operation) {
  // The owner of a released volume's delete operation is the volume; here it is the claim.
  return operation.action == helperpod::HelperAction::kDelete &&
         operation.volume_name == volume_name_of(operation.owner_uid);
}

Result<std::optional<Operation>> Undo::begun(std::string_view volume_name) {
  auto recorded = world_.executor.recorded(helperpod::HelperAction::kDelete, volume_name);
  if (recorded.ok() && *recorded && !is_undo(**recorded)) return std::optional<Operation>{};
  return recorded;
}

void Undo::remember(const Operation& created) {
  const std::string key = undo_key(created.volume_name);
  Attempt attempt = attempts_.get(key);
  if (attempt.begun != nullptr && *attempt.begun == created) return;
  attempt.begun = std::make_shared<const Operation>(created);
  attempts_.set(key, std::move(attempt));
}

void Undo::forget(std::string_view volume_name) {
  attempts_.erase(undo_key(volume_name));
  world_.operations.forget(Work::kUndo, volume_name);
}

std::shared_ptr<const Operation> Undo::lost(std::string_view volume_name) const {
  return attempts_.get(undo_key(volume_name)).begun;
}

Action Undo::step(const Operation& created, bool at_once) {
  const auto reached = world_.executor.advance(created, true);
  if (!reached.ok()) return failed(created, reached.error());
  const auto& progress = *reached;
  if (!progress) return Action::await_change(kRecheck);
  if (progress->started) remember(created);
  if (progress->state == Progress::State::kRunning && (progress->started || !at_once)) {
    return Action::await_change(at_once ? kSoon : kRecheck);
  }
  if (!progress->started) return clean_up(created.volume_name, false);
  return take_back(created, progress->state == Progress::State::kFailed);
}

Action Undo::take_back(const Operation& created, bool has_failed) {
  if (is_undo(created)) return clean_up(created.volume_name, true);  // done, but for its records
  // The claim first: between the answer about the volume and the removal there is nothing.
  const auto wanted = still_wanted(created, has_failed);
  if (!wanted.ok()) return failed(created, wanted.error());
  const auto volume = read_volume(world_, created.volume_name);
  if (!volume.ok()) return failed(created, volume.error());
  if (*wanted && !*volume) {
    log::debug("nothing is taken back: the API server knows of a claim that the cache does not");
    return Action::await_change(kRecheck);
  }
  if (is_in_use(created, *volume)) return clean_up(created.volume_name, false);
  Operation undo = created;
  undo.action = helperpod::HelperAction::kDelete;
  undo.attempt = 1;
  undo.user.clear();
  undo.group.clear();
  undo.perm.clear();
  const log::Scope fields({{"node", created.node}, {"path", created.path}});
  log::info("removing the directory of a volume that will not come to be");
  return remove_directory(undo, false);
}

/// The cache of claims may be behind the one of helper pods, and behind another leader's where
/// somebody took the lease away: a claim that it does not know is not gone, and the directory that
/// seems useless is about to be a volume's. What the cache will show then is waited for.
Result<bool> Undo::still_wanted(const Operation& created, bool has_failed) {
  const auto found = read_claim(world_, created.claim);
  if (!found.ok()) return found.error();
  const auto& claim = *found;
  if (!claim || claim->meta.uid != created.owner_uid) return false;
  if (claim->volume_name == created.volume_name) return true;
  if (has_failed && claim->meta.deleting()) return false;  // it is not tried again
  const auto storage_class = world_.classes.get({"", claim->class_name()});
  return should_provision(*claim, storage_class.get(), world_.provisioner_name) &&
         selected_node(*claim) == created.node;
}

/// Whether the volume of the operation, as the API server has it, or another one in the cache
/// records the path: then it is not ours to remove.
bool Undo::is_in_use(const Operation& operation,
                     const std::optional<k8s::PersistentVolume>& volume) {
  if (volume && shares_directory(*volume, operation, world_.nodes)) return true;
  const auto other =
      overlapping_volume(world_.volumes, world_.nodes, operation, world_.provisioner_name, {});
  if (other == nullptr) return false;
  const log::Scope fields({{"path", operation.path}, {"other", other->meta.name}});
  log::warn("directory left in place: it overlaps another volume");
  return true;
}

Action Undo::go_on(const Operation& recorded) { return remove_directory(recorded, true); }

Action Undo::remove_directory(Operation undo, bool is_recorded) {
  const std::string key = undo_key(undo.volume_name);
  Attempt attempt = attempts_.get(key);
  if (const auto left = attempts_.held(attempt, {})) return Action::await_change(*left);
  if (!undo.node.empty()) {
    const auto gone = node_is_gone(world_, undo.node);
    if (!gone.ok()) return failed(undo, gone.error());
    if (*gone) {
      remember(undo);
      return clean_up(undo.volume_name, true);
    }
  }
  if (attempt.number >= undo.attempt) {
    undo.attempt = attempt.number + 1;
    is_recorded = false;
    // Time has passed since the API server was asked.
    const auto volume = read_volume(world_, undo.volume_name);
    if (!volume.ok()) return failed(undo, volume.error());
    if (is_in_use(undo, *volume)) return clean_up(undo.volume_name, true);
  }
  const auto reached = world_.executor.advance(undo, is_recorded);
  if (!reached.ok()) return failed(undo, reached.error());
  const auto& progress = *reached;
  if (!progress) return Action::await_change(kRecheck);
  world_.operations.progressed(Work::kUndo, undo, step_of(*progress), progress->message);
  switch (progress->state) {
    case Progress::State::kRunning:
      return Action::await_change(kRecheck);
    case Progress::State::kSucceeded:
      // Its records may stay in the cache a while longer than it takes: it must not begin again.
      remember(undo);
      return clean_up(undo.volume_name, true);
    case Progress::State::kFailed:
      break;
  }
  attempt.number = undo.attempt;
  const Duration wait = attempts_.wait_after(attempt.number);
  attempt.hold_until = world_.clock.now() + wait;
  attempts_.set(key, attempt);
  count_failure(undo, progress->reason, progress->message);
  world_.events.event({.kind = "PersistentVolumeClaim",
                       .api_version = "v1",
                       .ns = undo.claim.ns,
                       .name = undo.claim.name,
                       .uid = undo.owner_uid},
                      k8s::EventType::kWarning, kProvisioningCleanupFailed,
                      "Error cleaning provisioned volume for claim " + undo.claim.to_string() +
                          ": " + progress->message);
  const log::Scope fields({{"node", undo.node}, {"path", undo.path}});
  log::warn("directory cannot be removed yet, attempt {}: {}", undo.attempt,
            first_line(progress->message));
  return Action::await_change(wait);
}

Action Undo::clean_up(std::string_view volume_name, bool undo_too) {
  // The create operation first: as long as anything is recorded, the undo can be recognised.
  const auto created =
      world_.executor.clean_up(helperpod::HelperAction::kCreate, volume_name, When::kNow);
  if (!created.ok()) return Action::retry();
  if (!*created) return Action::await_change(kRecheck);
  if (undo_too) {
    const auto undone =
        world_.executor.clean_up(helperpod::HelperAction::kDelete, volume_name, When::kNow);
    if (!undone.ok()) return Action::retry();
    if (!*undone) return Action::await_change(kRecheck);
  }
  world_.operations.succeeded(Work::kUndo, volume_name, {});
  forget(volume_name);
  return Action::done();
}

void Undo::count_failure(const Operation& operation, std::string reason,
                         const std::string& message) {
  world_.operations.failed({.work = Work::kUndo,
                            .volume = operation.volume_name,
                            .claim = operation.claim,
                            .node = operation.node,
                            .storage_class = operation.storage_class,
                            .reason = std::move(reason),
                            .message = message});
}

Action Undo::failed(const Operation& operation, const Error& error) {
  if (error.is(ErrorCode::kCancelled)) return Action::done();
  count_failure(operation, reason_of(error), error.message);
  const log::Scope fields({{"node", operation.node}, {"path", operation.path}});
  log::warn("taking back a create operation is tried again soon: {}", error.message);
  return Action::retry();
}

}  // namespace lpp::provisioner
