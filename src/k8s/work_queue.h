// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  /// Who has failed more than kFreeFailures times is not handed out again before this, whatever
  /// adds him: a change may have healed the cause, but somebody may also change the object in a
  /// loop.
  Duration least = Duration::zero();
  static constexpr int kFreeFailures = 2;
};

/// All keys take turns as one: those of a queue that nobody shares.
struct NoNamespace {
  template <typename Key>
  std::string_view operator()(const Key& /*key*/) const {
    return {};
  }
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
/// the earliest counts: whoever gets the key decides anew. Beyond that contract namespaces take
/// turns, one key each, however many keys wait in one of them and however often they come again;
/// and one namespace may be kept from having all consumers. Of a namespace's keys the urgent ones
/// are handed out before the others, either in the order they came; but if others wait, one of them
/// follows kUrgentInARow urgent ones. Thread-safe. `NamespaceOf` gives the namespace of a key as a
/// view of the key's text.
template <typename Key, typename Hash = std::hash<Key>, typename NamespaceOf = NoNamespace>
class WorkQueue {
 public:
  /// At most `most_of_namespace` keys of one namespace are in work at once.
  explicit WorkQueue(Clock& clock, BackoffPolicy policy = {}, WorkQueueStats* stats = nullptr,
                     std::size_t most_of_namespace = std::numeric_limits<std::size_t>::max())
      : clock_(clock),
        policy_(policy),
        stats_(stats),
        most_of_namespace_(most_of_namespace),
        last_get_(clock.now()) {}

  static constexpr int kUrgentInARow = 8;

  void add(const Key& key);
  /// Urgent until it is handed out.
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
  struct Failing {
    int count = 0;
    TimePoint last{};
  };
  /// The keys of a namespace that are ready.
  struct Line {
    std::deque<Key> urgent{};
    std::deque<Key> ready{};
    std::size_t in_work = 0;
    int urgent_in_a_row = 0;
    bool has_turn = false;  // it is in turns_

    bool empty() const { return urgent.empty() && ready.empty(); }
  };
  using Lines = std::unordered_map<std::string, Line>;
  using Entry = typename Lines::value_type;  // stays where it is until it is erased

  /// Lines that nobody waits in are kept up to this, since the next key is likely to come soon.
  static constexpr std::size_t kKeptLines = 64;

  /// Now, unless its failures hold it back.
  void add_now(const Key& key, bool urgent);
  /// Until a key may be handed out. False: the queue is shut down.
  bool wait_for_turn() LPP_REQUIRES(mutex_);
  /// Due now, whenever else it was: into dirty_, and into its line if nobody has it in work.
  void make_ready(const Key& key, bool urgent = false) LPP_REQUIRES(mutex_);
  /// Puts the key in its line.
  void push(const Key& key, bool urgent) LPP_REQUIRES(mutex_);
  /// Takes the key whose turn it is out of its line.
  Key pop() LPP_REQUIRES(mutex_);
  Entry& line_of(const Key& key) LPP_REQUIRES(mutex_) {
    return *lines_.try_emplace(std::string(namespace_of_(key))).first;
  }
  /// Gives the line a turn if it may have one. True when it had none before.
  bool offer(Entry& entry) LPP_REQUIRES(mutex_);
  /// How long the key's failures still hold it back.
  Duration held_back(const Key& key, TimePoint now) const LPP_REQUIRES(mutex_);
  /// Later, unless it comes by then anyway.
  void add_at(const Key& key, TimePoint due) LPP_REQUIRES(mutex_);
  /// Lets one consumer that waits look again.
  void wake() LPP_REQUIRES(mutex_) { (idle_ > 0 ? changed_ : due_changed_).notify_one(); }
  void make_due_keys_ready() LPP_REQUIRES(mutex_);
  /// True when the key will come later than `due`, or not at all.
  bool improves(const Key& key, TimePoint due) const LPP_REQUIRES(mutex_);
  void cancel_delay(const Key& key) LPP_REQUIRES(mutex_);

  Clock& clock_;
  const BackoffPolicy policy_;
  WorkQueueStats* const stats_;  // may be null
  const std::size_t most_of_namespace_;
  const NamespaceOf namespace_of_{};

  mutable Mutex mutex_;
  // Of the consumers that wait one waits for the next due time (timed_, due_changed_), so that the
  // others sleep until there is a key (idle_, changed_).
  CondVar changed_;
  CondVar due_changed_;
  int idle_ LPP_GUARDED_BY(mutex_) = 0;
  bool timed_ LPP_GUARDED_BY(mutex_) = false;
  bool shutdown_ LPP_GUARDED_BY(mutex_) = false;
  TimePoint last_get_ LPP_GUARDED_BY(mutex_);

  // A key that is to come is in delayed_ or in dirty_, and one that is in work in processing_; both
  // at once when it was added meanwhile.

