// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/sync.h"
#include "harness/kube.h"

namespace lpp::testing {

/// Records the frames of one watch request on a thread of its own until it ends or the object goes.
class WatchTape {
 public:
  WatchTape(Kube& kube, const k8s::Resource& resource, std::string ns, k8s::WatchOptions options);
  ~WatchTape() = default;
  WatchTape(const WatchTape&) = delete;
  WatchTape& operator=(const WatchTape&) = delete;

  std::vector<nlohmann::json> frames() const;
  /// "ADDED a", "MODIFIED b" … without bookmarks.
  std::vector<std::string> story() const;
  /// Waits until there are n frames that are not bookmarks; false after the time limit or when the
  /// watch has ended with less.
  bool wait_for(std::size_t n, std::chrono::milliseconds limit = std::chrono::seconds(60)) const;
  /// How the watch ended; nullopt if it has not after the time limit.
  std::optional<Result<void>> wait_end(
      std::chrono::milliseconds limit = std::chrono::seconds(60)) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<nlohmann::json> frames_ LPP_GUARDED_BY(mutex_);
  std::optional<Result<void>> end_ LPP_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace lpp::testing
