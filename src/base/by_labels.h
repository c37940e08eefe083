// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/sync.h"

namespace lpp {

using Counter = std::atomic<std::uint64_t>;

/// Counters or histograms by the values of N labels. At most `limit` different combinations are
/// kept, so that names from a cluster cannot grow our memory or somebody's monitoring without
/// bound: whatever comes later is counted under "other". Thread-safe; a value stays where it is.
template <typename Value, std::size_t N>
class ByLabels {
 public:
  using Labels = std::array<std::string, N>;
  using Entry = std::pair<const Labels, Value>;

  /// `bounds` are those of the histograms; static.
  explicit ByLabels(std::size_t limit, std::span<const double> bounds = {})
      : limit_(limit), bounds_(bounds) {}

  Value& at(Labels labels) LPP_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto it = values_.find(labels);
    if (it != values_.end()) return it->second;
    if (values_.size() >= limit_) labels.fill("other");
    if constexpr (std::is_constructible_v<Value, std::span<const double>>) {
      return values_.try_emplace(std::move(labels), bounds_).first->second;
    } else {
      return values_.try_emplace(std::move(labels)).first->second;
    }
  }

  /// All there are, in the order of their labels.
  std::vector<const Entry*> entries() const LPP_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<const Entry*> all;
    all.reserve(values_.size());
    for (const Entry& entry : values_) all.push_back(&entry);
    return all;
  }

 private:
  const std::size_t limit_;
  const std::span<const double> bounds_;
  mutable Mutex mutex_;
  std::map<Labels, Value> values_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp
