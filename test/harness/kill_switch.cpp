// SPDX-License-Identifier: Apache-2.0
#include "harness/kill_switch.h"

namespace lpp::testing {

bool is_work_call(const ApiRequest& request) {
  return request.resource != "leases" && !request.is_watch() && request.verb != "list";
}

/// Every call of those kinds.
std::vector<CallPoint> points_of(const std::map<std::string, std::size_t>& kinds) {
  std::vector<CallPoint> points;
  for (const auto& [kind, count] : kinds) {
    for (std::size_t number = 1; number <= count; ++number) points.push_back({kind, number});
  }
  return points;
}

CallPoint point_at(const std::vector<CallPoint>& points, std::size_t index) {
  return index < points.size() ? points[index] : CallPoint{};
}

ProxyHooks KillSwitch::hooks() {
  return {.before = [this](const ApiRequest& request) { return before(request); },
          .after = [this](const ApiRequest& request, int /*status*/) { after(request); }};
}

Decision KillSwitch::before(const ApiRequest& request) {
  if (!counts_(request)) return Decision::forward();
  {
    MutexLock lock(mutex_);
    calls_.push_back(request);
    last_ = std::chrono::steady_clock::now();
    if (calls_.size() != index_) return Decision::forward();
    chosen_ = request.sequence;
  }
  if (moment_ == Moment::kAfter) return Decision::forward();
  strike_();
  fired_ = true;
  return Decision::cut_before();
}

void KillSwitch::after(const ApiRequest& request) {
  {
    MutexLock lock(mutex_);
    if (moment_ != Moment::kAfter || chosen_ != request.sequence) return;
  }
  strike_();
  fired_ = true;
}

std::map<std::string, std::size_t> KillSwitch::kinds() const {
  MutexLock lock(mutex_);
  std::map<std::string, std::size_t> kinds;
  for (const ApiRequest& call : calls_) ++kinds[call.kind()];
  return kinds;
}

bool KillSwitch::is_quiet() const {
  constexpr std::chrono::milliseconds kSilence{400};
  MutexLock lock(mutex_);
  return std::chrono::steady_clock::now() - last_ > kSilence;
}

Result<void> KillSwitch::wait_quiet(Patience patience) const {
  return wait_until(
      "no more API calls", [this]() -> std::string { return is_quiet() ? "" : "there are some"; },
      patience);
}

std::string KillSwitch::to_string() const {
  MutexLock lock(mutex_);
  const bool known = index_ > 0 && index_ <= calls_.size();
  return std::string(moment_ == Moment::kBefore ? "before" : "after") + " call " +
         std::to_string(index_) + (known ? ": " + calls_[index_ - 1].to_string() : "");
}

}  // namespace lpp::testing
