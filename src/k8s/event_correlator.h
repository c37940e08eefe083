// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/clock.h"
#include "base/token_bucket.h"
#include "k8s/event_recorder.h"
#include "k8s/lru_map.h"

namespace lpp::k8s {

/// Something that was reported, `count` times between `first` and `last`.
struct EventReport {
  ObjectReference about{};
  EventType type = EventType::kNormal;
  std::string reason{};
  std::string message{};
  int count = 1;
  std::chrono::system_clock::time_point first{};
  std::chrono::system_clock::time_point last{};
  std::string ns{};  // whose share of what all namespaces have together it uses

  /// Equal for reports that are the same Event happening again.
  std::string identity() const;
};

/// An Event as it is to be stored.
struct EventWrite {
  EventReport event;            // with the message, count and times to store
  std::string key;              // of the correlator
  std::optional<ObjectKey> of;  // the stored Event to update; nothing: create one
};

/// Decides what becomes of an Event: a new object, a higher count of a stored one, part of a
/// combined one, or nothing (client-go's tools/record/events_cache.go; rules C7.2 and
/// C7.3). Memory is bounded, and one namespace cannot use up that of the others. One thread only.
class EventCorrelator {
 public:
  explicit EventCorrelator(Clock& clock, std::size_t capacity = 4096);

  /// Nothing when the object has had too many Events.
  std::optional<EventWrite> correlate(const EventReport& report);
  /// Brings a write that was not stored up to date: another one may have been stored in its place.
  void refresh(EventWrite& write);
  /// Where the Event of that write was stored: the next equal one updates it.
  void stored(const EventWrite& write, const ObjectKey& where);

 private:
  struct Similar {
    std::unordered_set<std::string> messages;  // hashes
    std::optional<TimePoint> last;
  };
  struct Stored {
    int count = 0;
    std::chrono::system_clock::time_point first;
    std::optional<ObjectKey> where;
  };
  bool is_one_of_many(const EventReport& report);
  bool take_token(const EventReport& report);

  Clock& clock_;
  LruMap<Similar> similar_;  // by all but the message
  LruMap<Stored> stored_;    // by everything, or by all but the message when combined
  LruMap<std::optional<TokenBucket>> buckets_;  // by object and type
};

/// The Event as JSON for POST, named `key`.
nlohmann::json event_object(const EventReport& event, const ObjectKey& key,
                            std::string_view component);
/// The strategic merge patch for an Event that was stored before.
nlohmann::json event_patch(const EventReport& event);

/// Messages are cut to this, as events.k8s.io/v1 demands.
inline constexpr std::size_t kMaxEventMessage = 1024;

}  // namespace lpp::k8s
