// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace lpp::k8s {

/// Map from text whose entries belong to namespaces. When it is full it forgets the entry unused
/// for longest of the namespace that has most, so that one cannot push out what is known of the
/// others. Not thread-safe.
template <typename Value>
class LruMap {
 public:
  explicit LruMap(std::size_t capacity) : capacity_(capacity) {}

  /// The value of that key, a new one of that namespace if there is none; valid until the next
  /// call.
  Value& at(std::string_view ns, std::string_view key) {
    if (const auto it = index_.find(key); it != index_.end()) {
      Entries& entries = *it->second.of;
      entries.splice(entries.begin(), entries, it->second.at);
      return entries.front().second;
    }
    if (index_.size() >= capacity_) forget_one();
    Entries& entries = namespaces_[std::string(ns)];
    entries.emplace_front(std::string(key), Value{});
    // The nodes of lists and maps do not move: references to what is in them stay valid.
    index_.emplace(entries.front().first, Place{&entries, entries.begin()});
    return entries.front().second;
  }

  std::size_t size() const { return index_.size(); }

 private:
  using Entries = std::list<std::pair<std::string, Value>>;  // most recently used first
  struct Place {
    Entries* of;
    typename Entries::iterator at;
  };

  void forget_one() {
    const auto most = std::max_element(
        namespaces_.begin(), namespaces_.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    Entries& entries = most->second;
    index_.erase(entries.back().first);
    entries.pop_back();
    if (entries.empty()) namespaces_.erase(most);
  }

  const std::size_t capacity_;
  std::unordered_map<std::string, Entries> namespaces_;
  std::unordered_map<std::string_view, Place> index_;
};

}  // namespace lpp::k8s
