#include "cli/progress.h"

#include "base/log.h"
#include "base/strings.h"

namespace lpp::cli {

Progress::Progress(Context& context, std::string what) : context_(context), what_(std::move(what)) {
  if (!context.terminal.progress) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
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
    context_.err(fmt::format("\r\x1b[K{} ({} s)", what, seconds));
    shown = true;
  }
  if (shown) context_.err("\r\x1b[K");
}

}  // namespace lpp::cli
