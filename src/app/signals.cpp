// SPDX-License-Identifier: Apache-2.0
#include "app/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/strings.h"

namespace lpp::app {

namespace {

constexpr int kWake = SIGUSR1;  // our own: ends the wait when stop is triggered

/// nohup and the like ignore SIGHUP for the programs they start.
bool hang_up_is_ignored() {
  struct sigaction action {};
  return sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t awaited() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR2, kWake}) sigaddset(&set, signal);
  if (!hang_up_is_ignored()) sigaddset(&set, SIGHUP);
  return set;
}

void exit_on_next_signal() {
  set_thread_name("signals");
  sigset_t set = awaited();
  sigdelset(&set, kWake);
  sigdelset(&set, SIGUSR2);
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  _exit(1);
}

}  // namespace

void block_signals() {
  const sigset_t set = awaited();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void unblock_signals() {
  const sigset_t set = awaited();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int wait_for_signal(const std::stop_token& stop, const std::function<void()>& on_usr2) {
  const sigset_t set = awaited();
  const pthread_t self = pthread_self();
  const std::stop_callback wake(stop, [self] { pthread_kill(self, kWake); });
  while (true) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    if (signal == kWake) {
      if (stop.stop_requested()) return 0;
      continue;
    }
    if (signal == SIGUSR2) {
      if (on_usr2) on_usr2();
      continue;
    }
    std::thread(exit_on_next_signal).detach();
    return signal;
  }
}

std::stop_token stop_on_signal() {
  std::stop_source stop;
  std::thread([stop]() mutable {
    set_thread_name("signals");
    wait_for_signal();
    stop.request_stop();
  }).detach();
  return stop.get_token();
}

void toggle_debug_log(log::Level usual) {
  if (log::level() != log::Level::kDebug) {
    log::set_level(log::Level::kDebug);
    log::info("each step is logged until the next SIGUSR2");
  } else {
    log::info("not every step is logged any more");
    log::set_level(usual == log::Level::kDebug ? log::Level::kInfo : usual);
  }
}

}  // namespace lpp::app
