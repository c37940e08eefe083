#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace lpp::k8s {

/// Map from text that forgets the entry unused for longest when it is full. Not thread-safe.
template <typename Value>
class LruMap {
 public:
  explicit LruMap(std::size_t capacity) : capacity_(capacity) {}

  /// The value of that key, a new one if there is none; valid until the next call.
  Value& operator[](std::string_view key) {
    if (const auto it = index_.find(key); it != index_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return entries_.front().second;
    }
    if (entries_.size() >= capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(std::string(key), Value{});
    // The list's nodes do not move: a view of the key in them stays valid.
    index_.emplace(entries_.front().first, entries_.begin());
    return entries_.front().second;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<std::string, Value>>;

  const std::size_t capacity_;
  Entries entries_;  // most recently used first
  std::unordered_map<std::string_view, typename Entries::iterator> index_;
};

}  // namespace lpp::k8s
