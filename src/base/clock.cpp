// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace lpp {

bool Clock::sleep_until(TimePoint deadline, const std::stop_token& stop) {
  Mutex mutex;
  CondVar cv;
  // The callback takes the mutex so that its notification cannot fall between test and wait.
  std::stop_callback wake(stop, [&] {
    MutexLock lock(mutex);
    cv.notify_all();
  });
  MutexLock lock(mutex);
  while (!stop.stop_requested() && now() < deadline) wait_until(cv, mutex, deadline);
  return !stop.stop_requested();
}

TimePoint SystemClock::now() const {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

std::chrono::system_clock::time_point SystemClock::wall_now() const {
  return std::chrono::system_clock::now();
}

void SystemClock::wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) {
  // Clamped, as the distance to time_point::max() or min() may overflow.
  constexpr std::chrono::hours kForever{24 * 365};
  const TimePoint from = now();
  const Duration left = std::clamp(deadline, from, from + kForever) - from;
  // A wait cannot use the clock of now(); their readings differ, their differences do not.
  cv.wait_until(mutex, std::chrono::steady_clock::now() + left);
}

namespace {

std::tm utc(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string format_rfc3339(std::chrono::system_clock::time_point time) {
  const std::tm parts = utc(std::chrono::floor<std::chrono::seconds>(time));
  std::array<char, 32> text{};
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

std::string format_rfc3339_micro(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - whole).count();
  std::string text = format_rfc3339(whole);
  std::array<char, 24> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%06lldZ", static_cast<long long>(micros));
  text.pop_back();
  return text + fraction.data();
}

}  // namespace lpp
