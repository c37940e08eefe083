// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devcluster/apiserver/registry.h"
#include "devcluster/apiserver/resources.h"
#include "devcluster/json_names.h"

/// Objects and their history, without any rule of the API. Not thread-safe: the Registry's lock
/// protects it.
namespace lpp::devcluster {

/// One change. Versions in the history are consecutive.
struct Change {
  std::uint64_t version = 0;
  std::size_t resource = 0;  ///< index into resource_table()
  std::string key{};
  WatchEventType type = WatchEventType::kAdded;
  ObjectPtr object{};    ///< after the change; for kDeleted the last state
  ObjectPtr previous{};  ///< before the change; null for kAdded
};

class Store {
 public:
  using Objects = std::map<std::string, ObjectPtr, std::less<>>;

  Store(std::size_t history_size, std::uint64_t first_version);

  static std::string key(std::string_view ns, std::string_view name);

  ObjectPtr find(std::size_t resource, std::string_view key) const;
  const Objects& objects(std::size_t resource) const { return tables_[resource]; }

  /// Sets metadata.resourceVersion and records the change.
  ObjectPtr put(std::size_t resource, const std::string& key, Json object);
  /// Removes the object; the result is its last state with the version of the removal.
  ObjectPtr erase(std::size_t resource, const std::string& key);

  std::uint64_t version() const { return version_; }
  /// Changes up to and including this version are forgotten.
  std::uint64_t compacted() const { return compacted_; }
  /// The first change after `version`; history().end() when there is none.
  std::deque<Change>::const_iterator after(std::uint64_t version) const;
  const std::deque<Change>& history() const { return history_; }

  /// The objects as they were at `version`; empty when that is compacted.
  std::optional<Objects> at_version(std::size_t resource, std::uint64_t version) const;
  /// Forgets the history and takes a new version, so that no version handed out is current.
  void compact();

 private:
  void record(Change change);

  const std::size_t history_size_;
  std::vector<Objects> tables_;
  std::deque<Change> history_;
  std::uint64_t version_;
  std::uint64_t compacted_;
};

}  // namespace lpp::devcluster
