#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "helperpod/operation.h"

namespace lpp::helperpod {

/// Does operations on directories of nodes. The reconcilers know nothing else about how: helper
/// pods are one way, an agent on each node can be another. Passive: work goes on outside, each call
/// is one short pass that never waits for it; the owner is woken (by the caller's handlers) when
/// something changed. All calls are safe to repeat. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  /// The operation recorded for this volume, running or ended, as far as the (possibly stale) cache
  /// knows. nullopt = none. kConflict when something that is not ours stands in its place.
  virtual Result<std::optional<Operation>> recorded(HelperAction action,
                                                    std::string_view volume_name) = 0;

  /// Starts the operation unless it is already recorded, and says how it stands. Something recorded
  /// for another owner, node or path, or being removed, is cleaned away first (kRunning until
  /// then).
  virtual Result<Progress> ensure(const Operation& operation) = 0;

  /// Removes what ensure() left behind for this volume, if anything; true when nothing is left.
  virtual Result<bool> clean_up(HelperAction action, std::string_view volume_name) = 0;
};

}  // namespace lpp::helperpod
