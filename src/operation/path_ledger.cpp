// SPDX-License-Identifier: Apache-2.0
#include "operation/path_ledger.h"

#include <algorithm>

#include "base/paths.h"

namespace lpp::operation {

std::optional<Holder> PathLedger::take(const Operation& operation) {
  const auto in_the_way = [&](const Operation& other) {
    if (other.volume_name == operation.volume_name) return false;
    const bool any_node =
        other.node.empty() || operation.node.empty() || other.shared || operation.shared;
    return any_node || surroundings_.may_be_one_node(other.node, operation.node);
  };
  MutexLock lock(mutex_);
  for (const auto* paths : {&recorded_, &decided_}) {
    if (const auto other = paths->find_overlapping(operation.path, in_the_way)) {
      return Holder{.volume_name = other->volume_name, .path = other->path};
    }
  }
  // Under the lock, so that a volume that comes into the cache now is seen either way: its decision
  // is released after that only.
  if (auto holder = surroundings_.volume_in_the_way(operation)) return holder;
  auto& mine = by_volume_[operation.volume_name];
  // Decided again after the configuration changed: it may have begun in either place.
  const bool taken = std::any_of(mine.begin(), mine.end(), [&](const Item& item) {
    return item->id() == operation.id() && item->path == operation.path &&
           item->node == operation.node;
  });
  if (!taken) {
    mine.push_back(std::make_shared<const Operation>(operation));
    decided_.add(mine.back());
  }
  return std::nullopt;
}

void PathLedger::release(const Operation& operation) {
  MutexLock lock(mutex_);
  const auto mine = by_volume_.find(operation.volume_name);
  if (mine == by_volume_.end()) return;
  auto& items = mine->second;
  for (auto it = items.begin(); it != items.end();) {
    if ((*it)->id() == operation.id()) {
      decided_.remove(*it);
      it = items.erase(it);
    } else {
      ++it;
    }
  }
  if (items.empty()) by_volume_.erase(mine);
}

void PathLedger::release(std::string_view volume_name) {
  MutexLock lock(mutex_);
  const auto it = by_volume_.find(std::string(volume_name));
  if (it == by_volume_.end()) return;
  for (const Item& item : it->second) decided_.remove(item);
  by_volume_.erase(it);
}

void PathLedger::release_all() {
  MutexLock lock(mutex_);
  for (const auto& [volume, items] : by_volume_) {
    for (const Item& item : items) decided_.remove(item);
  }
  by_volume_.clear();
}

void PathLedger::add(const std::shared_ptr<const Operation>& operation) {
  MutexLock lock(mutex_);
  recorded_.add(operation);
}

void PathLedger::remove(const std::shared_ptr<const Operation>& operation) {
  MutexLock lock(mutex_);
  recorded_.remove(operation);
}

std::vector<std::shared_ptr<const Operation>> PathLedger::makes_below(
    std::string_view node, std::string_view base_path) const {
  std::unordered_map<std::string, Item> by_volume;
  MutexLock lock(mutex_);
  for (const auto* paths : {&recorded_, &decided_}) {
    for (const Item& item : paths->all_overlapping(base_path)) {
      const bool is_meant =
          item->kind == Kind::kMake && item->node == node && strictly_below(item->path, base_path);
      if (is_meant) by_volume.emplace(item->volume_name, item);
    }
  }
  std::vector<Item> all;
  all.reserve(by_volume.size());
  for (auto& [name, item] : by_volume) all.push_back(std::move(item));
  return all;
}

std::size_t PathLedger::decisions() const {
  MutexLock lock(mutex_);
  std::size_t count = 0;
  for (const auto& [volume, items] : by_volume_) count += items.size();
  return count;
}

}  // namespace lpp::operation
