#pragma once

#include "helperpod/operation.h"
#include "provisioner/action.h"
#include "provisioner/attempts.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// Takes back a create operation whose volume will not come to be: its claim is gone or moved to
/// another node. The directory may exist, so a delete operation runs on the same node and path; the
/// create operation's record stays until that has succeeded. It is begun only when the API server
/// itself says so of the claim, for the caches may be behind; once begun it is always finished. All
/// methods are one short step, safe to repeat, and never touch a path that a volume records.
class Undo {
 public:
  Undo(World& world, Attempts& attempts) : world_(world), attempts_(attempts) {}

  /// True for a delete operation that belongs to an undo, not to a released volume.
  static bool is_undo(const helperpod::Operation& operation);

  /// The undo begun earlier for this volume, if one is recorded.
  Result<std::optional<helperpod::Operation>> begun(std::string_view volume_name);

  /// One step; done() when nothing is left of the operation. A helper pod that has not started yet
  /// is removed at once with `at_once`; otherwise it is waited for, which leaves no doubt about
  /// what it did.
  Action step(const helperpod::Operation& created, bool at_once = false);
  /// The same for an operation whose record is gone: its helper pod was removed by somebody.
  Action take_back(const helperpod::Operation& created, bool has_failed = false);
  /// Goes on with an undo that is already recorded.
  Action go_on(const helperpod::Operation& undo);

  /// A create operation that has started, for the case that somebody removes its helper pod: then
  /// nothing in the cluster says any more that there may be a directory. This memory ends with the
  /// process; the helper pod is the record that does not.
  void remember(const helperpod::Operation& created);
  /// Nothing is to be taken back any more. Also for a volume of which nothing is recorded or
  /// lost(): what an earlier process took back may just have gone.
  void forget(std::string_view volume_name);
  /// What was remembered and not yet taken back, or the undo that did so while the cache may still
  /// show its records, for take_back(); nullptr = nothing.
  std::shared_ptr<const helperpod::Operation> lost(std::string_view volume_name) const;

 private:
  /// Begins the undo, or follows the one that is recorded.
  Action remove_directory(helperpod::Operation undo, bool is_recorded);
  Result<bool> still_wanted(const helperpod::Operation& created, bool has_failed);
  bool is_in_use(const helperpod::Operation& operation,
                 const std::optional<k8s::PersistentVolume>& volume);
  Action clean_up(std::string_view volume_name, bool undo_too);
  void count_failure(const helperpod::Operation& operation, std::string reason,
                     const std::string& message);
  Action failed(const helperpod::Operation& operation, const Error& error);

  World& world_;
  Attempts& attempts_;
};

}  // namespace lpp::provisioner
