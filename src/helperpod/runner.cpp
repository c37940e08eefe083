#include "helperpod/runner.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/log.h"
#include "base/strings.h"
#include "helperpod/outcome.h"
#include "k8s/objects.h"

namespace lpp::helperpod {

namespace {

/// A delete may take long (a large tree on a slow disk), so it gets more time than a create.
constexpr std::chrono::hours kLeastDeleteDeadline{1};
/// The kubelet ends a pod at its deadline; this is how long we wait to see that.
constexpr std::chrono::seconds kDeadlineMargin{30};
/// The cache should show a pod that we created long before this.
constexpr std::chrono::seconds kUnseenLimit{10};
/// A kubelet that is alive reports a new pod sooner than this, and starts it sooner than that.
constexpr std::chrono::seconds kUnnoticedLimit{5};
constexpr std::chrono::seconds kStartingLimit{60};
constexpr int kLogLines = 10;
constexpr int kLogBytes = 2048;
constexpr std::size_t kMaxOutputLine = 500;

std::string index_key(HelperAction action, std::string_view volume_name) {
  return std::string(to_string(action)) + "/" + std::string(volume_name);
}

std::chrono::seconds deadline_of(HelperAction action, std::chrono::seconds cmd_timeout) {
  return action == HelperAction::kCreate
             ? cmd_timeout
             : std::max<std::chrono::seconds>(cmd_timeout, kLeastDeleteDeadline);
}

/// The same work, tried before.
bool is_earlier_attempt(Operation earlier, const Operation& operation) {
  if (earlier.attempt >= operation.attempt) return false;
  earlier.attempt = operation.attempt;
  return earlier == operation;
}

/// Whether a container can have run: then something may have been done on the node.
bool has_started(const k8s::Pod& pod) {
  if (pod.phase != "Pending") return true;
  return std::any_of(pod.containers.begin(), pod.containers.end(), [](const auto& container) {
    return container.terminated || container.waiting_reason.empty();
  });
}

/// Whether its container may be starting just now, unseen: what a kubelet reports is always a
/// little behind what it does.
bool may_be_starting(const k8s::Pod& pod, Duration seen_for) {
  if (pod.containers.empty()) return seen_for < kUnnoticedLimit;
  return seen_for < kStartingLimit &&
         std::any_of(pod.containers.begin(), pod.containers.end(), [](const auto& container) {
           return container.waiting_reason == "ContainerCreating" ||
                  container.waiting_reason == "PodInitializing";
         });
}

/// The last lines of what the script said, marked as such.
void log_output(std::string_view text) {
  if (trim(text).empty()) return;
  const auto lines = split(trim(text), '\n');
  const std::size_t count = std::min<std::size_t>(lines.size(), kLogLines);
  for (const std::string_view line : std::span(lines).last(count)) {
    log::warn("helper pod output | {}", truncate_utf8(trim(line), kMaxOutputLine));
  }
}

}  // namespace

HelperPodRunner::HelperPodRunner(k8s::ApiClient& client, Clock& clock,
                                 const k8s::Store<k8s::Pod>& pods, Settings settings,
                                 std::function<Current()> current)
    : client_(client),
      clock_(clock),
      pods_(pods),
      settings_(std::move(settings)),
      current_(std::move(current)) {}

std::shared_ptr<const Operation> HelperPodRunner::observe(const k8s::Change<k8s::Pod>& change) {
  const auto known = find(change.object().meta.uid);
  if (change.before && (!change.after || change.before->meta.uid != change.after->meta.uid)) {
    forget(change.before->meta.uid);
  }
  // A pod's operation never changes: it is decoded when the pod is first seen.
  std::shared_ptr<const Operation> operation = known ? known->operation : nullptr;
  if (!operation) {
    auto decoded = operation_of(change.object());
    if (!decoded.ok()) {
      const std::string pod_name = change.object().meta.key().to_string();
      const log::Scope fields({{"pod", pod_name}});
      log::warn("a helper pod is labelled as ours but is not usable: {}", decoded.error().message);
      return nullptr;
    }
    operation = std::make_shared<const Operation>(*std::move(decoded));
  }
  if (change.after) {
    remember(Known{.key = change.after->meta.key(),
                   .uid = change.after->meta.uid,
                   .operation = operation,
                   .first_seen = clock_.now(),
                   .removing = change.after->meta.deleting(),
                   .removing_since = clock_.now()});
  }
  if (known && known->settled) return nullptr;
  return operation;
}

Result<std::optional<Operation>> HelperPodRunner::recorded(HelperAction action,
                                                           std::string_view volume_name) {
  std::shared_ptr<const Operation> latest;
  for (Known& pod : known(action, volume_name)) {
    if (pod.settled) continue;
    if (!latest || pod.operation->attempt > latest->attempt) latest = std::move(pod.operation);
  }
  if (!latest) return std::optional<Operation>{};
  return std::optional(*latest);
}

Result<std::optional<Progress>> HelperPodRunner::advance(const Operation& operation,
                                                         bool is_recorded) {
  std::optional<Known> same;
  std::vector<Known> others;
  for (Known& pod : known(operation.action, operation.volume_name)) {
    // A settled one is history: its directory may have come or gone again since.
    if (!pod.removing && !pod.settled && !same && *pod.operation == operation) {
      same = std::move(pod);
    } else {
      others.push_back(std::move(pod));
    }
  }
  // An earlier attempt that has ended is removed only when the new one is recorded: at no moment is
  // it unknown that something may have been done on the node. Anything else goes first.
  const bool must_wait = !same && !std::all_of(others.begin(), others.end(), [&](const auto& pod) {
    return is_earlier_attempt(*pod.operation, operation) && has_ended(pod);
  });
  Result<Progress> progress = waiting_for(others);
  if (!must_wait) {
    if (!same && is_recorded) return std::optional<Progress>{};
    progress = same ? progress_of(*same) : start(operation);
    if (!progress.ok()) return std::move(progress).error();
  }
  for (const Known& pod : others) {
    if (!pod.removing) LPP_RETURN_IF_ERROR(remove(pod, std::nullopt), "remove old helper pod");
  }
  return std::optional(*std::move(progress));
}

/// A pod that hangs in Terminating, since its node is away or somebody's finalizer holds it, keeps
/// the operation waiting; after a while that is worth saying.
Progress HelperPodRunner::waiting_for(const std::vector<Known>& others) const {
  Progress progress{.started = false};
  const auto limit = current_().cmd_timeout;
  for (const Known& pod : others) {
    if (!pod.removing || clock_.now() - pod.removing_since <= limit) continue;
    progress.reason = "StuckTerminating";
    progress.message = "helper pod " + pod.key.to_string() +
                       " was deleted but does not go: is node " + pod.operation->node +
                       " up, and has the pod finalizers?";
  }
  return progress;
}

void HelperPodRunner::note_removing(Known& known) const {
  if (!known.removing) known.removing_since = clock_.now();
  known.removing = true;
}

bool HelperPodRunner::has_ended(const Known& known) const {
  const auto pod = pods_.get(known.key);
  return pod != nullptr && pod->meta.uid == known.uid &&
         (pod->phase == "Succeeded" || pod->phase == "Failed");
}

Result<Progress> HelperPodRunner::start(const Operation& operation) {
  const auto shared = std::make_shared<const Operation>(operation);
  auto progress = create(shared);
  MutexLock lock(mutex_);
  reserved_.remove(shared);
  return progress;
}

Result<void> HelperPodRunner::reserve(const std::shared_ptr<const Operation>& operation) {
  MutexLock lock(mutex_);
  const auto in_the_way = [&](const Operation& other) { return collide(other, *operation); };
  for (const auto* paths : {&at_work_, &reserved_}) {
    if (const auto other = paths->find_overlapping(operation->path, in_the_way)) {
      return Error{.code = ErrorCode::kConflict,
                   .message = "path " + operation->path + " overlaps " + other->path +
                              ", where volume " + other->volume_name + " is being made or removed"};
    }
  }
  reserved_.add(operation);
  return {};
}

Result<Progress> HelperPodRunner::create(const std::shared_ptr<const Operation>& operation) {
  const Current current = current_();
  if (current.pod_template == nullptr) {
    return Error{.code = ErrorCode::kInternal, .message = "no helper pod template is loaded"};
  }
  Settings settings = settings_;
  settings.setup_command = current.setup_command;
  settings.teardown_command = current.teardown_command;
  settings.deadline = deadline_of(operation->action, current.cmd_timeout);
  LPP_ASSIGN_OR_RETURN(const auto manifest, make_pod(*current.pod_template, *operation, settings),
                       "helper pod");
  const k8s::ObjectKey key{settings_.ns, manifest["metadata"]["name"].get<std::string>()};
  LPP_RETURN_IF_ERROR(reserve(operation), "helper pod");
  const auto created = client_.create(k8s::kPods, settings_.ns, manifest, k8s::Answer::kIdentity);
  if (!created.ok()) {
    if (created.error().is(ErrorCode::kAlreadyExists)) return resolve_name_taken(key, *operation);
    return created.error().wrap("create helper pod " + key.to_string());
  }
  LPP_ASSIGN_OR_RETURN(const auto pod, k8s::decode<k8s::Pod>(*created), "created helper pod");
  const std::string pod_name = key.to_string();
  const log::Scope fields(
      {{"pod", pod_name}, {"node", operation->node}, {"path", operation->path}});
  log::info("helper pod created to {} the directory, attempt {}", to_string(operation->action),
            operation->attempt);
  remember(
      Known{.key = key, .uid = pod.meta.uid, .operation = operation, .first_seen = clock_.now()});
  return Progress{.started = false};
}

/// The cache did not show it, but a pod of our name exists: created before a restart or by a call
/// whose answer was lost, left from an older attempt or by the program before us, or not ours at
/// all.
Result<Progress> HelperPodRunner::resolve_name_taken(const k8s::ObjectKey& key,
                                                     const Operation& operation) {
  const auto found = client_.get(k8s::kPods, key);
  if (!found.ok()) {
    if (found.error().is(ErrorCode::kNotFound)) return Progress{.started = false};
    return found.error().wrap("read helper pod " + key.to_string());
  }
  LPP_ASSIGN_OR_RETURN(const auto pod, k8s::decode<k8s::Pod>(*found), "helper pod");
  auto theirs = operation_of(pod);
  if (!theirs.ok() && is_of_former_program(*found)) {
    // What it did is not known, so it is never taken for a success; the work is done again.
    if (!pod.meta.deleting()) {
      const auto removed = client_.remove(k8s::kPods, key, {.uid = pod.meta.uid});
      if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) {
        return removed.error().wrap("remove helper pod " + key.to_string());
      }
    }
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "helper pod " + key.to_string() +
                            " was left by another program and is being removed first"};
  }
  if (!theirs.ok() || theirs->action != operation.action ||
      theirs->volume_name != operation.volume_name) {
    return Error{.code = ErrorCode::kConflict,
                 .message = "pod " + key.to_string() +
                            " exists but was not made by this provisioner for volume " +
                            operation.volume_name +
                            ": remove it or rename the helper pod template"};
  }
  Known known{.key = key,
              .uid = pod.meta.uid,
              .operation = std::make_shared<const Operation>(*std::move(theirs)),
              .first_seen = clock_.now(),
              .removing = pod.meta.deleting(),
              .removing_since = clock_.now()};
  // The same volume's directory under way elsewhere is not forgotten: its record is seen next time.
  const bool under_way = operation.action == HelperAction::kCreate &&
                         known.operation->owner_uid == operation.owner_uid;
  if (*known.operation != operation && !known.removing && !under_way) {
    LPP_RETURN_IF_ERROR(remove(known, std::nullopt), "remove old helper pod");
    known.removing = true;
  }
  remember(std::move(known));
  return Progress{.started = false};
}

