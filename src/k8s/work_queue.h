#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "base/strings.h"
#include "base/sync.h"

namespace lpp::k8s {

/// Back-off of add_rate_limited: base * 2^failures, at most cap, times a random factor in
/// [1, 1 + jitter).
struct BackoffPolicy {
  Duration base = std::chrono::seconds(15);
  Duration cap = std::chrono::seconds(1000);
  double jitter = 0.1;
};

/// Queue of keys with client-go's contract: fair (first come, first served), stingy (a key waiting
/// twice is handed out once), many producers and consumers, and a key is never with two consumers
/// at once: added while in work, it comes again after done(). Delayed keys keep the earliest due
/// time. Thread-safe.
template <typename Key, typename Hash = std::hash<Key>>
class WorkQueue {
 public:
  explicit WorkQueue(Clock& clock, BackoffPolicy policy = {}) : clock_(clock), policy_(policy) {}

  void add(const Key& key);
  void add_after(const Key& key, Duration delay);
  /// add_after with the key's own exponential back-off; returns the delay chosen.
  Duration add_rate_limited(const Key& key);
  /// Forgets the key's failures (not its place in the queue).
  void forget(const Key& key);
  int failures(const Key& key) const;

  /// Waits for a key that is due; nothing after shutdown. done() must follow for every key
  /// returned.
  std::optional<Key> get();
  void done(const Key& key);

  /// Ends all get() calls now; keys that wait are dropped (the work is level-triggered).
  void shutdown();

  /// Keys ready to be worked on (not delayed ones).
  std::size_t size() const;

 private:
  // Invariant: a key is in ready_ at most once, only if it is in dirty_ and not in processing_.
  Clock& clock_;
  const BackoffPolicy policy_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool shutdown_ LPP_GUARDED_BY(mutex_) = false;
  std::deque<Key> ready_ LPP_GUARDED_BY(mutex_);
  std::unordered_set<Key, Hash> dirty_ LPP_GUARDED_BY(mutex_);
  std::unordered_set<Key, Hash> processing_ LPP_GUARDED_BY(mutex_);
  std::multimap<TimePoint, Key> delayed_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<Key, TimePoint, Hash> due_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<Key, int, Hash> failures_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::k8s
