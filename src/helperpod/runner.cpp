// SPDX-License-Identifier: Apache-2.0
#include "helperpod/runner.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "helperpod/outcome.h"
#include "helperpod/sweeper.h"
#include "k8s/objects.h"

namespace lpp::helperpod {

using operation::Admission;
using operation::Id;
using operation::NodeLoad;
using operation::Operation;
using operation::Progress;
using State = Progress::State;

namespace {

/// What is cancelled is not to go on for the 30 s that a pod may take by default. Not zero: then
/// the kubelet would not be asked.
constexpr int kCancelGrace = 1;
/// Of our own program at a removal: what it has not removed goes back into its place, and a single
/// call may take a while on a disk that is busy.
constexpr int kPutBackGrace = 10;

/// An answer that says so; without one, or after a server's own failure, it may be stored.
bool is_not_stored(const Error& error) { return error.http_status != 0 && error.http_status < 500; }

/// Another node may make the directory meanwhile, and a setup that begins late would change the
/// mode of what is in use by then.
bool may_be_made_elsewhere(const Operation& make) {
  return make.node.empty() || make.shared || (make.shape && !make.shape->has_affinity);
}

}  // namespace

HelperPodRunner::HelperPodRunner(k8s::ApiClient& client, Clock& clock,
                                 const k8s::Store<k8s::Pod>& pods, operation::PathLedger& ledger,
                                 Settings settings, std::function<Current()> current)
    : client_(client),
      clock_(clock),
      pods_(pods),
      ledger_(ledger),
      settings_(std::move(settings)),
      current_(std::move(current)),
      load_(clock, settings_.most_per_node),
      logs_(client, clock) {}

HelperPodRunner::~HelperPodRunner() { end(Duration::zero()); }

void HelperPodRunner::begin(operation::Owner owner) {
  const auto is_quiet = owner.is_quiet;
  owner_.set(std::move(owner));
  std::vector<std::shared_ptr<const Operation>> all;
  {
    MutexLock lock(mutex_);
    for (const auto& [uid, known] : by_uid_) all.push_back(known.operation);
  }
  logs_.begin([this](const std::string& uid) {
    if (const auto known = find(uid)) wake(*known->operation);
  });
  sweeper_ = std::make_unique<Sweeper>(clock_, *this, is_quiet);
  sweeper_->start();
  wake(all);
}

void HelperPodRunner::end(Duration limit) {
  if (!sweeper_) return;
  sweeper_->stop(limit);
  sweeper_.reset();
  logs_.end();
  owner_.clear();
}

void HelperPodRunner::wake(const Operation& operation) const { owner_.wake(operation); }

void HelperPodRunner::wake(const NodeLoad::Waiting& operations) const {
  for (const auto& operation : operations) wake(*operation);
}

void HelperPodRunner::observe(const k8s::Change<k8s::Pod>& change) {
  const auto known = find(change.object().meta.uid);
  if (change.before && (!change.after || change.before->meta.uid != change.after->meta.uid)) {
    forget_pod(change.before->meta.uid);
  }
  // A pod's operation never changes: it is decoded when the pod is first seen.
  std::shared_ptr<const Operation> operation = known ? known->operation : nullptr;
  if (!operation) {
    auto decoded = operation_of(change.object());
    if (!decoded.ok()) {
      const std::string pod_name = change.object().meta.key().to_string();
      const log::Scope fields({{"pod", pod_name}});
      log::warn("a helper pod is labelled as ours but is not usable: {}", decoded.error().message);
      return;
    }
    operation = std::make_shared<const Operation>(*std::move(decoded));
  }
  if (change.after) {
    remember(Known{.key = change.after->meta.key(),
                   .uid = change.after->meta.uid,
                   .operation = operation,
                   .first_seen = clock_.now(),
                   .removing = change.after->meta.deleting(),
                   .removing_since = clock_.now(),
                   .ended = over(*change.after)});
    if (over(*change.after)) wake(load_.ended(*operation, change.after->meta.uid));
  }
  if (!known || !known->settled) wake(*operation);
}

Progress HelperPodRunner::lost(const Operation& /*operation*/) const {
  return {.state = State::kFailed,
          .message = "the helper pod was removed before it ended",
          .reason = "HelperPodRemoved"};
}

/// Only resizes ask, and they are rare: the script may come and go in the ConfigMap meanwhile.
Result<bool> HelperPodRunner::can_resize(const Operation& /*operation*/) {
  if (!current_().resize_command.empty()) return true;
  const auto found = client_.get(k8s::kConfigMaps, {settings_.ns, settings_.config_map});
  if (!found.ok() && found.error().is(ErrorCode::kNotFound)) return false;
  if (!found.ok()) return found.error().wrap("look for the resize script");
  LPP_ASSIGN_OR_RETURN(const auto config_map, k8s::decode<k8s::ConfigMap>(*found), "scripts");
  return k8s::find(config_map.data, kResizeScript) != nullptr;
}

void HelperPodRunner::node_changed(std::string_view node) {
  std::vector<std::shared_ptr<const Operation>> there;
  {
    MutexLock lock(mutex_);
    for (const auto& [uid, known] : by_uid_) {
      if (known.operation->node == node) there.push_back(known.operation);
    }
  }
  wake(there);
}

Admission HelperPodRunner::admit(const Operation& operation) {
  if (!load_.admit(operation)) return {};
  return Admission([this, operation] { wake(load_.give_back(operation)); });
}

void HelperPodRunner::note_removing(Known& known) const {
  if (!known.removing) known.removing_since = clock_.now();
  known.removing = true;
}

bool HelperPodRunner::has_ended(const Known& known) const {
  if (known.ended) return true;
  const auto pod = pods_.get(known.key);
  return pod != nullptr && pod->meta.uid == known.uid && over(*pod);
}

Result<operation::Executor::Start> HelperPodRunner::start(const Operation& operation) {
  const Current current = current_();
  if (current.pod_template == nullptr) {
    return Error{.code = ErrorCode::kInternal, .message = "no helper pod template is loaded"};
  }
  Settings settings = settings_;
  settings.setup_command = current.setup_command;
  settings.teardown_command = current.teardown_command;
  settings.resize_command = current.resize_command;
  settings.cluster = current.cluster;
  settings.deadline = deadline_of(operation.kind, current.cmd_timeout);
  LPP_ASSIGN_OR_RETURN(const auto manifest, make_pod(*current.pod_template, operation, settings),
                       "helper pod");
  const k8s::ObjectKey key{settings_.ns, manifest["metadata"]["name"].get<std::string>()};
  const auto created = client_.create(k8s::kPods, settings_.ns, manifest, k8s::Answer::kIdentity);
  if (!created.ok()) {
    if (created.error().is(ErrorCode::kAlreadyExists)) return resolve_name_taken(key, operation);
    if (!is_not_stored(created.error())) note_unanswered(key, operation);
    return created.error().wrap("create helper pod " + key.to_string());
  }
  const auto pod = k8s::decode<k8s::Pod>(*created);
  if (!pod.ok()) {
    note_unanswered(key, operation);
    return pod.error().wrap("created helper pod");
  }
  const std::string pod_name = key.to_string();
  const log::Scope fields({{"pod", pod_name}, {"node", operation.node}, {"path", operation.path}});
  log::info("helper pod created to {} the directory, attempt {}", to_string(operation.kind),
            operation.attempt);
  remember(Known{.key = key,
                 .uid = pod->meta.uid,
                 .operation = std::make_shared<const Operation>(operation),
                 .first_seen = clock_.now()});
  return Start::kRecorded;
}

/// The cache did not show it, but a pod of our name exists: created before a restart or by a call
/// whose answer was lost, left from an older attempt or by the program before us, or not ours at
/// all.
Result<operation::Executor::Start> HelperPodRunner::resolve_name_taken(const k8s::ObjectKey& key,
                                                                       const Operation& operation) {
  const auto found = client_.get(k8s::kPods, key);
  if (!found.ok()) {
    if (found.error().is(ErrorCode::kNotFound)) return Start::kOtherFound;
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
  if (!theirs.ok() ||
      operation::script_action(theirs->kind) != operation::script_action(operation.kind) ||
      theirs->volume_name != operation.volume_name) {
    return Error{.code = ErrorCode::kConflict,
                 .message = "pod " + key.to_string() +
                            " exists but was not made by this provisioner for volume " +
                            operation.volume_name +
                            ": remove it or rename the helper pod template"};
  }
  if (const auto known = find(pod.meta.uid); known && known->settled) {
    // What it did is history: the directory may have come or gone again since.
    if (!known->removing) LPP_RETURN_IF_ERROR(remove(*known, std::nullopt), "remove helper pod");
    unsettle(*known);
    return Start::kOtherFound;
  }
  const bool same = theirs->id() == operation.id();
  remember(Known{.key = key,
                 .uid = pod.meta.uid,
                 .operation = std::make_shared<const Operation>(*std::move(theirs)),
                 .first_seen = clock_.now(),
                 .removing = pod.meta.deleting(),
                 .removing_since = clock_.now()});
  return same ? Start::kRecorded : Start::kOtherFound;
}

/// Its pod stays, and its deadline ends it. The kubelet may have started it and tell of that later:
/// with the pod the record of what it leaves would go, and a process that is killed then knows of
/// nothing to take back. What is overdue, or must not begin late, is deleted unless it is known to
/// have started; at the moment that it goes that is the API server's word.
Result<void> HelperPodRunner::cancel_make(const Known& known) {
  if (!may_be_made_elsewhere(*known.operation) && !is_overdue(known)) {
    let_end(known, false);
    return {};
  }
  const auto seen = pods_.get(known.key);
  if (seen != nullptr && seen->meta.uid == known.uid) {
    if (has_started(*seen)) {
      let_end(known, true);
      return {};
    }
    auto removed = remove(known, kCancelGrace, seen->meta.resource_version);
    if (removed.ok() || !removed.error().is(ErrorCode::kConflict)) return removed;
  }
  const auto found = client_.get(k8s::kPods, known.key);
  if (!found.ok() && found.error().is(ErrorCode::kNotFound)) return remove(known, kCancelGrace);
  if (!found.ok()) return found.error();
  LPP_ASSIGN_OR_RETURN(const auto pod, k8s::decode<k8s::Pod>(*found), "helper pod");
  if (pod.meta.uid != known.uid) return remove(known, kCancelGrace);
  if (has_started(pod)) {
    let_end(known, true);
    return {};
  }
  auto removed = remove(known, kCancelGrace, pod.meta.resource_version);
  if (removed.ok() || !removed.error().is(ErrorCode::kConflict)) return removed;
  return Error{ErrorCode::kUnavailable, "it has changed meanwhile"};
}

void HelperPodRunner::let_end(const Known& known, bool started) {
  {
    MutexLock lock(mutex_);
    const auto it = by_uid_.find(known.uid);
    if (it == by_uid_.end()) return;
    it->second.started = it->second.started || started;
    if (it->second.unwanted_since) return;
    it->second.unwanted_since = clock_.now();
  }
  wake(*known.operation);
}

Result<void> HelperPodRunner::cancel(const Id& id) {
  for (const Known& pod : known(id)) {
    if (pod.removing || (pod.unwanted_since && !is_overdue(pod))) continue;
    const bool makes = id.kind == operation::Kind::kMake;
    const auto seen = pods_.get(pod.key);
    const bool is_put_back = seen != nullptr && seen->meta.uid == pod.uid && puts_back(*seen);
    const int grace = is_put_back ? kPutBackGrace : kCancelGrace;
    LPP_RETURN_IF_ERROR(makes ? cancel_make(pod) : remove(pod, grace), "cancel helper pod");
  }
  return {};
}

Result<bool> HelperPodRunner::forget(const Id& id, When when) {
  for (const Known& pod : known(id)) {
    if (when == When::kWhenQuiet && settle(pod)) continue;
    if (!pod.removing) LPP_RETURN_IF_ERROR(remove(pod, std::nullopt), "remove helper pod");
  }
  const auto left = known(id);
  return std::all_of(left.begin(), left.end(), [](const Known& pod) { return pod.settled; });
}

void HelperPodRunner::mark_removing(const Known& known) {
  const std::string pod_name = known.key.to_string();
  const log::Scope fields({{"pod", pod_name}, {"volume", known.operation->volume_name}});
  log::debug("helper pod removed");
  MutexLock lock(mutex_);
  if (const auto it = by_uid_.find(known.uid); it != by_uid_.end()) note_removing(it->second);
}

Result<void> HelperPodRunner::remove(const Known& known, std::optional<int> grace_period_seconds,
                                     const std::string& version) {
  const auto removed = client_.remove(k8s::kPods, known.key,
                                      {.uid = known.uid,
                                       .resource_version = version,
                                       .grace_period_seconds = grace_period_seconds});
  if (!removed.ok()) {
    if (!version.empty() && removed.error().is(ErrorCode::kConflict)) return removed.error();
    if (!k8s::is_stale(removed.error())) return removed.error().wrap(known.key.to_string());
    forget_pod(known.uid);
    return {};
  }
  mark_removing(known);
  return {};
}

}  // namespace lpp::helperpod
