// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <unistd.h>

#include <array>
#include <csignal>

#include "base/log.h"
#include "base/strings.h"

namespace lpp::cli {

namespace {

constexpr std::array kEndings{SIGINT, SIGTERM, SIGHUP};

/// Ends the process as the signal does by itself, without the line.
void erase_and_end(int signal) {
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, kEraseLine.data(), kEraseLine.size());
  ::signal(signal, SIG_DFL);  // NOLINT(concurrency-mt-unsafe): async-signal-safe
  ::raise(signal);
}

}  // namespace

Progress::Progress(Context& context, std::string what) : context_(context), what_(std::move(what)) {
  if (!context.terminal.progress) return;
  for (const int signal : kEndings) {
    // What was ignored from the start, as by nohup, stays so.
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before our thread starts
    if (::signal(signal, erase_and_end) == SIG_IGN) ::signal(signal, SIG_IGN);
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  for (const int signal : kEndings) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): our thread has ended
    if (::signal(signal, SIG_DFL) == SIG_IGN) ::signal(signal, SIG_IGN);
  }
}

void Progress::now(std::string what) {
  MutexLock lock(mutex_);
  what_ = std::move(what);
}

void Progress::run(const std::stop_token& stop) {
  set_thread_name("progress");
  const TimePoint began = context_.clock.now();
  bool shown = false;
  while (context_.clock.sleep_for(std::chrono::seconds(1), stop)) {
    std::string what;
    {
      MutexLock lock(mutex_);
      what = what_;
    }
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(context_.clock.now() - began).count();
    context_.err(fmt::format("{}{} ({} s)", kEraseLine, what, seconds));
    shown = true;
  }
  if (shown) context_.err(kEraseLine);
}

}  // namespace lpp::cli
