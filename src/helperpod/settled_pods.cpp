// SPDX-License-Identifier: Apache-2.0
#include "helperpod/settled_pods.h"

namespace lpp::helperpod {

bool SettledPods::add(std::string uid, TimePoint now) {
  MutexLock lock(mutex_);
  if (pods_.size() >= kMax) return false;
  pods_.emplace_back(now, std::move(uid));
  changed_.notify_one();
  return true;
}

std::optional<TimePoint> SettledPods::wait(const std::stop_token& stop) const {
  // The callback takes the mutex so that its notification cannot fall between test and wait.
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_one();
  });
  MutexLock lock(mutex_);
  while (pods_.empty() && !stop.stop_requested()) changed_.wait(mutex_);
  if (stop.stop_requested()) return std::nullopt;
  return pods_.front().first;
}

std::optional<std::string> SettledPods::take() {
  MutexLock lock(mutex_);
  if (pods_.empty()) return std::nullopt;
  std::string uid = std::move(pods_.front().second);
  pods_.pop_front();
  return uid;
}

std::size_t SettledPods::size() const {
  MutexLock lock(mutex_);
  return pods_.size();
}

}  // namespace lpp::helperpod
