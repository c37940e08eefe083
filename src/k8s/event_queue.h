#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
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
/// leaves the API server to the work. Bounded, in total and per namespace. Not thread-safe.
class EventQueue {
 public:
  static constexpr std::size_t kMax = 4000;
  /// Less, so that nobody's objects alone use up all of it.
  static constexpr std::size_t kMaxOfNamespace = 1000;

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
  void done(const QueuedEvent& event) { free_place(event.report); }
  /// Empties it and returns how many reports were in it.
  std::size_t clear();

 private:
  using Events = std::list<QueuedEvent>;
  using Places = std::unordered_map<std::string, Events::iterator>;

  Events& list_of(const QueuedEvent& event);
  QueuedEvent remove(Events::iterator at);
  void free_place(const EventReport& report);
  double pace(TimePoint now) const;
  bool take_token();

  Clock& clock_;
  Events warnings_;
  Events normals_;
  Events again_;      // by the time when they are due
  Places waiting_;    // by identity, in any of them
  Places normal_of_;  // by object, in normals_
  std::size_t size_ = 0;
  std::unordered_map<std::string, std::size_t> of_namespace_;
  double tokens_ = 0;
  std::optional<TimePoint> refilled_;
  TimePoint last_normal_{};  // when one was recorded
};

}  // namespace lpp::k8s
