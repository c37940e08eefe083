// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "operation/operation.h"
#include "operation/space.h"
#include "operation/usage.h"

namespace lpp::operation {

/// What became of the directory, as the work on the node tells; scripts of existing clusters do
/// not.
enum class Directory {
  kUnknown,
  kMade,     // it was not there before
  kFound,    // it was there
  kRemoved,  // it is gone
  kKept,     // taken back only if empty, and it is not, or (with a message) nobody can tell
  kAbsent,   // it was not there; of a make that has failed: it has not touched anything
};

/// How an operation stands.
struct Progress {
  enum class State {
    kWaiting,    // recorded; as far as is known nothing has been done on the node yet
    kRunning,    // something may have been done, or is being done
    kSucceeded,  // over
    kFailed,     // over
    kLate,       // it should be over; something may still be done: cancel it
    kEnding,     // being cancelled or removed by somebody: wait until it is not recorded any more
  };
  State state = State::kWaiting;
  /// kFailed, kLate: the cause, complete enough for an Event. Else: why it does not get on, if that
  /// is known and will not heal by itself; mostly empty.
  std::string message{};
  /// With a message: the cause in one CamelCase word (Evicted, ErrImagePull, Timeout …), for
  /// counting.
  std::string reason{};
  Directory directory = Directory::kUnknown;
  /// kFailed, of a resize: the node says that the directory cannot have that size. Another attempt
  /// would fail as well, unless something changes there.
  bool infeasible = false;
  /// kFailed, of a make: this base path of this node cannot serve it, another may.
  bool unfit = false;
  /// kSucceeded.
  Kept kept{};
  std::optional<Space> space{};  // of the base path's file system, after the work
  /// kSucceeded, of a make or resize with a limit: of the directory, after the work. Not from
  /// whoever measures it all the time.
  std::optional<Usage> usage{};
  std::string disk{};  // of a make: tells the base path's disk from others; "" = not told
  /// kSucceeded, of a make: whether that is still on record. What was told before its node was lost
  /// may be gone with the node's disk: no volume may show it on that word.
  enum class Standing {
    kCertain,
    kAwaited,   // the node is about to tell, or to heal: wait
    kDoubtful,  // it may never tell again: make it again
  };
  Standing standing = Standing::kCertain;
  /// kEnding: what is being removed is a record only, the work was over before.
  bool acts_no_more = false;
  /// It has waited since it was ordered, and does not go on for now. Of what removes something:
  /// cancel it; if it is wanted still, by the API server's word, it begins anew. A make or resize
  /// goes on when it is started again.
  bool outdated = false;
  /// It may begin at any moment if it has not, and asks nobody.
  bool begins_unasked = false;
  /// When the state changes without anybody's doing: the time for another look.
  std::optional<TimePoint> changes_at{};

  bool over() const { return state == State::kSucceeded || state == State::kFailed; }
  bool operator==(const Progress&) const = default;
};

/// An operation that an executor has on record.
struct Recorded {
  std::shared_ptr<const Operation> operation{};
  Progress progress{};
};

/// Room for one operation on a node; gives it back at its end unless the operation was started.
class Admission {
 public:
  Admission() = default;
  explicit Admission(std::function<void()> give_back) : give_back_(std::move(give_back)) {}
  Admission(Admission&& other) noexcept : give_back_(std::exchange(other.give_back_, nullptr)) {}
  Admission& operator=(Admission&& other) noexcept {
    std::swap(give_back_, other.give_back_);
    return *this;
  }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission() {
    if (give_back_) give_back_();
  }
  explicit operator bool() const { return static_cast<bool>(give_back_); }

 private:
  std::function<void()> give_back_{};
};

/// Who is told of changes. The functions are called from any thread, several at once, under no
/// lock, between begin() and the return of end(); they must be quick and must not call the
/// executor.
struct Owner {
  /// Something has changed for this operation, or there is room now for one that was not admitted.
  std::function<void(const Operation&)> wake;
  /// The same of what a node tells of and nobody here has ordered: whoever has taken that node over
  /// may tell anything, without end. None: as the others.
  std::function<void(const Operation&)> wake_told{};
  /// Whether nothing else is to be done at the moment.
  std::function<bool()> is_quiet;
  /// Other disks than before are seen there, or none: what has failed on the node may succeed now.
  std::function<void(const std::string& node)> wake_node{};
};

/// Does operations on directories of nodes; the reconcilers know nothing else about how. Helper
/// pods are one way, an agent on each node can be another. Passive: work goes on outside, and each
/// call is one short pass that never waits for it. Whatever an operation does on a node, its record
/// was written before and survives this process. Where the records are on the nodes themselves
/// another process knows of what has begun as soon as its node is heard of, and never of what
/// nobody has begun. What is on record, as far as it is known, is in the PathLedger. All calls are
/// safe to repeat. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Between the two the owner is woken; at the beginning for everything that is recorded. end()
  /// gives `limit` to what was left for a quiet moment.
  virtual void begin(Owner owner) = 0;
  virtual void end(Duration limit) = 0;

  /// Everything recorded for the volume, as far as the (possibly stale) cache knows. What was
  /// forgotten with kWhenQuiet is not told any more, unless it could not be forgotten then.
  virtual std::vector<Recorded> recorded(std::string_view volume_name) = 0;

  /// Whether one more operation may begin on its node, so that no node gets more at once than it
  /// can bear. If not, the owner is woken when there is room, in the order of asking.
  virtual Admission admit(const Operation& operation) = 0;

  /// kOtherFound: another operation is on record under this one's number, which recorded() tells
  /// from now on; or what stood there has just gone. Look again.
  enum class Start { kRecorded, kOtherFound };
  /// Records the operation and lets it begin, on an admission of its own; or lets a make or
  /// resize go on that is recorded and outdated, which needs none. kConflict when something
  /// that is not ours stands in its place.
  virtual Result<Start> start(const Operation& operation) = 0;

  /// What may still act is to act no more; it is on record (kEnding) until it is certain that it
  /// does not. A make that has ended all the same may stay on record, over, until it is forgotten.
  /// Nothing when it is not recorded.
  virtual Result<void> cancel(const Id& id) = 0;

  /// kWhenQuiet is for operations whose result stands elsewhere: what they left is in nobody's way
  /// and can wait while others wait for their volumes.
  enum class When { kNow, kWhenQuiet };
  /// What is over needs no record any more. True when none is left that the caller has to care for.
  virtual Result<bool> forget(const Id& id, When when) = 0;

  /// What to say of an operation that is not on record any more though nobody forgot it: kFailed,
  /// in words that tell what was taken away.
  virtual Progress lost(const Operation& operation) const = 0;

  /// Whether it has a way to give that directory a limit. Without one a volume grows in numbers
  /// only.
  virtual Result<bool> can_resize(const Operation& operation) = 0;

  /// Of that base path, in no particular words: with others, what has failed there may succeed.
  virtual std::string sight(const std::string& /*node*/, const std::string& /*base_path*/) const {
    return {};
  }
  /// Why nothing can be made there for now, as far as is known, though elsewhere it may; "" = no
  /// reason.
  virtual std::string why_unfit(const std::string& /*node*/,
                                const std::string& /*base_path*/) const {
    return {};
  }

  /// The node has come, gone, or changed its labels: owners of what is recorded there are woken.
  virtual void node_changed(std::string_view node) = 0;
};

}  // namespace lpp::operation
