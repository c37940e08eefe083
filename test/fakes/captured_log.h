// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/sync.h"

namespace lpp::testing {

/// Catches the process's log while it lives: all levels, as "<level> <line>" without times; in JSON
/// only what follows the level. Thread-safe.
class CapturedLog {
 public:
  explicit CapturedLog(log::Format format = log::Format::kText) : before_(log::level()) {
    log::set_up(log::Level::kDebug, format);
    log::divert([this](log::Level level, const std::string& line) {
      MutexLock lock(mutex_);
      lines_.push_back(std::string(word(level)) + " " + line);
    });
  }
  ~CapturedLog() {
    log::divert(nullptr);
    log::set_up(before_);
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<std::string> take() {
    MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  static std::string_view word(log::Level level) {
    switch (level) {
      case log::Level::kDebug: return "debug";
      case log::Level::kInfo: return "info";
      case log::Level::kWarn: return "warning";
      default: return "error";
    }
  }

  const log::Level before_;
  Mutex mutex_;
  std::vector<std::string> lines_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::testing