  // Keys that wait for a due time, the same in both. None is in dirty_: to be ready now is the
  // earliest due time there is. Kept by add_at() and cancel_delay().
  Delayed delayed_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<Key, typename Delayed::iterator, Hash> due_ LPP_GUARDED_BY(mutex_);
  // Keys that must be worked on, since when.
  std::unordered_map<Key, Waiting, Hash> dirty_ LPP_GUARDED_BY(mutex_);
  // Keys that consumers have, between get() and done().
  std::unordered_map<Key, InWork, Hash> processing_ LPP_GUARDED_BY(mutex_);

  // The order of the keys in dirty_ that are not in processing_, each once, ready_ together. Kept
  // by push() and pop().
  Lines lines_ LPP_GUARDED_BY(mutex_);
  std::size_t ready_ LPP_GUARDED_BY(mutex_) = 0;
  // The lines of which a key may be handed out, the next one first. Kept by offer() and pop().
  std::deque<Entry*> turns_ LPP_GUARDED_BY(mutex_);

  // Keys that have failed, wherever they are, until forget().
  std::unordered_map<Key, Failing, Hash> failures_ LPP_GUARDED_BY(mutex_);
};

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::add(const Key& key) {
  add_now(key, false);
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::add_urgent(const Key& key) {
  add_now(key, true);
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::add_now(const Key& key, bool urgent) {
  MutexLock lock(mutex_);
  if (shutdown_) return;
  const TimePoint now = clock_.now();
  if (const Duration wait = held_back(key, now); wait > Duration::zero()) {
    return add_at(key, now + wait);
  }
  make_ready(key, urgent);
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::add_after(const Key& key, Duration delay) {
  if (delay <= Duration::zero()) return add(key);
  const TimePoint now = clock_.now();
  const TimePoint due = delay < TimePoint::max() - now ? now + delay : TimePoint::max();
  MutexLock lock(mutex_);
  if (!shutdown_) add_at(key, due);
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::add_at(const Key& key, TimePoint due) {
  if (!improves(key, due)) return;
  cancel_delay(key);
  const auto it = delayed_.emplace(due, key);
  due_.emplace(key, it);
  // Somebody has to wait for the new earliest time.
  if (it == delayed_.begin()) (timed_ ? due_changed_ : changed_).notify_one();
}

template <typename Key, typename Hash, typename NamespaceOf>
Duration WorkQueue<Key, Hash, NamespaceOf>::add_rate_limited(const Key& key) {
  int exponent = 0;
  {
    MutexLock lock(mutex_);
    Failing& failing = failures_[key];
    exponent = failing.count++;
    failing.last = clock_.now();
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

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::forget(const Key& key) {
  MutexLock lock(mutex_);
  failures_.erase(key);
}

template <typename Key, typename Hash, typename NamespaceOf>
int WorkQueue<Key, Hash, NamespaceOf>::failures(const Key& key) const {
  MutexLock lock(mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second.count;
}

template <typename Key, typename Hash, typename NamespaceOf>
std::optional<Key> WorkQueue<Key, Hash, NamespaceOf>::get() {
  MutexLock lock(mutex_);
  if (!wait_for_turn()) return std::nullopt;
  Key key = pop();
  const auto dirty = dirty_.find(key);
  const InWork work{.added = dirty->second.since, .taken = clock_.now()};
  last_get_ = work.taken;
  dirty_.erase(dirty);
  processing_.emplace(key, work);
  if (stats_ != nullptr) stats_->waited.observe(work.taken - work.added);
  // This consumer no longer waits: another one takes over what is ready or the next due time.
  if (!turns_.empty()) {
    wake();
  } else if (!timed_ && !delayed_.empty()) {
    changed_.notify_one();
  }
  return key;
}

template <typename Key, typename Hash, typename NamespaceOf>
bool WorkQueue<Key, Hash, NamespaceOf>::wait_for_turn() {
  while (!shutdown_) {
    make_due_keys_ready();
    if (!turns_.empty()) return true;
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
  return false;
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::done(const Key& key) {
  MutexLock lock(mutex_);
  const auto it = processing_.find(key);
  if (it == processing_.end()) return;
  if (stats_ != nullptr) stats_->worked.observe(clock_.now() - it->second.taken);
  const auto mine = lines_.find(std::string(namespace_of_(it->first)));  // where it was counted
  processing_.erase(it);
  if (shutdown_) return;
  Line& line = mine->second;
  --line.in_work;
  if (const auto dirty = dirty_.find(key); dirty != dirty_.end()) {
    const TimePoint now = clock_.now();
    if (const Duration wait = held_back(key, now); wait > Duration::zero()) {
      dirty_.erase(dirty);
      add_at(key, now + wait);
    } else {
      push(dirty->first, dirty->second.urgent);
    }
  }
  if (offer(*mine)) wake();
  if (lines_.size() > kKeptLines && line.empty() && line.in_work == 0) lines_.erase(mine);
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::shutdown() {
  MutexLock lock(mutex_);
  shutdown_ = true;
  turns_.clear();
  lines_.clear();
  ready_ = 0;
  dirty_.clear();
  delayed_.clear();
  due_.clear();
  changed_.notify_all();
  due_changed_.notify_all();
}

template <typename Key, typename Hash, typename NamespaceOf>
std::size_t WorkQueue<Key, Hash, NamespaceOf>::size() const {
  MutexLock lock(mutex_);
  return ready_;
}

template <typename Key, typename Hash, typename NamespaceOf>
TimePoint WorkQueue<Key, Hash, NamespaceOf>::waiting_since(const Key& key) const {
  MutexLock lock(mutex_);
  const auto it = processing_.find(key);
  return it == processing_.end() ? clock_.now() : it->second.added;
}

template <typename Key, typename Hash, typename NamespaceOf>
WorkQueueState WorkQueue<Key, Hash, NamespaceOf>::state() const {
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  WorkQueueState state{.ready = ready_,
                       .delayed = delayed_.size(),
                       .in_work = processing_.size(),
                       .since_last_get = now - last_get_};
  for (const auto& [key, work] : processing_) {
    state.work_so_far += now - work.taken;
    state.longest_work = std::max(state.longest_work, now - work.taken);
  }
  for (const auto& [ns, line] : lines_) {
    for (const auto* keys : {&line.urgent, &line.ready}) {
      if (keys->empty()) continue;
      state.longest_waiting = std::max(state.longest_waiting, now - dirty_.at(keys->front()).since);
    }
  }
  return state;
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::make_ready(const Key& key, bool urgent) {
  cancel_delay(key);
  const auto [dirty, is_new] =
      dirty_.try_emplace(key, Waiting{.since = clock_.now(), .urgent = urgent});
  if (!is_new) {
    if (!urgent || std::exchange(dirty->second.urgent, true)) return;
    // It changes places, unless it is in work and in no line.
    if (processing_.contains(key)) return;
    Line& line = line_of(dirty->first).second;
    if (std::erase(line.ready, key) > 0) line.urgent.push_back(dirty->first);
    return;
  }
  if (stats_ != nullptr) stats_->adds.fetch_add(1, std::memory_order_relaxed);
  if (!processing_.contains(key)) push(dirty->first, urgent);
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::push(const Key& key, bool urgent) {
  Entry& entry = line_of(key);
  (urgent ? entry.second.urgent : entry.second.ready).push_back(key);
  ++ready_;
  offer(entry);
  if (entry.second.has_turn) wake();
}

template <typename Key, typename Hash, typename NamespaceOf>
Key WorkQueue<Key, Hash, NamespaceOf>::pop() {
  Entry& entry = *turns_.front();
  turns_.pop_front();
  Line& line = entry.second;
  line.has_turn = false;
  const bool is_urgent =
      !line.urgent.empty() && (line.ready.empty() || line.urgent_in_a_row < kUrgentInARow);
  line.urgent_in_a_row = is_urgent && !line.ready.empty() ? line.urgent_in_a_row + 1 : 0;
  std::deque<Key>& keys = is_urgent ? line.urgent : line.ready;
  Key key = std::move(keys.front());
  keys.pop_front();
  --ready_;
  ++line.in_work;
  offer(entry);  // behind all others
  return key;
}

template <typename Key, typename Hash, typename NamespaceOf>
bool WorkQueue<Key, Hash, NamespaceOf>::offer(Entry& entry) {
  Line& line = entry.second;
  if (line.has_turn || line.empty() || line.in_work >= most_of_namespace_) return false;
  line.has_turn = true;
  turns_.push_back(&entry);
  return true;
}

template <typename Key, typename Hash, typename NamespaceOf>
Duration WorkQueue<Key, Hash, NamespaceOf>::held_back(const Key& key, TimePoint now) const {
  if (policy_.least <= Duration::zero()) return Duration::zero();
  const auto it = failures_.find(key);
  if (it == failures_.end() || it->second.count <= BackoffPolicy::kFreeFailures) {
    return Duration::zero();
  }
  return it->second.last + policy_.least - now;
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::make_due_keys_ready() {
  const TimePoint now = clock_.now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    make_ready(Key(delayed_.begin()->second));
  }
}

template <typename Key, typename Hash, typename NamespaceOf>
bool WorkQueue<Key, Hash, NamespaceOf>::improves(const Key& key, TimePoint due) const {
  if (dirty_.contains(key)) return false;
  const auto it = due_.find(key);
  return it == due_.end() || due < it->second->first;
}

template <typename Key, typename Hash, typename NamespaceOf>
void WorkQueue<Key, Hash, NamespaceOf>::cancel_delay(const Key& key) {
  const auto it = due_.find(key);
  if (it == due_.end()) return;
  delayed_.erase(it->second);
  due_.erase(it);
}

}  // namespace lpp::k8s
