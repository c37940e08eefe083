// SPDX-License-Identifier: Apache-2.0
#include "helperpod/runner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "helperpod/outcome.h"
#include "k8s/objects.h"
#include "operation/reasons.h"

// What is known of how a recorded operation stands.

namespace lpp::helperpod {

using operation::Id;
using operation::Operation;
using operation::Progress;
using operation::Recorded;
using State = Progress::State;

namespace {

/// A removal may take long (a large tree on a slow disk), so it gets more time than a creation.
constexpr std::chrono::hours kLeastRemovalDeadline{1};
/// The kubelet ends a pod at its deadline; this is how long we wait to see that.
constexpr std::chrono::seconds kDeadlineMargin{30};
/// The cache should show a pod that we created long before this.
constexpr std::chrono::seconds kUnseenLimit{10};
/// Whether a pod exists whose creation was not answered is asked again after this.
constexpr std::chrono::seconds kAskAgain{1};

}  // namespace

std::chrono::seconds HelperPodRunner::deadline_of(operation::Kind kind,
                                                  std::chrono::seconds cmd_timeout) {
  const bool removes = kind == operation::Kind::kTakeBack || kind == operation::Kind::kRemove;
  return removes ? std::max<std::chrono::seconds>(cmd_timeout, kLeastRemovalDeadline) : cmd_timeout;
}

std::vector<Recorded> HelperPodRunner::recorded(std::string_view volume_name) {
  std::vector<Recorded> all = unanswered(volume_name);
  for (const Known& pod : known(volume_name)) {
    // A settled one is history: its directory may have come or gone again since.
    if (pod.settled) continue;
    if (auto progress = progress_of(pod)) all.push_back({pod.operation, *std::move(progress)});
  }
  return all;
}

/// The pods whose creation was not answered are asked for; it is not known what those do that
/// cannot be read.
std::vector<Recorded> HelperPodRunner::unanswered(std::string_view volume_name) {
  std::vector<Unanswered> asked;
  {
    MutexLock lock(mutex_);
    const auto it = unanswered_.find(volume_name);
    if (it == unanswered_.end()) return {};
    asked = it->second;
  }
  std::vector<Recorded> unclear;
  for (const Unanswered& one : asked) {
    bool is_clear = !known(one.operation->id()).empty();
    if (!is_clear) {
      const auto found = resolve_name_taken(one.key, *one.operation);
      is_clear = found.ok() || found.error().is(ErrorCode::kConflict);  // then it is a stranger's
    }
    if (is_clear) {
      forget_unanswered(one.operation->id());
    } else {
      unclear.push_back({one.operation, Progress{.state = State::kEnding,
                                                 .changes_at = clock_.now() + kAskAgain}});
    }
  }
  return unclear;
}

void HelperPodRunner::note_unanswered(const k8s::ObjectKey& key, const Operation& operation) {
  const auto recorded = std::make_shared<const Operation>(operation);
  MutexLock lock(mutex_);
  unanswered_[operation.volume_name].push_back({.key = key, .operation = recorded});
  ledger_.add(recorded);
}

void HelperPodRunner::forget_unanswered(const Id& id) {
  MutexLock lock(mutex_);
  const auto it = unanswered_.find(id.volume_name);
  if (it == unanswered_.end()) return;
  std::erase_if(it->second, [&](const Unanswered& one) {
    if (one.operation->id() != id) return false;
    ledger_.remove(one.operation);
    return true;
  });
  if (it->second.empty()) unanswered_.erase(it);
}

std::optional<Progress> HelperPodRunner::progress_of(const Known& known) {
  const auto pod = pods_.get(known.key);
  const bool shown = pod != nullptr && pod->meta.uid == known.uid;
  if (!shown && is_gone_unseen(known)) return std::nullopt;
  if (known.removing && shown) return progress_ending(known);
  const bool is_let_end = known.unwanted_since && !known.removing && !has_ended(known);
  if (is_let_end && !(shown && is_overdue(known))) return progress_let_end(known);
  if (!shown) {
    const TimePoint limit = known.unseen_since() + kUnseenLimit;
    Progress progress{.state = State::kRunning, .begins_unasked = true};
    if (known.removing) progress = progress_ending(known);
    if (clock_.now() < limit) progress.changes_at = limit;
    return progress;
  }
  Progress progress = helperpod::observe(*pod).progress;
  if (progress.state == State::kSucceeded) return progress;
  if (progress.state == State::kFailed) {
    if (complete_failure(known, *pod, progress)) return progress;
    return Progress{.state = State::kRunning, .changes_at = progress.changes_at};
  }
  progress.state = has_started(*pod) ? State::kRunning : State::kWaiting;
  note_lateness(known, *pod, progress);
  progress.begins_unasked = progress.state == State::kWaiting;
  return progress;
}

/// The cache does not show the pod (yet), so it may well have started. When it stays away, the pod
/// may have come and gone between two lists: no change tells of it then.
bool HelperPodRunner::is_gone_unseen(const Known& known) {
  if (clock_.now() < known.unseen_since() + kUnseenLimit) return false;
  const auto found = client_.get(k8s::kPods, known.key);
  if (found.ok()) {
    const auto pod = k8s::decode<k8s::Pod>(*found);
    if (!pod.ok() || pod->meta.uid == known.uid) return false;
  } else if (!found.error().is(ErrorCode::kNotFound)) {
    log::warn("helper pod {} cannot be read: {}", known.key.to_string(), found.error().message);
    return false;
  }
  forget_pod(known.uid);
  return true;
}

/// A pod that hangs in Terminating, since its node is away or somebody's finalizer holds it; after
/// a while that is worth saying.
Progress HelperPodRunner::progress_ending(const Known& known) const {
  Progress progress{.state = State::kEnding, .acts_no_more = has_ended(known)};
  const TimePoint limit = known.removing_since + current_().cmd_timeout;
  if (clock_.now() < limit) {
    progress.changes_at = limit;
    return progress;
  }
  progress.reason = "StuckTerminating";
  progress.message = "helper pod " + known.key.to_string() +
                     " was deleted but does not go: is node " + known.operation->node +
                     " up, and has the pod finalizers?";
  return progress;
}

Duration HelperPodRunner::patience() const { return current_().cmd_timeout + kDeadlineMargin; }

bool HelperPodRunner::is_overdue(const Known& known) const {
  if (known.started || clock_.now() < known.first_seen + patience()) return false;
  const auto pod = pods_.get(known.key);
  return pod == nullptr || pod->meta.uid != known.uid || !has_started(*pod);
}

/// Its kubelet ends it at its deadline, as soon as that is there.
Progress HelperPodRunner::progress_let_end(const Known& known) const {
  Progress progress{.state = State::kEnding};
  const Duration wait = patience();
  const TimePoint limit = *known.unwanted_since + wait;
  const TimePoint now = clock_.now();
  if (now < limit) {
    const TimePoint overdue = known.first_seen + wait;
    progress.changes_at = now < overdue ? overdue : limit;
    return progress;
  }
  progress.reason = "StuckEnding";
  progress.message = fmt::format(
      "helper pod {} is not needed any more, and has not ended for {} s: is node {} up?",
      known.key.to_string(), std::chrono::duration_cast<std::chrono::seconds>(wait).count(),
      known.operation->node);
  return progress;
}

void HelperPodRunner::note_lateness(const Known& known, const k8s::Pod& pod,
                                    Progress& progress) const {
  const bool started = has_started(pod);
  const auto cmd_timeout = current_().cmd_timeout;
  const std::chrono::seconds limit =
      started ? deadline_of(known.operation->kind, cmd_timeout) + kDeadlineMargin : cmd_timeout;
  const TimePoint late_at = known.first_seen + limit;
  if (clock_.now() < late_at) {
    progress.changes_at = late_at;
    return;
  }
  progress.state = State::kLate;
  if (progress.reason.empty()) progress.reason = "Timeout";
  progress.message =
      fmt::format("helper pod {} did not {} within {} s{}{}", known.key.name,
                  started ? "end" : "start", limit.count(),
                  progress.message.empty() ? ": is node " + known.operation->node + " up?" : ": ",
                  progress.message);
}

bool HelperPodRunner::complete_failure(const Known& known, const k8s::Pod& pod,
                                       Progress& progress) {
  const Outcome outcome = helperpod::observe(pod);
  progress.infeasible =
      known.operation->kind == operation::Kind::kResize && outcome.exit_code == kInfeasibleExitCode;
  const bool refused =
      known.operation->kind == operation::Kind::kMake && outcome.exit_code == kUnfitExitCode;
  // A script may end so for reasons of its own, but says nothing of the directory then.
  const bool on_other_disk = refused && !known.operation->disk.empty() &&
                             outcome.progress.directory == operation::Directory::kAbsent;
  progress.unfit = on_other_disk ||
                   (refused && (known.operation->limits.any() || known.operation->require_mount));
  if (on_other_disk) progress.reason = operation::kOtherDisk;
  if (known.operation->only_if_empty && outcome.cannot_run) {
    // Own commands may come in an image without a shell; another attempt would find none either.
    progress.state = State::kSucceeded;
    progress.directory = operation::Directory::kKept;
    return true;
  }
  if (!outcome.log_wanted) {
    tell_output(known, outcome.output);
    return true;
  }
  const auto log = logs_.read(
      {.key = known.key, .uid = known.uid, .node = pod.node_name, .container = outcome.container});
  if (!find(known.uid)) logs_.forget(known.uid);  // it went meanwhile
  progress.changes_at = log.known_by;
  if (!log.known) return false;
  progress.changes_at.reset();
  if (!log.text.empty()) progress.message += ": " + log.text;
  tell_output(known, log.text);
  return true;
}

void HelperPodRunner::tell_output(const Known& known, std::string_view output) {
  {
    MutexLock lock(mutex_);
    const auto it = by_uid_.find(known.uid);
    if (it == by_uid_.end() || std::exchange(it->second.told, true)) return;
  }
  const std::string pod_name = known.key.to_string();
  const log::Scope fields({{"pod", pod_name}, {"node", known.operation->node}});
  log_output(output);
}

}  // namespace lpp::helperpod
