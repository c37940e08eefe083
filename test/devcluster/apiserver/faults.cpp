// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/faults.h"

#include <algorithm>

namespace lpp::devcluster {

FaultRule::FaultRule(std::string_view operation) {
  const auto space = operation.find(' ');
  verb_ = std::string(operation.substr(0, space));
  auto rest = space == std::string_view::npos ? std::string_view("*") : operation.substr(space + 1);
  const auto slash = rest.find('/');
  resource_ = std::string(rest.substr(0, slash));
  if (slash != std::string_view::npos) subresource_ = std::string(rest.substr(slash + 1));
}

FaultRule& FaultRule::nth(std::uint64_t n) {
  nth_ = n;
  return *this;
}
FaultRule& FaultRule::every(std::uint64_t n) {
  every_ = n;
  return *this;
}
FaultRule& FaultRule::times(std::uint64_t n) {
  times_ = n;
  return *this;
}
FaultRule& FaultRule::with_probability(double probability, std::uint64_t seed) {
  probability_ = probability;
  random_.seed(seed);
  return *this;
}
FaultRule& FaultRule::name_prefix(std::string prefix) {
  name_prefix_ = std::move(prefix);
  return *this;
}
FaultRule& FaultRule::user_agent_prefix(std::string prefix) {
  user_agent_prefix_ = std::move(prefix);
  return *this;
}

FaultRule& FaultRule::reply(int code, std::string reason,
                            std::optional<std::chrono::seconds> retry_after) {
  action_ = {.kind = FaultAction::Kind::kReply,
             .code = code,
             .reason = std::move(reason),
             .retry_after = retry_after};
  return *this;
}
FaultRule& FaultRule::cut_before() {
  action_ = {.kind = FaultAction::Kind::kCutBefore};
  return *this;
}
FaultRule& FaultRule::cut_after() {
  action_ = {.kind = FaultAction::Kind::kCutAfter};
  return *this;
}
FaultRule& FaultRule::delay(std::chrono::milliseconds time) {
  action_ = {.kind = FaultAction::Kind::kDelay, .delay = time};
  return *this;
}
FaultRule& FaultRule::hang() {
  action_ = {.kind = FaultAction::Kind::kHang};
  return *this;
}
FaultRule& FaultRule::expire() {
  action_ = {.kind = FaultAction::Kind::kExpire};
  return *this;
}
FaultRule& FaultRule::call_before(std::function<void()> callback) {
  action_ = {.kind = FaultAction::Kind::kCallBefore, .callback = std::move(callback)};
  return *this;
}
FaultRule& FaultRule::call_after(std::function<void()> callback) {
  action_ = {.kind = FaultAction::Kind::kCallAfter, .callback = std::move(callback)};
  return *this;
}
FaultRule& FaultRule::lose_event() {
  action_ = {.kind = FaultAction::Kind::kLoseEvent};
  return *this;
}
FaultRule& FaultRule::duplicate_event() {
  action_ = {.kind = FaultAction::Kind::kDuplicateEvent};
  return *this;
}
FaultRule& FaultRule::truncate_event(std::size_t bytes) {
  action_ = {.kind = FaultAction::Kind::kTruncateEvent, .bytes = bytes};
  return *this;
}
FaultRule& FaultRule::error_event(int code) {
  action_ = {.kind = FaultAction::Kind::kErrorEvent, .code = code};
  return *this;
}

FaultRule& FaultRule::stall_event() {
  action_ = {.kind = FaultAction::Kind::kStallEvent};
  return *this;
}

bool FaultRule::matches(const Operation& operation) const {
  const auto fits = [](const std::string& pattern, const std::string& text) {
    return pattern == "*" || pattern == text;
  };
  return fits(verb_, operation.verb) && fits(resource_, operation.resource) &&
         fits(subresource_, operation.subresource) && operation.name.starts_with(name_prefix_) &&
         operation.user_agent.starts_with(user_agent_prefix_);
}

/// Counts one match; true when this one is hit.
bool FaultRule::chosen() {
  ++seen_;
  if (nth_ != 0 && seen_ != nth_) return false;
  if (every_ != 0 && seen_ % every_ != 0) return false;
  if (times_ != 0 && hits_ >= times_) return false;
  if (probability_ < 1.0 &&
      std::uniform_real_distribution<double>(0.0, 1.0)(random_) >= probability_) {
    return false;
  }
  ++hits_;
  return true;
}

std::uint64_t FaultRules::add(FaultRule rule) {
  const MutexLock lock(mutex_);
  rule.id_ = next_id_++;
  rules_.push_back(std::move(rule));
  return rules_.back().id_;
}

void FaultRules::remove(std::uint64_t id) {
  const MutexLock lock(mutex_);
  std::erase_if(rules_, [id](const FaultRule& rule) { return rule.id_ == id; });
}

void FaultRules::clear() {
  const MutexLock lock(mutex_);
  rules_.clear();
}

std::uint64_t FaultRules::hits(std::uint64_t id) const {
  const MutexLock lock(mutex_);
  const auto it = std::find_if(rules_.begin(), rules_.end(),
                               [id](const FaultRule& rule) { return rule.id_ == id; });
  return it == rules_.end() ? 0 : it->hits_;
}

std::vector<FaultAction> FaultRules::decide(const Operation& operation) {
  return decide(operation, false);
}

std::vector<FaultAction> FaultRules::decide_event(const Operation& operation) {
  return decide(operation, true);
}

std::vector<FaultAction> FaultRules::decide(const Operation& operation, bool for_events) {
  std::vector<FaultAction> actions;
  const MutexLock lock(mutex_);
  for (auto& rule : rules_) {
    if (rule.action_.is_for_events() != for_events || !rule.matches(operation)) continue;
    if (rule.chosen()) actions.push_back(rule.action_);
  }
  return actions;
}

}  // namespace lpp::devcluster
