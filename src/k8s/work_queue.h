#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/histogram.h"
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

/// What has passed through a queue, by client-go's definitions. Thread-safe; outlives the queue.
struct WorkQueueStats {
  static constexpr std::array<double, 12> kBounds{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                                  1e-2, 1e-1, 1,    10,   100,  1000};
  std::atomic<std::uint64_t> adds = 0;
  std::atomic<std::uint64_t> retries = 0;
  Histogram waited{kBounds};  // from added to handed out
  Histogram worked{kBounds};  // from handed out to done
};

/// How a queue stands.
struct WorkQueueState {
  std::size_t ready = 0;
  std::size_t delayed = 0;
  std::size_t in_work = 0;
  Duration work_so_far{};      // of all keys in work together
  Duration longest_work{};     // of the key that is longest in work
  Duration longest_waiting{};  // of the keys that are next
  Duration since_last_get{};   // since a key was handed out, or the queue was made
};

/// Queue of keys with client-go's contract: fair (first come, first served), stingy (a key waiting
/// twice is handed out once), many producers and consumers, and a key is never with two consumers
/// at once: added while in work, it comes again after done(). Of several due times of a key only
/// the earliest counts: whoever gets the key decides anew. Beyond that contract keys may be urgent:
/// they are handed out before the others, among themselves in the order they came. Thread-safe.
template <typename Key, typename Hash = std::hash<Key>>
class WorkQueue {
 public:
  explicit WorkQueue(Clock& clock, BackoffPolicy policy = {}, WorkQueueStats* stats = nullptr)
      : clock_(clock), policy_(policy), stats_(stats), last_get_(clock.now()) {}

  void add(const Key& key);
  /// Urgent until it is handed out. Whoever adds urgent keys without end starves the others.
  void add_urgent(const Key& key);
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

  /// For a key in work: since when it had been waiting when it was handed out.
  TimePoint waiting_since(const Key& key) const;
  WorkQueueState state() const;

 private:
  using Delayed = std::multimap<TimePoint, Key>;
  struct Waiting {
    TimePoint since;
    bool urgent = false;
  };
  struct InWork {
    TimePoint added;
    TimePoint taken;
  };

  void make_ready(const Key& key, bool urgent = false) LPP_REQUIRES(mutex_);
  bool none_ready() const LPP_REQUIRES(mutex_) { return urgent_.empty() && ready_.empty(); }
  /// Lets one consumer that waits look again.
  void wake() LPP_REQUIRES(mutex_) { (idle_ > 0 ? changed_ : due_changed_).notify_one(); }
  void make_due_keys_ready() LPP_REQUIRES(mutex_);
  /// True when the key will come later than `due`, or not at all.
  bool improves(const Key& key, TimePoint due) const LPP_REQUIRES(mutex_);
  void cancel_delay(const Key& key) LPP_REQUIRES(mutex_);

  Clock& clock_;
  const BackoffPolicy policy_;
  WorkQueueStats* const stats_;  // may be null

