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
  /// What recorded() has told of (`is_recorded`) is only followed: nullopt, and nothing is started,
  /// when it is not recorded any more. The change that took it away wakes the owner, who looks
  /// whether it is still wanted.
  virtual Result<std::optional<Progress>> advance(const Operation& operation, bool is_recorded) = 0;

  /// kWhenQuiet is for operations that are over for good, with a result that stands elsewhere: what
  /// they left is in nobody's way and can wait while others wait for their volumes.
  enum class When { kNow, kWhenQuiet };
  /// Removes what advance() left behind for this volume, if anything; true when nothing is left
  /// that the caller has to care for. What goes when it is quiet is not recorded() any more, unless
  /// it could not be removed then: the owner is woken, and the next call removes it now.
  virtual Result<bool> clean_up(HelperAction action, std::string_view volume_name, When when) = 0;
};

}  // namespace lpp::helperpod
