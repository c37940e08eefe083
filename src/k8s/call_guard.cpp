#include "k8s/call_guard.h"

#include <sys/socket.h>

#include <algorithm>

#include "base/strings.h"

namespace lpp::k8s {

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
  if (ended() != Ended::kNo) ::shutdown(fd_, SHUT_RDWR);
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
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
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
    clock_.wait_until(changed_, mutex_, next);
  }
}

}  // namespace lpp::k8s
