// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"

namespace lpp::k8s {

/// How often a wait that nothing wakes looks whether its call has ended.
inline constexpr std::chrono::milliseconds kLookAtCall{10};

/// Ends blocking socket calls from outside: at their deadline, and at once when a stop is
/// requested. The means is shutdown(2) of the socket, which wakes whoever waits in a read, a write
/// or a TLS handshake on it. Its close then resets the connection: bytes of a write that the kernel
/// still holds are dropped, not sent later. One thread ("http-guard") serves all calls.
/// Thread-safe; the clock must outlive it, and it must outlive its calls.
class CallGuard {
 public:
  enum class Ended { kNo, kDeadline, kStop };

  /// One guarded call, for its lifetime. attach() and detach() belong to the calling thread.
  class Call {
   public:
    Call(CallGuard& guard, TimePoint deadline, const std::stop_token& stop);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// From now on this socket is shut down when the call is ended (at once if it already is). The
    /// descriptor must stay open until detach() or the end of the call: give one of your own (dup),
    /// not one that somebody else may close.
    void attach(int fd);
    /// The socket is nobody's business any more. Returns how the call had ended by then.
    Ended detach();

    /// False when the call has ended. Looks at the deadline itself: the thread may be late where
    /// the whole process slept.
    bool goes_on();

    Ended ended() const { return ended_.load(std::memory_order_acquire); }
    TimePoint deadline() const { return deadline_.load(); }
    void set_deadline(TimePoint deadline);

   private:
    friend class CallGuard;
    struct OnStop {
      Call* call;
      void operator()() const { call->end(Ended::kStop); }
    };
    void end(Ended why);

    CallGuard& guard_;
    std::atomic<TimePoint> deadline_;
    std::atomic<Ended> ended_ = Ended::kNo;
    Mutex mutex_;
    int fd_ LPP_GUARDED_BY(mutex_) = -1;
    std::optional<std::stop_callback<OnStop>> on_stop_;
  };

  explicit CallGuard(Clock& clock);
  ~CallGuard();
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  void run(const std::stop_token& stop);
  void wake_before(TimePoint deadline);

  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Call*> calls_ LPP_GUARDED_BY(mutex_);
  // When the thread looks next. Most deadlines are later than that and need not wake it.
  std::atomic<TimePoint> next_look_{TimePoint::max()};
  std::jthread thread_;
};

}  // namespace lpp::k8s