/// The cache does not show the pod (yet), so it may well have started. When it stays away, the pod
/// may have come and gone between two lists.
Result<Progress> HelperPodRunner::progress_unseen(const Known& known) {
  if (clock_.now() - known.first_seen < kUnseenLimit) return Progress{};
  const auto found = client_.get(k8s::kPods, known.key);
  if (found.ok()) {
    LPP_ASSIGN_OR_RETURN(const auto pod, k8s::decode<k8s::Pod>(*found), "helper pod");
    if (pod.meta.uid == known.uid) return Progress{};
  } else if (!found.error().is(ErrorCode::kNotFound)) {
    return found.error().wrap("read helper pod " + known.key.to_string());
  }
  forget(known.uid);
  return Progress{.started = false};
}

Result<Progress> HelperPodRunner::progress_of(const Known& known) {
  const auto pod = pods_.get(known.key);
  if (pod == nullptr || pod->meta.uid != known.uid) return progress_unseen(known);
  Progress progress = helperpod::observe(*pod).progress;
  const bool started = has_started(*pod);
  progress.started = started || may_be_starting(*pod, clock_.now() - known.first_seen);
  if (progress.state == Progress::State::kFailed) {
    progress.message = failure_text(known, *pod);
  } else if (progress.state == Progress::State::kRunning) {
    const auto cmd_timeout = current_().cmd_timeout;
    const auto limit =
        started ? deadline_of(known.operation->action, cmd_timeout) + kDeadlineMargin : cmd_timeout;
    if (clock_.now() - known.first_seen > limit) {
      progress.state = Progress::State::kFailed;
      if (progress.reason.empty()) progress.reason = "Timeout";
      progress.message = fmt::format(
          "helper pod {} did not {} within {} s{}{}", known.key.name, started ? "end" : "start",
          limit.count(),
          progress.message.empty() ? ": is node " + known.operation->node + " up?" : ": ",
          progress.message);
    }
  }
  return progress;
}

