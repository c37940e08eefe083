// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "k8s/api_client.h"
#include "k8s/resource.h"
#include "k8s/value_tree.h"

namespace lpp::k8s {

struct ReflectorOptions {
  Resource resource;
  std::string ns{};  // "" = all namespaces
  std::string label_selector{};
  std::string field_selector{};
  bool metadata_only = false;  // the server leaves spec and status out
  int page_size = 250;         // of a list, at most: less where objects are large
  Projection projection{};     // what of the objects is read; empty = all
};

/// Receives a reflector's protocol: (list_begin list_item* list_end) and then any number of applied
/// and deleted, again a list after a relist. Called on the reflector's thread only; objects are
/// valid until the call returns.
class ReflectorSink {
 public:
  virtual ~ReflectorSink() = default;
  /// Whatever came of a list that had no end is void.
  virtual void list_begin() = 0;
  virtual void list_item(Value object) = 0;
  /// The list is complete: an object that was known and is not in it has been deleted.
  virtual void list_end() = 0;
  /// It is new or has changed, or is told once more in a state that is known.
  virtual void applied(Value object) = 0;
  /// With its last state.
  virtual void deleted(Value object) = 0;
};

/// Counters for metrics and tests; each may be read from any thread.
struct ReflectorStats {
  std::atomic<std::uint64_t> lists = 0;
  std::atomic<std::uint64_t> watches = 0;
  std::atomic<std::uint64_t> events = 0;
  std::atomic<std::uint64_t> failures = 0;
  /// When the server was last heard (a page, an event, a bookmark); min() = never.
  std::atomic<TimePoint> last_contact{TimePoint::min()};
  /// When the thread last got on, failures included; min() = it has not begun.
  std::atomic<TimePoint> last_progress{TimePoint::min()};
  /// Since when the thread has been in the sink with what arrived; max() = it is not.
  std::atomic<TimePoint> in_sink_since{TimePoint::max()};
};

/// List and watch as one explicit state machine (after kube-rs' kube_runtime::watcher and
/// client-go's Reflector; rules C3 and C4, except that every list is a consistent one, in
/// pages: the memory of a list is that of a page). step() runs on one thread only; stats() on
/// any.
class Reflector {
 public:
  // What a step goes on from, and where it leads:
  //   Empty     a list begins: Listing
  //   Listing   a page with a rest, or a rest that failed: Listing; the last page: Watching;
  //             a first page that failed, or a rest that has expired: Empty
  //   Watching  the stream ended or was cut, 429, or 5xx for a while: Watching;
  //             the version has expired, or anything else: Empty
  // From each of them list_since() leads to Empty, if the list there is or comes is too old.

  /// There is no list, and none has been begun.
  struct Empty {
    bool in_one_piece;  // after an expired continue token
  };
  /// The pages of a list are asked for, one a step.
  struct Listing {
    bool in_one_piece;           // all in one page
    std::string continue_token;  // "" = the first page
    bool begun;                  // the sink knows of this list
  };
  /// The list is complete; each step is a watch until its end.
  struct Watching {
    std::string resource_version;  // the last one seen: where the next watch begins
  };
  using State = std::variant<Empty, Listing, Watching>;

  Reflector(ApiClient& client, Clock& clock, ReflectorOptions options, ReflectorSink& sink);

  /// Repeats step() and its back-off until stopped (or the client is). Ends within milliseconds.
  void run(const std::stop_token& stop);

  /// One list page or one watch until its end. Returns how long to wait before the next step.
  Duration step(const std::stop_token& stop);

  /// Sees to it that a list begun at `since` or later comes: whatever is in progress ends, unless
  /// it is that list or comes after it. From any thread; returns at once.
  void list_since(TimePoint since);
  /// Whether the sink has all of a list begun at `since` or later. As every list is a consistent
  /// read, it then knows everything that had been written by `since`. From any thread.
  bool listed_since(TimePoint since) const {
    return listed_.load(std::memory_order_acquire) >= since;
  }

  const State& state() const { return state_; }
  const ReflectorStats& stats() const { return stats_; }

 private:
  /// From which state the step goes on, and what wakes it out of a wait.
  std::stop_token begin_step();

  Duration list_page(const std::stop_token& stop, const std::stop_token& wake);
  void begin_list();
  /// Delivers the items of the next page.
  Result<ListPage> request_page(Listing& listing, const std::stop_token& stop);
  void begin_once(Listing& listing);
  /// So that a page stays below some MiB, whatever the objects are.
  void adapt_page_size(const ListPage& page);
  Duration list_failed(const Error& error);

  Duration watch(const std::stop_token& stop, const std::stop_token& wake);
  /// Handles one frame; false ends the watch, with frame_error_.
  bool on_frame(std::string_view bytes);
  /// `lived`: how long the watch has lasted.
  Duration watch_failed(const Error& error, Duration lived);

  Duration next_backoff(const Error& error);
  /// Counts and logs the failure; returns `wait`.
  Duration report(std::string_view what, const Error& error, Duration wait);

  /// Notes that the server was heard; returns when.
  TimePoint note_contact();
  /// The same, and that the sink has what arrived.
  void enter_sink();
  void leave_sink();

  std::stop_token wake_token();

  ApiClient& client_;
  Clock& clock_;
  const ReflectorOptions options_;
  ReflectorSink& sink_;
  ReflectorStats stats_;

  std::atomic<TimePoint> listed_{TimePoint::min()};  // when the last complete list began
  Mutex mutex_;
  std::stop_source wake_ LPP_GUARDED_BY(mutex_);  // of the current step and the wait after it
  TimePoint wanted_ LPP_GUARDED_BY(mutex_) = TimePoint::min();  // no older list will do
  TimePoint began_ LPP_GUARDED_BY(mutex_) = TimePoint::min();   // the newest list

  // Used by the thread only.
  State state_;
  int page_size_;                     // of the next page
  bool expired_before_ = false;       // a 410 since the last good watch: the next one waits
  std::uint64_t frames_ = 0;          // in the current watch
  ValueTree frame_;                   // the last one
  std::optional<Error> frame_error_;  // what an ERROR frame said, or what is wrong with a frame
  int failures_in_a_row_ = 0;
  TimePoint last_failure_{};
};

}  // namespace lpp::k8s
