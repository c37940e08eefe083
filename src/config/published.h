// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/sync.h"

namespace lpp::config {

/// One immutable value in force, replaced as a whole. Thread-safe. A reader takes one snapshot per
/// step and uses only that.
template <typename T>
class Published {
 public:
  explicit Published(std::shared_ptr<const T> first = nullptr) : current_(std::move(first)) {}

  std::shared_ptr<const T> current() const {
    MutexLock lock(mutex_);
    return current_;
  }

  void publish(std::shared_ptr<const T> next) {
    MutexLock lock(mutex_);
    current_.swap(next);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> current_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::config
