// SPDX-License-Identifier: Apache-2.0
#include "operation/space.h"

#include <algorithm>

#include "operation/operation.h"

namespace lpp::operation {

namespace {

constexpr std::int64_t kMostBytes = 1LL << 62U;

}  // namespace

std::int64_t add_sizes(std::int64_t a, std::int64_t b) {
  return std::min(std::min(a, kMostBytes) + std::min(b, kMostBytes - 1), kMostBytes);
}

std::int64_t Promises::not_used_yet(const Space& space) const {
  // What is used and by no volume with a limit may be by those without.
  const std::int64_t all = std::max<std::int64_t>(space.size - space.free, 0);
  const std::int64_t others = std::max<std::int64_t>(all - used, 0);
  return add_sizes(unused, std::max<std::int64_t>(unlimited - others, 0));
}

Promises promises_of(const Operation& make) {
  const std::int64_t size = std::max<std::int64_t>(make.size_bytes, 0);
  return make.limits.hard ? Promises{.unused = size} : Promises{.unlimited = size};
}

Promises& Promises::operator+=(const Promises& other) {
  unused = add_sizes(unused, other.unused);
  used = add_sizes(used, other.used);
  unlimited = add_sizes(unlimited, other.unlimited);
  return *this;
}

SpaceBoard::Told* SpaceBoard::renew(const std::string& node, const std::string& base_path,
                                    Space space) {
  const auto it = spaces_.find({node, base_path});
  if (it == spaces_.end() && spaces_.size() >= kMost) return nullptr;
  Told& told = it == spaces_.end() ? spaces_[{node, base_path}] : it->second;
  if (space.filesystem.empty()) space.filesystem = std::move(told.space.filesystem);
  told.space = std::move(space);
  told.number = ++last_;
  return &told;
}

void SpaceBoard::note(const std::string& node, const std::string& base_path, const Space& space) {
  MutexLock lock(mutex_);
  if (Told* const told = renew(node, base_path, space)) told->made.clear();
}

void SpaceBoard::note_work(const std::string& node, const std::string& base_path,
                           const Space& space) {
  MutexLock lock(mutex_);
  const auto it = spaces_.find({node, base_path});
  Space now = space;
  if (it != spaces_.end()) now.promises = it->second.space.promises;
  renew(node, base_path, std::move(now));
}

void SpaceBoard::note_made(const std::string& node, const std::string& base_path,
                           const std::string& path, const Promises& promises) {
  MutexLock lock(mutex_);
  const auto it = spaces_.find({node, base_path});
  if (it != spaces_.end() && it->second.space.promises) it->second.made[path] = promises;
}

void SpaceBoard::note_removed(const std::string& node, const std::string& base_path,
                              const std::string& path) {
  MutexLock lock(mutex_);
  const auto it = spaces_.find({node, base_path});
  if (it != spaces_.end()) it->second.made.erase(path);
}

std::optional<Promises> SpaceBoard::promises(const std::string& node,
                                             const std::vector<std::string>& base_paths) const {
  Promises sum;
  MutexLock lock(mutex_);
  for (const std::string& base_path : base_paths) {
    const auto it = spaces_.find({node, base_path});
    if (it == spaces_.end() || !it->second.space.promises) return std::nullopt;
    sum += *it->second.space.promises;
    for (const auto& [path, promises] : it->second.made) sum += promises;
  }
  return sum;
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
