// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"

namespace lpp::k8s {

/// Idle connections, last used first: a few stay busy and the rest age out. Its size is bounded by
/// the number of calls at once. Thread-safe. Connections are destroyed outside the lock (that may
/// write to the network).
template <typename Connection>
class ClientPool {
 public:
  /// Connections idle for longer than `max_idle` are not handed out.
  ClientPool(Clock& clock, Duration max_idle) : clock_(clock), max_idle_(max_idle) {}

  /// The most recently used connection for which `usable(const Connection&)` holds, or nothing.
  /// Those that are too old or not usable are dropped.
  template <typename Usable>
  std::unique_ptr<Connection> take(const Usable& usable) {
    std::vector<Idle> dropped = take_aged();
    while (true) {
      std::unique_ptr<Connection> candidate;
      {
        MutexLock lock(mutex_);
        if (idle_.empty()) return nullptr;
        candidate = std::move(idle_.back().connection);
        idle_.pop_back();
      }
      if (usable(std::as_const(*candidate))) return candidate;
    }
  }

  void give_back(std::unique_ptr<Connection> connection) {
    const std::vector<Idle> dropped = take_aged();
    MutexLock lock(mutex_);
    idle_.push_back({clock_.now(), std::move(connection)});
  }

  void clear() {
    std::vector<Idle> dropped;
    MutexLock lock(mutex_);
    std::swap(dropped, idle_);
    lock.unlock();
  }

  std::size_t size() const {
    MutexLock lock(mutex_);
    return idle_.size();
  }

 private:
  struct Idle {
    TimePoint since;
    std::unique_ptr<Connection> connection;
  };

  std::vector<Idle> take_aged() {
    std::vector<Idle> aged;
    const TimePoint now = clock_.now();
    MutexLock lock(mutex_);
    auto fresh = idle_.begin();  // the oldest are in front
    while (fresh != idle_.end() && now - fresh->since >= max_idle_) ++fresh;
    aged.insert(aged.end(), std::make_move_iterator(idle_.begin()), std::make_move_iterator(fresh));
    idle_.erase(idle_.begin(), fresh);
    return aged;
  }

  Clock& clock_;
  const Duration max_idle_;
  mutable Mutex mutex_;
  std::vector<Idle> idle_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::k8s
