// SPDX-License-Identifier: Apache-2.0
#include "operation/usage.h"

namespace lpp::operation {

void UsageBoard::note(const std::string& node, const std::string& path, const Usage& usage) {
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it != nodes_.end()) {
    if (const auto known = it->second.find(path); known != it->second.end()) {
      known->second = usage;
      return;
    }
    if (it->second.size() >= kMostOfNode) return;
  }
  if (count_ >= kMost) return;
  nodes_[node].emplace(path, usage);
  ++count_;
}

void UsageBoard::drop_if_empty(std::map<std::string, Paths>::iterator node) {
  if (node->second.empty()) nodes_.erase(node);
}

void UsageBoard::forget(const std::string& node, const std::string& path) {
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  count_ -= it->second.erase(path);
  drop_if_empty(it);
}

void UsageBoard::keep_only(const std::string& node, const std::set<std::string>& paths) {
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  count_ -= std::erase_if(it->second, [&](const auto& one) { return !paths.contains(one.first); });
  drop_if_empty(it);
}

void UsageBoard::forget_node(const std::string& node) { keep_only(node, {}); }

void UsageBoard::forget_all() {
  MutexLock lock(mutex_);
  nodes_.clear();
  count_ = 0;
}

std::optional<Usage> UsageBoard::find(const std::string& node, const std::string& path) const {
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return std::nullopt;
  const auto known = it->second.find(path);
  return known == it->second.end() ? std::nullopt : std::optional(known->second);
}

std::vector<UsageBoard::Entry> UsageBoard::all() const {
  std::vector<Entry> entries;
  MutexLock lock(mutex_);
  entries.reserve(count_);
  for (const auto& [node, paths] : nodes_) {
    for (const auto& [path, usage] : paths) entries.push_back({node, path, usage});
  }
  return entries;
}

}  // namespace lpp::operation
