// SPDX-License-Identifier: Apache-2.0
#include "helperpod/sweeper.h"

#include "base/strings.h"
#include "helperpod/runner.h"

namespace lpp::helperpod {

namespace {

/// How often it is looked whether it is quiet by now.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

Sweeper::Sweeper(Clock& clock, HelperPodRunner& runner, std::function<bool()> is_quiet)
    : clock_(clock), runner_(runner), is_quiet_(std::move(is_quiet)) {}

Sweeper::~Sweeper() { stop(Duration::zero()); }

void Sweeper::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    set_thread_name("sweeper");
    run(stop);
  });
}

void Sweeper::stop(Duration limit) {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  const TimePoint deadline = clock_.now() + limit;
  while (runner_.settled().size() > 0 && clock_.now() < deadline && runner_.remove_settled()) {
  }
}

void Sweeper::run(const std::stop_token& stop) {
  while (const auto oldest = runner_.settled().wait(stop)) {
    if (clock_.now() - *oldest >= kLate || is_quiet_()) {
      (void)runner_.remove_settled();
    } else {
      clock_.sleep_for(kLook, stop);
    }
  }
}

}  // namespace lpp::helperpod
