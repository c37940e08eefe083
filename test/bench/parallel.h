// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/sync.h"

namespace lpp::bench {

/// Calls work(0) ... work(count - 1) on that many threads; returns the first error, after which no
/// more are begun.
inline Result<void> in_parallel(std::size_t count, std::size_t threads,
                                const std::function<Result<void>(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  Mutex mutex;
  Result<void> result;
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < std::min(count, threads); ++i) {
      running.emplace_back([&] {
        for (std::size_t item = next++; item < count; item = next++) {
          auto done = work(item);
          if (done.ok()) continue;
          next = count;
          MutexLock lock(mutex);
          if (result.ok()) result = std::move(done);
        }
      });
    }
  }
  return result;
}

}  // namespace lpp::bench
