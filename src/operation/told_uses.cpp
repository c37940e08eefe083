// SPDX-License-Identifier: Apache-2.0
#include "operation/told_uses.h"

#include <algorithm>

namespace lpp::operation {

void ToldUses::note(const std::string& node, const std::string& path, const Usage& usage) {
  const Told told{.usage = usage, .at = clock_.now(), .wall = clock_.wall_now()};
  MutexLock lock(mutex_);
  told_.insert_or_assign({node, path}, told);
  if (told_.size() <= kMost) return;
  std::erase_if(told_, [&](const auto& one) { return told.at - one.second.at >= kCounts; });
  if (told_.size() <= kMost) return;
  told_.erase(std::min_element(told_.begin(), told_.end(), [](const auto& a, const auto& b) {
    return a.second.at < b.second.at;
  }));
}

void ToldUses::forget(const std::string& node, const std::string& path) {
  MutexLock lock(mutex_);
  told_.erase({node, path});
}

void ToldUses::forget_all() {
  MutexLock lock(mutex_);
  told_.clear();
}

std::vector<ToldUses::Entry> ToldUses::all() const {
  const TimePoint now = clock_.now();
  std::vector<Entry> entries;
  MutexLock lock(mutex_);
  for (const auto& [key, told] : told_) {
    if (now - told.at >= kCounts) continue;
    entries.push_back({key.first, key.second, told.usage, told.wall});
  }
  return entries;
}

}  // namespace lpp::operation
