// SPDX-License-Identifier: Apache-2.0
#include "k8s/call_guard.h"

#include <sys/socket.h>

#include <algorithm>

#include "base/strings.h"

namespace lpp::k8s {

namespace {

// A deadline this near is looked at each second: a wait does not count the time of a suspension.
constexpr std::chrono::seconds kNear{30};
constexpr std::chrono::seconds kLookAgain{1};

/// Wakes whoever waits on the socket, and lets its close drop what the kernel has not delivered
/// yet: a write that is sent again after a partition would arrive when the lease is another's.
void abort_connection(int fd) {
  const linger drop{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace

CallGuard::Call::Call(CallGuard& guard, TimePoint deadline, const std::stop_token& stop)
    : guard_(guard), deadline_(deadline) {
  {
    MutexLock lock(guard_.mutex_);
    guard_.calls_.push_back(this);
  }
  guard_.wake_before(deadline);
  on_stop_.emplace(stop, OnStop{this});
}

CallGuard::Call::~Call() {
  on_stop_.reset();
  MutexLock lock(guard_.mutex_);
  std::erase(guard_.calls_, this);
}

void CallGuard::Call::attach(int fd) {
  MutexLock lock(mutex_);
  fd_ = fd;
  if (ended() != Ended::kNo) abort_connection(fd_);
}

CallGuard::Ended CallGuard::Call::detach() {
  MutexLock lock(mutex_);
  fd_ = -1;
  return ended();
}

bool CallGuard::Call::goes_on() {
  if (deadline() <= guard_.clock_.now()) end(Ended::kDeadline);
  return ended() == Ended::kNo;
}

void CallGuard::Call::set_deadline(TimePoint deadline) {
  deadline_.store(deadline);
  guard_.wake_before(deadline);
}

void CallGuard::Call::end(Ended why) {
  MutexLock lock(mutex_);
  if (ended() != Ended::kNo) return;
  ended_.store(why, std::memory_order_release);
  if (fd_ >= 0) abort_connection(fd_);
}

CallGuard::CallGuard(Clock& clock) : clock_(clock) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

CallGuard::~CallGuard() {
  thread_.request_stop();
  {
    MutexLock lock(mutex_);  // the notification cannot fall between test and wait
    changed_.notify_all();
  }
  thread_.join();
}

void CallGuard::wake_before(TimePoint deadline) {
  if (deadline >= next_look_.load()) return;
  MutexLock lock(mutex_);
  changed_.notify_all();
}

void CallGuard::run(const std::stop_token& stop) {
  set_thread_name("http-guard");
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    // Published before the deadlines are read: whoever sets an earlier one after that sees it.
    next_look_.store(TimePoint::max());
    const TimePoint now = clock_.now();
    TimePoint next = TimePoint::max();
    for (Call* call : calls_) {
      if (call->ended() != Ended::kNo) continue;
      const TimePoint deadline = call->deadline();
      if (deadline <= now) {
        call->end(Ended::kDeadline);
      } else {
        next = std::min(next, deadline);
      }
    }
    next_look_.store(next);
    const bool near = next != TimePoint::max() && next - now < kNear;
    clock_.wait_until(changed_, mutex_, near ? std::min(next, now + kLookAgain) : next);
  }
}

}  // namespace lpp::k8s
