// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/token_bucket.h"
#include "k8s/event_correlator.h"

namespace lpp::k8s {

/// An Event on its way to the API server.
struct QueuedEvent {
  EventReport report;                     // as it was recorded
  std::optional<EventWrite> write{};      // what is to be stored, once that is decided
  std::optional<ObjectKey> created_as{};  // a create under that name may have succeeded
  int tries = 0;                          // that failed
  TimePoint due{};                        // of the next try

  /// The same happened again.
  void add(const EventReport& again);
};

/// Which Event goes next: Warnings first, then what is tried again, then Normal ones at a pace that
/// leaves the API server to the work. Among each of these namespaces take turns, and each has a
/// pace of its own: those of one with a flood wait, and hold up nobody else's. Bounded, in total
/// and per namespace. Not thread-safe.
class EventQueue {
 public:
  static constexpr std::size_t kMax = 4000;
  /// Less, so that nobody's objects alone use up all of it.
  static constexpr std::size_t kMaxOfNamespace = 1000;
  /// Events of a namespace that may go out at once, and then per second.
  static constexpr double kNamespaceBurst = 300;
  static constexpr double kNamespacePerSecond = 10;

  explicit EventQueue(Clock& clock) : clock_(clock) {}

  /// False when there is no place for it.
  bool add(EventReport report);
  /// The next one whose time has come; at once whatever there is when in a hurry. Its place is
  /// taken until put_back() or done().
  std::optional<QueuedEvent> take(bool hurry);
  /// When take() should be called again if nothing is added before.
  TimePoint next_take() const;
  /// To be tried again when it is due.
  void put_back(QueuedEvent event);
  /// The server takes no more Events of that one's namespace before then.
  void hold_namespace(const EventReport& report, TimePoint until);
  void done(const QueuedEvent& event) { free_place(event.report); }
  /// Empties it and returns how many reports were in it.
  std::size_t clear();

 private:
  using Events = std::list<QueuedEvent>;
  using Places = std::unordered_map<std::string, Events::iterator>;

  /// Of a namespace. It stays as long as it has places, or has used up some of its pace.
  struct Line {
    Events warnings{};
    Events normals{};
    Events again{};  // by the time when they are due
    TokenBucket pace{kNamespaceBurst, kNamespacePerSecond};
    TimePoint held_until = TimePoint::min();
    std::size_t places = 0;
    std::uint64_t turn = 0;  // when it came, or was served last

    Events& list_of(const QueuedEvent& event);
    bool may_send(TimePoint now) const { return now >= held_until && pace.has(now); }
    TimePoint next() const { return std::max(held_until, pace.next()); }
  };

  Line& line_of(const EventReport& report);
  /// The one of those lines whose turn it is, or nullptr.
  template <typename Has>
  Line* next_line(const Has& has);
  QueuedEvent take(Line& line, Events& list, bool hurry);
  QueuedEvent remove(Events::iterator at);
  void free_place(const EventReport& report);
  void drop_idle_lines();
  double pace(TimePoint now) const;
  bool take_token();

  Clock& clock_;
  std::map<std::string, Line> lines_;
  Places waiting_;    // by identity, in any list
  Places normal_of_;  // by object, among the Normal ones
  std::size_t size_ = 0;
  std::uint64_t last_turn_ = 0;
  double tokens_ = 0;  // of Normal Events
  std::optional<TimePoint> refilled_;
  TimePoint last_normal_{};  // when one was recorded
};

}  // namespace lpp::k8s
