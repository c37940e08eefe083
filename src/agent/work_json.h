// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "agent/protocol.h"
#include "base/json_members.h"
#include "base/result.h"
#include "operation/executor.h"
#include "operation/operation.h"

// The parts that messages between controller and agents have in common, in JSON. What is read is
// bounded and judged: it may come from anybody who has a node.

namespace lpp::agent {

/// Of a disk's or a cluster's identity.
inline constexpr std::size_t kMaxDisk = 64;
/// Of an order's serial.
inline constexpr std::size_t kMaxSerial = 512;

template <typename Table, typename Value>
std::string_view word_of(const Table& table, Value value) {
  for (const auto& [word, meant] : table) {
    if (meant == value) return word;
  }
  return table.front().first;
}

template <typename Table, typename Value>
void read_word(JsonMembers& members, const char* name, const Table& table, Value& to) {
  std::string text;
  members.text(name, text);
  if (text.empty()) return;
  for (const auto& [word, meant] : table) {
    if (word == text) {
      to = meant;
      return;
    }
  }
  members.complain(name, "is not known");
}

/// Texts may come from file systems, in any bytes.
std::string dump(const nlohmann::json& value);

/// What is for people, and names: cut where a letter ends, or it would read otherwise when it is
/// sent on.
void cut(std::string& text, std::size_t most);

/// What the members of an object `of` this name complain about.
Result<void> whole(const JsonMembers& members, std::string_view of);

nlohmann::json to_json(const operation::Space& space);
nlohmann::json to_json(const operation::Id& id);
nlohmann::json to_json(const Ended& ended);
nlohmann::json to_json(const operation::Progress& progress);
/// An operation that cannot be written (a text that is not UTF-8) is left out by whoever made it.
nlohmann::json to_json(const operation::Operation& operation);
nlohmann::json to_json(const Work& work);

/// Of the member "space", if there is one.
Result<std::optional<operation::Space>> read_space(const nlohmann::json& object);
Result<operation::Id> read_id(const nlohmann::json& object);
Result<Ended> read_ended(const nlohmann::json& object);
Result<operation::Progress> read_progress(const nlohmann::json& object);
/// Of the member "operation".
Result<operation::Operation> read_operation(const nlohmann::json& object);
/// Of an operation that stands in a list by itself.
Result<operation::Operation> read_bare_operation(const nlohmann::json& object);
Result<Work> read_work(const nlohmann::json& object);

}  // namespace lpp::agent
