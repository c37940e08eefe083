// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <forward_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lpp::k8s {

class ValueTree;

/// A value of what was read: as in JSON, but nothing is copied. A handle, to be passed by value;
/// it and its texts live until its tree is changed, and no longer than the bytes that were read.
class Value {
 public:
  enum class Type : std::uint8_t { kNull, kText, kNumber, kBoolean, kList, kObject };

  /// null, as everything that is not there.
  Value() = default;

  Type type() const;
  bool is_null() const { return type() == Type::kNull; }
  bool is_text() const { return type() == Type::kText; }
  bool is_list() const { return type() == Type::kList; }
  bool is_object() const { return type() == Type::kObject; }

  /// Its field's, in an object.
  std::string_view name() const;
  /// Empty for what is no text.
  std::string_view text() const;
  /// Of a number or a boolean, as in JSON.
  std::string_view spelling() const;
  /// The field of that name, the last one if there are several.
  Value find(std::string_view name) const;

  /// Calls visit(Value) for each item of a list or field of an object.
  template <typename Visit>
  void each(const Visit& visit) const;

 private:
  friend class ValueTree;
  Value(const ValueTree& tree, std::uint32_t index) : tree_(&tree), index_(index) {}

  const ValueTree* tree_ = nullptr;
  std::uint32_t index_ = 0;
};

/// Where the values of one object, frame or list are. Meant to be used again and again: it keeps
/// its memory. Not thread-safe.
class ValueTree {
 public:
  /// Of a value in this tree.
  using Index = std::uint32_t;

  ValueTree() = default;
  ValueTree(const ValueTree&) = delete;  // values point to their tree
  ValueTree& operator=(const ValueTree&) = delete;
  ~ValueTree() = default;

  Value root() const { return nodes_.empty() ? Value() : Value(*this, 0); }

  /// Begins anew. The first value that is added is the root.
  void clear();
  /// Begins anew with a copy of a JSON value; gives the root.
  Value assign(const nlohmann::json& value);

  /// Adds the last item of a list, or field of an object; `parent` of the root is not looked at.
  Index add(Index parent, std::string_view name, Value::Type type, std::string_view text = {});
  /// Sets the field of that name; what an old one held is gone.
  Index put(Index object, std::string_view name, Value::Type type, std::string_view text = {});
  /// The field of that name as it is, or as a new one; a list or an object.
  Index reopen(Index object, std::string_view name, Value::Type type);

  /// A text that stands nowhere in what was read: lives as long as the values.
  std::string_view keep(std::string text);

 private:
  friend class Value;
  static constexpr Index kNone = ~Index{0};

  struct Node {
    std::string_view name{};
    std::string_view text{};
    Index first = kNone;  // of its children
    Index last = kNone;
    Index next = kNone;  // of its parent's children
    Value::Type type = Value::Type::kNull;
  };

  Index find(Index object, std::string_view name) const;
  void copy(const nlohmann::json& value, Index parent, std::string_view name);

  std::vector<Node> nodes_;
  std::forward_list<std::string> texts_;
};

/// The value as JSON.
nlohmann::json to_json(Value value);

template <typename Visit>
void Value::each(const Visit& visit) const {
  if (tree_ == nullptr) return;
  for (auto at = tree_->nodes_[index_].first; at != ValueTree::kNone; at = tree_->nodes_[at].next) {
    visit(Value(*tree_, at));
  }
}

}  // namespace lpp::k8s