std::string HelperPodRunner::failure_text(const Known& known, const k8s::Pod& pod) {
  if (!known.failure_message.empty()) return known.failure_message;
  const Outcome outcome = helperpod::observe(pod);
  std::string message = outcome.progress.message;
  const std::string pod_name = known.key.to_string();
  const log::Scope fields({{"pod", pod_name}, {"node", known.operation->node}});
  log_output(outcome.output);
  if (outcome.log_wanted) {
    const auto text = client_.pod_log(known.key, outcome.container, kLogLines, kLogBytes);
    if (text.ok() && !text->empty()) {
      message += ": " + *text;
      log_output(*text);
    }
    if (!text.ok()) log::warn("log of the helper pod cannot be read: {}", text.error().message);
  }
  MutexLock lock(mutex_);
  if (const auto it = by_uid_.find(known.uid); it != by_uid_.end()) {
    it->second.failure_message = message;
  }
  return message;
}

Result<bool> HelperPodRunner::clean_up(HelperAction action, std::string_view volume_name,
                                       When when) {
  bool nothing_left = true;
  for (const Known& pod : known(action, volume_name)) {
    if (when == When::kWhenQuiet && settle(pod)) continue;
    if (!pod.removing) {
      const auto stored = pods_.get(pod.key);
      // A pod that never started is not waited for: its node may be down for good.
      const bool seen = stored != nullptr && stored->meta.uid == pod.uid;
      const bool started = !seen || has_started(*stored);
      LPP_RETURN_IF_ERROR(started ? remove(pod, std::nullopt)
                                  : remove_unstarted(pod, stored->meta.resource_version),
                          "remove helper pod");
    }
    nothing_left = false;
  }
  return nothing_left || known(action, volume_name).empty();
}

