// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/event_recorder.h"
#include "provisioner/action.h"
#include "provisioner/memory.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// What a failure is about, and how an Event tells it.
struct Subject {
  Failure failure{};  // without reason and message
  k8s::ObjectReference about{};
  std::string_view event_reason{};
  std::string prefix{};  // of the Event's text
};

/// Makes Events and counters of failures, in one way for all of them. Thread-safe.
class Reporter {
 public:
  Reporter(World& world, Memories& memories) : world_(world), memories_(memories) {}

  /// Counts the failure and tells it. `reason` is a word for counting.
  void failed(const Subject& subject, std::string reason, const std::string& message);
  /// An Event and a log line, once for each message (until it is long ago).
  void tell(const Subject& subject, const std::string& message);
  /// The same for what nothing tells any more once the caller goes on, as a record does that is
  /// about to be forgotten: an error when the Event is not stored and may be soon.
  Result<void> tell_for_good(const Subject& subject, const std::string& message);
  /// An API call failed. What a repetition alone does not heal is told at once; the rest (no
  /// connection, overload, a stale cache) when it has not healed after some tries.
  Action api_failed(const Subject& subject, const Error& error);
  static bool heals_by_itself(const Error& error);
  /// The executor has no room for it on the node: told once that has lasted for `patience`.
  /// Remembers the memory.
  Action turned_away(const Subject& subject, const std::string& node, Duration patience,
                     Memory& memory);

 private:
  World& world_;
  Memories& memories_;
};

}  // namespace lpp::provisioner
