#include "provisioner/attempts.h"

#include <algorithm>

#include "base/strings.h"

namespace lpp::provisioner {

Attempt Attempts::get(std::string_view volume_name) const {
  MutexLock lock(mutex_);
  const auto it = attempts_.find(std::string(volume_name));
  return it == attempts_.end() ? Attempt{} : it->second;
}

void Attempts::set(std::string_view volume_name, Attempt attempt) {
  MutexLock lock(mutex_);
  attempts_[std::string(volume_name)] = std::move(attempt);
}

void Attempts::erase(std::string_view volume_name) {
  MutexLock lock(mutex_);
  attempts_.erase(std::string(volume_name));
}

std::size_t Attempts::size() const {
  MutexLock lock(mutex_);
  return attempts_.size();
}

std::shared_ptr<const helperpod::Operation> Attempts::made_there(
    const helperpod::Operation& operation) const {
  MutexLock lock(mutex_);
  for (const auto& [name, attempt] : attempts_) {
    if (attempt.made_by != nullptr && collide(*attempt.made_by, operation)) return attempt.made_by;
  }
  return nullptr;
}

Duration Attempts::wait_after(int number) const {
  if (retry_count_ > 0 && number > retry_count_) return kResync;
  Duration wait = policy_.base;
  for (int i = 1; i < number && wait < policy_.cap; ++i) wait *= 2;
  wait = std::min(wait, policy_.cap);
  const double factor = 1.0 + policy_.jitter * random_unit();
  return std::chrono::duration_cast<Duration>(wait * factor);
}

std::optional<Duration> Attempts::held(const Attempt& attempt, std::string_view seen) const {
  const TimePoint now = clock_.now();
  if (now >= attempt.hold_until || attempt.seen != seen) return std::nullopt;
  return attempt.hold_until - now;
}

bool Attempts::worth_saying(std::string_view volume_name, std::string_view message) {
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  Attempt& attempt = attempts_[std::string(volume_name)];
  if (attempt.reported == message && now - attempt.reported_at < kResync) return false;
  attempt.reported = message;
  attempt.reported_at = now;
  return true;
}

}  // namespace lpp::provisioner