bool HelperPodRunner::settle(const Known& known) {
  if (known.settled) return true;
  if (known.removing || known.removal_failed || !has_ended(known)) return false;
  MutexLock lock(mutex_);
  const auto it = by_uid_.find(known.uid);
  if (it == by_uid_.end()) return true;
  it->second.settled = settled_.add(known.uid, clock_.now());
  const auto& operation = it->second.operation;
  if (it->second.settled && operation->action == HelperAction::kDelete) at_work_.remove(operation);
  return it->second.settled;
}

std::shared_ptr<const Operation> HelperPodRunner::remove_settled() {
  std::optional<Known> pod;
  for (auto uid = settled_.take(); uid; uid = settled_.take()) {
    pod = find(*uid);
    if (pod && !pod->removing) break;
    pod.reset();
  }
  if (!pod) return nullptr;
  const auto removed = remove(*pod, std::nullopt);
  if (removed.ok()) return nullptr;
  {
    MutexLock lock(mutex_);
    if (const auto it = by_uid_.find(pod->uid); it != by_uid_.end()) {
      it->second.settled = false;
      it->second.removal_failed = true;
      at_work_.add(it->second.operation);
    }
  }
  log::debug("helper pod is not removed yet: {}", removed.error().message);
  return pod->operation;
}

