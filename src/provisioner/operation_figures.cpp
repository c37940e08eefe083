// SPDX-License-Identifier: Apache-2.0
#include "provisioner/operation_figures.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"

namespace lpp::provisioner {

namespace {

constexpr std::size_t kMaxText = 1024;

std::string cut(std::string_view text) { return std::string(truncate_utf8(text, kMaxText)); }

/// A reason may come from the cluster; as a label it is one plain word.
std::string label_of(std::string_view reason) {
  const bool plain = !reason.empty() && reason.size() <= 40 &&
                     std::all_of(reason.begin(), reason.end(),
                                 [](unsigned char c) { return std::isalnum(c) != 0; });
  return plain ? std::string(reason) : "Other";
}

}  // namespace

std::string_view to_string(Step step) {
  switch (step) {
    case Step::kQueued: return "queued";
    case Step::kStart: return "pod_start";
    case Step::kScript: return "script";
    case Step::kVolume: return "volume";
    case Step::kWaiting: return "waiting";
  }
  return "queued";
}

Step step_of(const operation::Progress& progress) {
  if (progress.state == operation::Progress::State::kSucceeded) return Step::kVolume;
  const bool is_begun =
      progress.state != operation::Progress::State::kWaiting && !progress.begins_unasked;
  return is_begun ? Step::kScript : Step::kStart;
}

void OperationFigures::count_step(operation::Kind kind, const Known& known, TimePoint now) {
  if (known.step_cut || known.step == Step::kWaiting) return;
  totals_.steps.at({std::string(operation::label_of(kind)), std::string(to_string(known.step))})
      .observe(now - known.step_began);
}

void OperationFigures::progressed(operation::Kind kind, const operation::Operation& operation,
                                  Step step, std::string_view problem,
                                  std::optional<TimePoint> since) {
  const TimePoint now = clock_.now();
  const TimePoint began = since.value_or(now);
  MutexLock lock(mutex_);
  auto it = known_.find({kind, operation.volume_name});
  if (it == known_.end()) {
    if (!has_room(operation.claim.ns)) return;
    const bool cut = step != Step::kQueued;
    it = follow({kind, operation.volume_name}, {.claim = operation.claim,
                                                .step = step,
                                                .began = began,
                                                .attempt_began = began,
                                                .step_began = began,
                                                .attempt_cut = cut,
                                                .step_cut = cut});
  }
  Known& known = it->second;
  if (known.attempt != operation.attempt) {
    if (known.attempt != 0) {  // another attempt
      known.attempt_began = known.step_began = began;
      known.attempt_cut = known.step_cut = step != Step::kQueued;
    }
    known.attempt = operation.attempt;
    if (known.claim != operation.claim) {
      leave_namespace(known);
      known.claim = operation.claim;
      ++of_namespace_[known.claim.ns];
    }
    known.node = operation.node;
    known.step = step;
  } else if (known.step != step) {
    count_step(kind, known, now);
    known.step = step;
    known.step_began = now;
    known.step_cut = false;
  }
  known.problem = cut(problem);
}

void OperationFigures::succeeded(operation::Kind kind, std::string_view volume,
                                 const std::string& storage_class, const std::string& source) {
  const TimePoint now = clock_.now();
  std::optional<Duration> took;
  {
    MutexLock lock(mutex_);
    if (const auto it = known_.find({kind, std::string(volume)}); it != known_.end()) {
      count_step(kind, it->second, now);
      if (!it->second.attempt_cut) took = now - it->second.attempt_began;
      forget(it);
    }
  }
  switch (kind) {
    case operation::Kind::kMake:
      ++totals_.provisioned.at({storage_class, source});
      (void)totals_.provision_failed.at({storage_class, source});  // 0 is a figure too
      if (took) totals_.provision_duration.at({storage_class, source}).observe(*took);
      break;
    case operation::Kind::kRemove:
      ++totals_.deleted.at({storage_class});
      (void)totals_.delete_failed.at({storage_class});
      if (took) totals_.delete_duration.at({storage_class}).observe(*took);
      break;
    case operation::Kind::kTakeBack:
    case operation::Kind::kResize: break;
  }
}

void OperationFigures::failed(Failure failure) {
  const TimePoint now = clock_.now();
  const std::string kind(operation::label_of(failure.kind));
  ++totals_.failures.at({kind, label_of(failure.reason)});
  if (failure.kind == operation::Kind::kMake) {
    ++totals_.provision_failed.at({failure.storage_class, failure.source});
    (void)totals_.provisioned.at({failure.storage_class, failure.source});
  } else if (failure.kind == operation::Kind::kRemove) {
    ++totals_.delete_failed.at({failure.storage_class});
    (void)totals_.deleted.at({failure.storage_class});
  }
  failure.message = cut(failure.message);
  MutexLock lock(mutex_);
  Key key{failure.kind, failure.volume};
  auto it = known_.find(key);
  if (it == known_.end() && has_room(failure.claim.ns)) {
    it = follow(std::move(key),
                {.claim = failure.claim, .node = failure.node, .began = now, .attempt_began = now});
  }
  if (it != known_.end()) {
    it->second.step = Step::kWaiting;
    it->second.step_began = now;
    it->second.problem = failure.message;
  }
  failures_.push_front({std::move(failure), clock_.wall_now()});
  if (failures_.size() > kMaxFailures) drop_failure();
}

void OperationFigures::forget(operation::Kind kind, std::string_view volume) {
  MutexLock lock(mutex_);
  if (known_.empty()) return;
  if (const auto it = known_.find({kind, std::string(volume)}); it != known_.end()) forget(it);
}

bool OperationFigures::has_room(const std::string& ns) const {
  if (known_.size() >= kMaxInFlight) return false;
  const auto theirs = of_namespace_.find(ns);
  return theirs == of_namespace_.end() || theirs->second < kMaxOfNamespace;
}

OperationFigures::AllKnown::iterator OperationFigures::follow(Key key, const Known& known) {
  ++of_namespace_[known.claim.ns];
  return known_.try_emplace(std::move(key), known).first;
}

void OperationFigures::forget(AllKnown::iterator it) {
  leave_namespace(it->second);
  known_.erase(it);
}

void OperationFigures::leave_namespace(const Known& known) {
  const auto theirs = of_namespace_.find(known.claim.ns);
  if (theirs != of_namespace_.end() && --theirs->second == 0) of_namespace_.erase(theirs);
}

void OperationFigures::drop_failure() {
  std::map<std::string_view, std::size_t> counts;
  for (const PastFailure& past : failures_) ++counts[past.failure.claim.ns];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto oldest =
      std::find_if(failures_.rbegin(), failures_.rend(),
                   [&](const PastFailure& past) { return past.failure.claim.ns == most->first; });
  failures_.erase(std::next(oldest).base());
}

void OperationFigures::forget_all() {
  MutexLock lock(mutex_);
  known_.clear();
  of_namespace_.clear();
}

std::vector<InFlight> OperationFigures::in_flight(std::size_t limit) const {
  const TimePoint now = clock_.now();
  std::vector<InFlight> all;
  {
    MutexLock lock(mutex_);
    all.reserve(known_.size());
    for (const auto& [key, known] : known_) {
      all.push_back({.kind = key.kind,
                     .volume = key.volume,
                     .claim = known.claim,
                     .node = known.node,
                     .attempt = known.attempt,
                     .step = known.step,
                     .age = now - known.began,
                     .step_age = now - known.step_began,
                     .problem = known.problem});
    }
  }
  const std::size_t count = std::min(limit, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [](const InFlight& a, const InFlight& b) { return a.age > b.age; });
  all.resize(count);
  return all;
}

std::map<operation::Kind, OperationFigures::Load> OperationFigures::load() const {
  const TimePoint now = clock_.now();
  std::map<operation::Kind, Load> loads{{operation::Kind::kMake, {}},
                                        {operation::Kind::kRemove, {}},
                                        {operation::Kind::kTakeBack, {}},
                                        {operation::Kind::kResize, {}}};
  MutexLock lock(mutex_);
  for (const auto& [key, known] : known_) {
    Load& load = loads[key.kind];
    ++load.count;
    if (known.step == Step::kWaiting) ++load.waiting;
    load.oldest = std::max(load.oldest, now - known.began);
  }
  return loads;
}

std::vector<PastFailure> OperationFigures::recent_failures() const {
  MutexLock lock(mutex_);
  return {failures_.begin(), failures_.end()};
}

}  // namespace lpp::provisioner
