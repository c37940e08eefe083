// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/sync.h"
#include "operation/executor.h"

namespace lpp::operation {

/// Whom an executor tells of changes, between its begin() and end(). Thread-safe. Calls of it may
/// run at the same time, and hold no lock.
class OwnerSlot {
 public:
  void set(Owner owner);
  /// Waits for the calls that run; none begins later. Not from within a call, which would wait for
  /// itself, and under no lock that a call may want.
  void clear();

  /// Calls `tell`, unless there is no owner.
  void call(const std::function<void(const Owner&)>& tell) const;
  void wake(const Operation& operation) const;

 private:
  class Call;

  mutable Mutex mutex_;
  mutable CondVar ended_;
  std::shared_ptr<const Owner> owner_ LPP_GUARDED_BY(mutex_);
  mutable std::size_t running_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::operation
