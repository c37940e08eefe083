// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volumes_known.h"

#include <algorithm>
#include <utility>

namespace lpp::provisioner {

namespace {

/// What is dropped is the oldest, which tells the least.
constexpr std::size_t kMost = 64;

}  // namespace

void VolumesKnown::wrote(TimePoint asked, const std::string& name,
                         std::vector<std::string> before) {
  MutexLock lock(mutex_);
  writes_.push_back({asked, name, std::move(before)});
  if (writes_.size() > kMost) writes_.pop_front();
}

TimePoint VolumesKnown::until() {
  MutexLock lock(mutex_);
  look();
  return until_;
}

TimePoint VolumesKnown::awaited() {
  MutexLock lock(mutex_);
  look();
  TimePoint last = TimePoint::min();
  for (const Write& write : writes_) last = std::max(last, write.asked);
  return last;
}

void VolumesKnown::look() {
  std::erase_if(writes_, [&](const Write& write) {
    const auto volume = volumes_.get({"", write.name});
    const bool is_shown =
        volume == nullptr || std::find(write.before.begin(), write.before.end(),
                                       volume->meta.resource_version) == write.before.end();
    if (is_shown) until_ = std::max(until_, write.asked);
    return is_shown;
  });
}

}  // namespace lpp::provisioner
