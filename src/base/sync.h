// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <pthread.h>
#endif

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

/// clang's thread-safety annotations (preset `tsa`); nothing under other compilers. The standard
/// library's std::mutex carries none, hence the thin wrappers below.
#if defined(__clang__)
#define LPP_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LPP_THREAD_ANNOTATION(x)
#endif
#define LPP_CAPABILITY(x) LPP_THREAD_ANNOTATION(capability(x))
#define LPP_SCOPED_CAPABILITY LPP_THREAD_ANNOTATION(scoped_lockable)
#define LPP_GUARDED_BY(x) LPP_THREAD_ANNOTATION(guarded_by(x))
#define LPP_REQUIRES(...) LPP_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LPP_EXCLUDES(...) LPP_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define LPP_ACQUIRE(...) LPP_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define LPP_RELEASE(...) LPP_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define LPP_NO_THREAD_SAFETY_ANALYSIS LPP_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace lpp {

class LPP_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
#if defined(__SANITIZE_THREAD__)
  /// std::mutex ends without a call, so that ThreadSanitizer takes the next one at its address for
  /// the same one, and finds cycles between the locks of two tests.
  ~Mutex() { pthread_mutex_destroy(mutex_.native_handle()); }
#endif

  void lock() LPP_ACQUIRE() { mutex_.lock(); }
  void unlock() LPP_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope; may be unlocked and locked again within it.
class LPP_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LPP_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() LPP_RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() LPP_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() LPP_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// Condition variable for Mutex. Always wait in a loop that tests the condition under the lock.
class CondVar {
 public:
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }
  void wait(Mutex& mutex) LPP_REQUIRES(mutex) { cv_.wait(mutex); }
  /// Returns at notification, spuriously, or at the deadline of the steady clock.
  void wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      LPP_REQUIRES(mutex) {
    cv_.wait_until(mutex, deadline);
  }

 private:
  std::condition_variable_any cv_;
};

}  // namespace lpp