  mutable Mutex mutex_;
  // Of the consumers that wait one waits for the next due time (timed_, due_changed_), so that the
  // others sleep until there is a key (idle_, changed_).
  CondVar changed_;
  CondVar due_changed_;
  int idle_ LPP_GUARDED_BY(mutex_) = 0;
  bool timed_ LPP_GUARDED_BY(mutex_) = false;
  bool shutdown_ LPP_GUARDED_BY(mutex_) = false;
  TimePoint last_get_ LPP_GUARDED_BY(mutex_);
  // dirty_: keys that must be worked on, since when. processing_: keys that consumers have. urgent_
  // and ready_: the order of the keys in dirty_ that are not in processing_, each once. delayed_
  // and due_ hold the same keys, none of which is in dirty_: being ready now is the earliest due
  // time there is.
  std::deque<Key> urgent_ LPP_GUARDED_BY(mutex_);
  std::deque<Key> ready_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<Key, Waiting, Hash> dirty_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<Key, InWork, Hash> processing_ LPP_GUARDED_BY(mutex_);
  Delayed delayed_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<Key, typename Delayed::iterator, Hash> due_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<Key, int, Hash> failures_ LPP_GUARDED_BY(mutex_);
};

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::add(const Key& key) {
  MutexLock lock(mutex_);
  if (shutdown_) return;
  make_ready(key);
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::add_urgent(const Key& key) {
  MutexLock lock(mutex_);
  if (shutdown_) return;
  make_ready(key, true);
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::add_after(const Key& key, Duration delay) {
  if (delay <= Duration::zero()) return add(key);
  const TimePoint now = clock_.now();
  const TimePoint due = delay < TimePoint::max() - now ? now + delay : TimePoint::max();
  MutexLock lock(mutex_);
  if (shutdown_ || !improves(key, due)) return;
  cancel_delay(key);
  const auto it = delayed_.emplace(due, key);
  due_.emplace(key, it);
  // Somebody has to wait for the new earliest time.
  if (it == delayed_.begin()) (timed_ ? due_changed_ : changed_).notify_one();
}

template <typename Key, typename Hash>
Duration WorkQueue<Key, Hash>::add_rate_limited(const Key& key) {
  int exponent = 0;
  {
    MutexLock lock(mutex_);
    exponent = failures_[key]++;
  }
  if (stats_ != nullptr) stats_->retries.fetch_add(1, std::memory_order_relaxed);
  // Doubled step by step: a shift would overflow long before the cap.
  Duration delay = std::min(policy_.base, policy_.cap);
  for (int i = 0; i < exponent && delay < policy_.cap; ++i) {
    delay = delay > policy_.cap / 2 ? policy_.cap : delay * 2;
  }
  const double factor = 1.0 + policy_.jitter * random_unit();
  delay = std::chrono::duration_cast<Duration>(delay * factor);
  add_after(key, delay);
  return delay;
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::forget(const Key& key) {
  MutexLock lock(mutex_);
  failures_.erase(key);
}

template <typename Key, typename Hash>
int WorkQueue<Key, Hash>::failures(const Key& key) const {
  MutexLock lock(mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

template <typename Key, typename Hash>
std::optional<Key> WorkQueue<Key, Hash>::get() {
  MutexLock lock(mutex_);
  while (true) {
    if (shutdown_) return std::nullopt;
    make_due_keys_ready();
    if (!none_ready()) break;
    if (timed_ || delayed_.empty()) {
      ++idle_;
      clock_.wait_until(changed_, mutex_, TimePoint::max());
      --idle_;
    } else {
      timed_ = true;
      clock_.wait_until(due_changed_, mutex_, delayed_.begin()->first);
      timed_ = false;
    }
  }
  std::deque<Key>& line = urgent_.empty() ? ready_ : urgent_;
  Key key = std::move(line.front());
  line.pop_front();
  const auto dirty = dirty_.find(key);
  const InWork work{.added = dirty->second.since, .taken = clock_.now()};
  last_get_ = work.taken;
  dirty_.erase(dirty);
  processing_.emplace(key, work);
  if (stats_ != nullptr) stats_->waited.observe(work.taken - work.added);
  // This consumer no longer waits: another one takes over what is ready or the next due time.
  if (!none_ready()) {
    wake();
  } else if (!timed_ && !delayed_.empty()) {
    changed_.notify_one();
  }
  return key;
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::done(const Key& key) {
  MutexLock lock(mutex_);
  const auto it = processing_.find(key);
  if (it == processing_.end()) return;
  if (stats_ != nullptr) stats_->worked.observe(clock_.now() - it->second.taken);
  processing_.erase(it);
  if (shutdown_) return;
  if (const auto dirty = dirty_.find(key); dirty != dirty_.end()) {
    (dirty->second.urgent ? urgent_ : ready_).push_back(key);
    wake();
  }
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::shutdown() {
  MutexLock lock(mutex_);
  shutdown_ = true;
  urgent_.clear();
  ready_.clear();
  dirty_.clear();
  delayed_.clear();
  due_.clear();
  changed_.notify_all();
  due_changed_.notify_all();
}

template <typename Key, typename Hash>
std::size_t WorkQueue<Key, Hash>::size() const {
  MutexLock lock(mutex_);
  return urgent_.size() + ready_.size();
}

template <typename Key, typename Hash>
TimePoint WorkQueue<Key, Hash>::waiting_since(const Key& key) const {
  MutexLock lock(mutex_);
  const auto it = processing_.find(key);
  return it == processing_.end() ? clock_.now() : it->second.added;
}

template <typename Key, typename Hash>
WorkQueueState WorkQueue<Key, Hash>::state() const {
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  WorkQueueState state{.ready = urgent_.size() + ready_.size(),
                       .delayed = delayed_.size(),
                       .in_work = processing_.size(),
                       .since_last_get = now - last_get_};
  for (const auto& [key, work] : processing_) {
    state.work_so_far += now - work.taken;
    state.longest_work = std::max(state.longest_work, now - work.taken);
  }
  for (const auto* line : {&urgent_, &ready_}) {
    if (line->empty()) continue;
    state.longest_waiting = std::max(state.longest_waiting, now - dirty_.at(line->front()).since);
  }
  return state;
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::make_ready(const Key& key, bool urgent) {
  cancel_delay(key);
  const auto [dirty, is_new] =
      dirty_.try_emplace(key, Waiting{.since = clock_.now(), .urgent = urgent});
  if (!is_new) {
    if (!urgent || std::exchange(dirty->second.urgent, true)) return;
    // It changes lines, unless it is in work and in none.
    if (std::erase(ready_, key) > 0) urgent_.push_back(key);
    return;
  }
  if (stats_ != nullptr) stats_->adds.fetch_add(1, std::memory_order_relaxed);
  if (processing_.contains(key)) return;
  (urgent ? urgent_ : ready_).push_back(key);
  wake();
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::make_due_keys_ready() {
  const TimePoint now = clock_.now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    make_ready(Key(delayed_.begin()->second));
  }
}

template <typename Key, typename Hash>
bool WorkQueue<Key, Hash>::improves(const Key& key, TimePoint due) const {
  if (dirty_.contains(key)) return false;
  const auto it = due_.find(key);
  return it == due_.end() || due < it->second->first;
}

template <typename Key, typename Hash>
void WorkQueue<Key, Hash>::cancel_delay(const Key& key) {
  const auto it = due_.find(key);
  if (it == due_.end()) return;
  delayed_.erase(it->second);
  due_.erase(it);
}

}  // namespace lpp::k8s
