// SPDX-License-Identifier: Apache-2.0
#include "operation/space.h"

namespace lpp::operation {

void SpaceBoard::note(const std::string& node, const std::string& base_path, const Space& space) {
  MutexLock lock(mutex_);
  const auto it = spaces_.find({node, base_path});
  if (it != spaces_.end()) {
    Space now = space;
    if (now.filesystem.empty()) now.filesystem = std::move(it->second.space.filesystem);
    it->second = {std::move(now), ++last_};
  } else if (spaces_.size() < kMost) {
    spaces_.emplace(Key{node, base_path}, Told{space, ++last_});
  }
}

void SpaceBoard::confirm(const std::string& node) {
  MutexLock lock(mutex_);
  for (auto it = spaces_.lower_bound({node, {}}); it != spaces_.end() && it->first.first == node;
       ++it) {
    it->second.number = ++last_;
  }
}

std::optional<Space> SpaceBoard::find(const std::string& node, const std::string& base_path) const {
  MutexLock lock(mutex_);
  const auto it = spaces_.find({node, base_path});
  return it == spaces_.end() ? std::nullopt : std::optional(it->second.space);
}

std::vector<std::string> SpaceBoard::beside(const std::string& node,
                                            const std::string& base_path) const {
  std::vector<std::string> paths{base_path};
  MutexLock lock(mutex_);
  const auto own = spaces_.find({node, base_path});
  if (own == spaces_.end() || own->second.space.filesystem.empty()) return paths;
  for (auto it = spaces_.lower_bound({node, {}}); it != spaces_.end() && it->first.first == node;
       ++it) {
    const bool same = it->second.space.filesystem == own->second.space.filesystem;
    if (same && it != own) paths.push_back(it->first.second);
  }
  return paths;
}

std::vector<SpaceBoard::Entry> SpaceBoard::all() const {
  std::vector<Entry> entries;
  MutexLock lock(mutex_);
  entries.reserve(spaces_.size());
  for (const auto& [key, told] : spaces_) {
    entries.push_back({key.first, key.second, told.space, told.number});
  }
  return entries;
}

void SpaceBoard::forget_all() {
  MutexLock lock(mutex_);
  spaces_.clear();
}

void SpaceBoard::forget(const std::string& node) {
  MutexLock lock(mutex_);
  std::erase_if(spaces_, [&](const auto& entry) { return entry.first.first == node; });
}

}  // namespace lpp::operation
