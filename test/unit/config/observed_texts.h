// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/sync.h"
#include "config/text_source.h"

namespace lpp::config {

/// Collects what a source tells its observer: texts as they are, errors as "error: <message>".
/// Thread-safe.
class ObservedTexts {
 public:
  TextSource::Observer observer() {
    return [this](const Result<std::string>& text) {
      MutexLock lock(mutex_);
      texts_.push_back(text.ok() ? *text : "error: " + text.error().message);
      changed_.notify_all();
    };
  }

  std::vector<std::string> all() const {
    MutexLock lock(mutex_);
    return texts_;
  }
  std::string last() const {
    MutexLock lock(mutex_);
    return texts_.empty() ? "(none)" : texts_.back();
  }
  std::size_t count() const {
    MutexLock lock(mutex_);
    return texts_.size();
  }

  /// Waits until the last one begins with `start`; false after the time limit.
  bool wait_for(const std::string& start,
                std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (texts_.empty() || texts_.back().rfind(start, 0) != 0) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      changed_.wait_until(mutex_, deadline);
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> texts_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::config
