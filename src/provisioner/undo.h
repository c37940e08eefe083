#pragma once

#include "helperpod/operation.h"
#include "provisioner/action.h"
#include "provisioner/attempts.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// Takes back a create operation whose volume will not come to be: its claim is gone or moved to
/// another node. The directory may exist, so a delete operation runs on the same node and path; the
/// create operation's record stays until that has succeeded. Once begun it is always finished. All
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
  /// Goes on with an undo that is already recorded.
  Action go_on(const helperpod::Operation& undo);

 private:
  Action clean_up(std::string_view volume_name, bool undo_too);
  void count_failure(const helperpod::Operation& operation, std::string reason,
                     const std::string& message);
  Action failed(const helperpod::Operation& operation, const Error& error);

  World& world_;
  Attempts& attempts_;
};

}  // namespace lpp::provisioner
