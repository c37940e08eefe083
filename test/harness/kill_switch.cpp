#include "harness/kill_switch.h"

namespace lpp::testing {

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

std::chrono::milliseconds KillSwitch::quiet_for() const {
  MutexLock lock(mutex_);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               last_);
}

std::string KillSwitch::to_string() const {
  MutexLock lock(mutex_);
  const bool known = index_ > 0 && index_ <= calls_.size();
  return std::string(moment_ == Moment::kBefore ? "before" : "after") + " call " +
         std::to_string(index_) + (known ? ": " + calls_[index_ - 1].to_string() : "");
}

}  // namespace lpp::testing
