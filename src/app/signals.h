// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>

#include "base/log.h"

namespace lpp::app {

/// Keeps SIGINT, SIGTERM, SIGUSR2 and SIGHUP (unless it is ignored, as under nohup) from
/// interrupting any thread, and ignores SIGPIPE (a peer that closes its connection must not end the
/// process). First in main, before any thread is started: threads inherit it.
void block_signals();

/// Takes that back but for SIGPIPE: a signal that has come meanwhile ends the process, as any
/// program.
void unblock_signals();

/// Waits on the calling thread for SIGINT, SIGTERM or SIGHUP, then starts a thread that ends the
/// process at once (exit code 1) when another one comes, and returns the signal's number. Also
/// returns, with 0, when `stop` is triggered. Meanwhile `on_usr2` is called here for each SIGUSR2;
/// later ones are ignored. Needs block_signals(). Call it once.
int wait_for_signal(const std::stop_token& stop = {}, const std::function<void()>& on_usr2 = {});

/// The same for a command, which goes on meanwhile: the token's stop is requested by the first of
/// these signals, and the next one ends the process. Needs block_signals(). Call it once.
std::stop_token stop_on_signal();

/// For SIGUSR2: switches between the level that is usual here and debug (or, if that is debug,
/// info).
void toggle_debug_log(log::Level usual);

}  // namespace lpp::app
