// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>  // sigset_t is of POSIX

namespace lpp::testing {

/// What ends a program: SIGINT and SIGTERM.
inline sigset_t ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}

/// Before any thread starts: whoever asks for these signals gets them, and nobody else.
inline void block_ending_signals() {
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace lpp::testing
