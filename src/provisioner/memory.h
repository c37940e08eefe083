// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "k8s/work_queue.h"
#include "operation/executor.h"

namespace lpp::provisioner {

/// The last attempt that failed, or the last refusal, and how long nothing new is begun.
struct Retry {
  int number = 0;
  int failures = 0;  // in a row
  int begun = 0;     // number of the last one that this process has begun
  TimePoint hold_until{};
  std::string seen{};  // what it depended on: with something else there is no hold
};

/// A directory that was, or may have been, made for the claim.
struct Begun {
  std::shared_ptr<const operation::Operation> operation{};
  bool never_published = false;  // certainly no volume ever showed it
  bool made = false;             // certainly it was not there before
  bool first_there = false;      // certainly nobody has begun there for the claim before
  bool given_up = false;         // its taking back was begun, perhaps: no volume will show it
  bool done = false;  // it is the volume's, or gone: nothing to be taken back, whatever is recorded
};

/// A base path that could not serve the claim.
struct Unfit {
  std::string node{};
  std::string base_path{};
  Retry retry{};          // it is not chosen again before this
  std::string message{};  // why
};

/// Of a claim that grows: what was written to its status.
struct ResizeMarks {
  std::string allocated{};  // of allocatedResources
  std::string status{};     // of allocatedResourceStatuses
};

/// What this process remembers of one volume between two steps. Losing it costs a repeated Event,
/// a shorter wait and a question not asked, and it makes the next process more careful with
/// directories: what operations have done is on record with their executor.
struct Memory {
  // Of claims and volumes.

  Retry retry{};                                            // of making, or of removing
  std::shared_ptr<const operation::Operation> in_flight{};  // was on record when last seen
  std::optional<TimePoint> turned_away{};  // since then there is no room on the node
  int troubles = 0;  // API calls in a row that failed with what heals by itself

  // Of a claim: what is made for it, and taken back.

  std::vector<Begun> begun{};
  std::optional<TimePoint> published{};  // volume created, maybe not in the cache yet
  bool had_volume = false;               // one was there: what is made now may not be the first
  /// For something else than its turn and its own change, since the last make was begun.
  bool waited = false;
  std::map<std::string, Retry> take_back{};  // by place_key(): one that is broken holds up no other
  /// What takes back, by place_key(), that was on record when last seen.
  std::map<std::string, std::shared_ptr<const operation::Operation>> taking_back{};

  // Of a claim: where it is made, and whether somewhere else.

  std::vector<Unfit> unfit{};
  std::string begun_on{};          // node of the last one that was begun
  int moves = 0;                   // how often that has changed
  TimePoint move_at{};             // no beginning on another node before this
  int reschedules = 0;             // how often the selected node was taken off the claim
  TimePoint reschedule_at{};       // not again before this
  std::string rescheduled_from{};  // the claim's version until then: the cache is behind

  // Of a claim: that it is bound, and that it grows.

  /// What was written of a claim's binding.
  struct Binding {
    int tries = 0;
    TimePoint hold_until{};  // nothing is written before this,
    /// unless claim and volume are in other versions than these; with none whatever they are in.
    std::vector<std::string> outdated{};
    std::string bound_volume_uid{};  // its phase is written, though the cache may not show it yet
    std::string failure{};           // why it is left to the control plane: a word for counting
    std::string message{};
    bool left = false;  // that has been told
  };
  Binding binding{};
  std::optional<TimePoint> lost{};     // since then the claim is Lost
  std::optional<TimePoint> unasked{};  // since then its volume is there unasked for
  /// What the API server has dropped without a word, as those before Kubernetes 1.32 do.
  ResizeMarks dropped{};

  // Of a volume: its removal.

  std::optional<TimePoint> abandoned{};  // since then the cache has no claim for the volume
  std::string claim_gone{};              // UID of one that the API server said is gone, for ever
  TimePoint claim_asked_at{};            // it is not asked for again before this
  std::string condemned{};   // UID of the volume whose deletion the API server has confirmed to us
  TimePoint condemned_at{};  // the API server said last then that its directory is to be removed
  int outdated = 0;          // removals in a row that came too late to begin
  TimePoint released{};      // volume let go; the cache should show it by then

  // Of a volume whose node was lost.

  std::optional<TimePoint> node_lost{};  // since then its node is gone, by the API server's word
  bool marked_node_lost = false;         // since then, by this process
};

/// Tells directories apart in a Memory: the node and the path.
std::string place_key(const operation::Operation& operation);

/// Keeps in mind what may have been made, for the case that its record is taken away. What is over
/// when it is first seen may have been published by the leader before us; and on a shared
/// filesystem, where another node's make may have had the same directory, whatever is first seen.
void note_begun(const std::vector<operation::Recorded>& recorded, Memory& memory);

/// Memories by volume name. Thread-safe; a key's step is the only one that changes its memory.
class Memories {
 public:
  Memories(Clock& clock, k8s::BackoffPolicy policy, int retry_count)
      : clock_(clock), policy_(policy), retry_count_(retry_count) {}

  Memory get(std::string_view volume_name) const;
  void set(std::string_view volume_name, Memory memory);
  void erase(std::string_view volume_name);
  std::size_t size() const;

  /// How long to wait after so many failures: exponential, and once the retry count is used
  /// up (0 = never) until the next resync.
  Duration wait_after(int number) const;
  /// What follows when attempt `number` has failed. The wait grows with the failures, which of one
  /// that was begun before this process was are as many as the number says, within a bound: a
  /// number goes on from what any node has told.
  Retry failed(const Retry& before, int number, std::string seen) const;

  /// True when the message is worth an Event: none of the last few of this reason, or that is long
  /// ago. Notes it as said.
  bool worth_saying(std::string_view volume_name, std::string_view reason,
                    std::string_view message);
  /// What was said has not reached anybody.
  void unsay(std::string_view volume_name, std::string_view reason);
  void unsay(std::string_view volume_name);
  void unsay_all();

  /// Whatever is given up for now is looked at again after this.
  static constexpr std::chrono::minutes kResync{15};

 private:
  struct Said {
    std::string hash{};  // of the message, which may be long
    TimePoint at{};
  };

  Clock& clock_;
  const k8s::BackoffPolicy policy_;
  const int retry_count_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Memory> memories_ LPP_GUARDED_BY(mutex_);
  /// By volume name and the Event's reason.
  std::unordered_map<std::string, std::map<std::string, std::vector<Said>>> said_
      LPP_GUARDED_BY(mutex_);
};

/// The time left of a hold that still applies, or nothing.
std::optional<Duration> held(const Retry& retry, TimePoint now, std::string_view seen);

}  // namespace lpp::provisioner
