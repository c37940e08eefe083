// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/store.h"

#include <algorithm>

namespace lpp::devcluster {

Store::Store(std::size_t history_size, std::uint64_t first_version)
    : history_size_(std::max<std::size_t>(1, history_size)),
      tables_(resource_table().size()),
      version_(first_version),
      compacted_(first_version) {}

std::string Store::key(std::string_view ns, std::string_view name) {
  std::string key(ns);
  if (!ns.empty()) key += '/';
  key += name;
  return key;
}

ObjectPtr Store::find(std::size_t resource, std::string_view key) const {
  const auto it = tables_[resource].find(key);
  return it == tables_[resource].end() ? nullptr : it->second;
}

ObjectPtr Store::put(std::size_t resource, const std::string& key, Json object) {
  Change change;
  change.resource = resource;
  change.key = key;
  change.previous = find(resource, key);
  change.type = change.previous == nullptr ? WatchEventType::kAdded : WatchEventType::kModified;
  change.version = version_ + 1;
  object["metadata"]["resourceVersion"] = std::to_string(change.version);
  auto stored = std::make_shared<const Json>(std::move(object));
  change.object = stored;
  tables_[resource][key] = stored;
  record(std::move(change));
  return stored;
}

ObjectPtr Store::erase(std::size_t resource, const std::string& key) {
  Change change;
  change.resource = resource;
  change.key = key;
  change.previous = find(resource, key);
  if (change.previous == nullptr) return nullptr;
  change.type = WatchEventType::kDeleted;
  change.version = version_ + 1;
  Json last = *change.previous;
  last["metadata"]["resourceVersion"] = std::to_string(change.version);
  auto gone = std::make_shared<const Json>(std::move(last));
  change.object = gone;
  tables_[resource].erase(key);
  record(std::move(change));
  return gone;
}

void Store::record(Change change) {
  version_ = change.version;
  history_.push_back(std::move(change));
  while (history_.size() > history_size_) {
    compacted_ = history_.front().version;
    history_.pop_front();
  }
}

std::deque<Change>::const_iterator Store::after(std::uint64_t version) const {
  if (history_.empty() || version >= version_) return history_.end();
  const std::uint64_t first = history_.front().version;
  if (version < first) return history_.begin();
  return history_.begin() + static_cast<std::ptrdiff_t>(version - first + 1);
}

std::optional<Store::Objects> Store::at_version(std::size_t resource, std::uint64_t version) const {
  if (version < compacted_) return std::nullopt;
  Objects objects = tables_[resource];
  for (auto it = history_.rbegin(); it != history_.rend() && it->version > version; ++it) {
    if (it->resource != resource) continue;
    if (it->previous == nullptr) {
      objects.erase(it->key);
    } else {
      objects[it->key] = it->previous;
    }
  }
  return objects;
}

void Store::compact() {
  history_.clear();
  compacted_ = ++version_;
}

}  // namespace lpp::devcluster
