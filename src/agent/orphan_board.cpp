// SPDX-License-Identifier: Apache-2.0
#include "agent/orphan_board.h"

#include <utility>

namespace lpp::agent {

void OrphanBoard::drop(List& list) {
  count_ -= list.directories.size();
  list = {};
}

void OrphanBoard::drop_if_empty(std::map<std::string, Node>::iterator node) {
  const auto& [known, coming] = node->second;
  const bool any = !known.directories.empty() || known.left_out > 0 ||
                   !coming.directories.empty() || coming.left_out > 0;
  if (!any) nodes_.erase(node);
}

void OrphanBoard::note(const std::string& node, const InventoryPart& part) {
  MutexLock lock(mutex_);
  const auto it = nodes_.try_emplace(node).first;
  auto& [known, coming] = it->second;
  if (part.first) drop(coming);
  for (const Listed& one : part.directories) {
    if (coming.directories.size() == kMostOfNode || count_ == kMost) {
      ++coming.left_out;
      continue;
    }
    coming.directories.push_back(one);
    ++count_;
  }
  coming.left_out += part.left_out;
  if (part.last) {
    drop(known);
    known = std::exchange(coming, {});
  }
  drop_if_empty(it);
}

void OrphanBoard::forget_parts(const std::string& node) {
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  drop(it->second.coming);
  drop_if_empty(it);
}

void OrphanBoard::forget_node(const std::string& node) {
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  drop(it->second.coming);
  drop(it->second.known);
  nodes_.erase(it);
}

void OrphanBoard::forget_all() {
  MutexLock lock(mutex_);
  nodes_.clear();
  count_ = 0;
}

std::vector<OrphanBoard::Entry> OrphanBoard::all() const {
  std::vector<Entry> all;
  MutexLock lock(mutex_);
  for (const auto& [name, node] : nodes_) {
    for (const Listed& one : node.known.directories) all.push_back({name, one});
  }
  return all;
}

std::map<std::string, std::int64_t> OrphanBoard::left_out() const {
  std::map<std::string, std::int64_t> all;
  MutexLock lock(mutex_);
  for (const auto& [name, node] : nodes_) {
    if (node.known.left_out > 0) all[name] = node.known.left_out;
  }
  return all;
}

}  // namespace lpp::agent