/// Only if it is still as the cache shows it: by now it may have started, and then what it did must
/// not be forgotten.
Result<void> HelperPodRunner::remove_unstarted(const Known& known,
                                               const std::string& resource_version) {
  const auto removed = client_.remove(
      k8s::kPods, known.key,
      {.uid = known.uid, .resource_version = resource_version, .grace_period_seconds = 0});
  if (removed.ok()) {
    mark_removing(known);
  } else if (removed.error().is(ErrorCode::kNotFound)) {
    forget(known.uid);
  } else if (!removed.error().is(ErrorCode::kConflict)) {
    return removed.error().wrap(known.key.to_string());
  }
  return {};  // after a conflict the cache will show what has changed
}

void HelperPodRunner::mark_removing(const Known& known) {
  const std::string pod_name = known.key.to_string();
  const log::Scope fields({{"pod", pod_name}, {"volume", known.operation->volume_name}});
  log::debug("helper pod removed");
  MutexLock lock(mutex_);
  if (const auto it = by_uid_.find(known.uid); it != by_uid_.end()) note_removing(it->second);
}

Result<void> HelperPodRunner::remove(const Known& known, std::optional<int> grace_period_seconds) {
  const auto removed = client_.remove(
      k8s::kPods, known.key, {.uid = known.uid, .grace_period_seconds = grace_period_seconds});
  if (!removed.ok()) {
    const bool gone =
        removed.error().is(ErrorCode::kNotFound) || removed.error().is(ErrorCode::kConflict);
    if (!gone) return removed.error().wrap(known.key.to_string());
    forget(known.uid);
    return {};
  }
  mark_removing(known);
  return {};
}

std::size_t HelperPodRunner::size() const {
  MutexLock lock(mutex_);
  return by_uid_.size();
}

std::optional<HelperPodRunner::Known> HelperPodRunner::find(const std::string& uid) const {
  MutexLock lock(mutex_);
  const auto it = by_uid_.find(uid);
  if (it == by_uid_.end()) return std::nullopt;
  return it->second;
}

std::vector<HelperPodRunner::Known> HelperPodRunner::known(HelperAction action,
                                                           std::string_view volume_name) const {
  MutexLock lock(mutex_);
  std::vector<Known> pods;
  const auto it = by_operation_.find(index_key(action, volume_name));
  if (it == by_operation_.end()) return pods;
  for (const std::string& uid : it->second) pods.push_back(by_uid_.at(uid));
  return pods;
}

void HelperPodRunner::remember(Known known) {
  MutexLock lock(mutex_);
  const auto [it, added] = by_uid_.try_emplace(known.uid, known);
  if (added) {
    by_operation_[index_key(known.operation->action, known.operation->volume_name)].push_back(
        known.uid);
    at_work_.add(known.operation);
  } else {
    if (known.removing) note_removing(it->second);
  }
}

void HelperPodRunner::forget(std::string_view uid) {
  MutexLock lock(mutex_);
  const auto it = by_uid_.find(std::string(uid));
  if (it == by_uid_.end()) return;
  const auto index = by_operation_.find(
      index_key(it->second.operation->action, it->second.operation->volume_name));
  std::erase(index->second, it->first);
  if (index->second.empty()) by_operation_.erase(index);
  at_work_.remove(it->second.operation);
  by_uid_.erase(it);
}

}  // namespace lpp::helperpod
