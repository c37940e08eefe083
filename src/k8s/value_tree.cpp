// SPDX-License-Identifier: Apache-2.0
#include "k8s/value_tree.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace lpp::k8s {

namespace {

using nlohmann::json;

// A usual object has a tenth of it; more memory than that is not kept.
constexpr std::size_t kKeptNodes = 1024;

}  // namespace

Value::Type Value::type() const {
  return tree_ == nullptr ? Type::kNull : tree_->nodes_[index_].type;
}

std::string_view Value::name() const {
  return tree_ == nullptr ? std::string_view() : tree_->nodes_[index_].name;
}

std::string_view Value::text() const { return is_text() ? spelling() : std::string_view(); }

std::string_view Value::spelling() const {
  return tree_ == nullptr ? std::string_view() : tree_->nodes_[index_].text;
}

Value Value::find(std::string_view name) const {
  if (tree_ == nullptr) return {};
  const auto found = tree_->find(index_, name);
  return found == ValueTree::kNone ? Value() : Value(*tree_, found);
}

void ValueTree::clear() {
  if (nodes_.capacity() > kKeptNodes) nodes_ = {};
  nodes_.clear();
  texts_.clear();
}

ValueTree::Index ValueTree::add(Index parent, std::string_view name, Value::Type type,
                                std::string_view text) {
  const auto added = static_cast<Index>(nodes_.size());
  nodes_.push_back({.name = name, .text = text, .type = type});
  if (added == 0) return added;
  Node& above = nodes_[parent];
  (above.first == kNone ? above.first : nodes_[above.last].next) = added;
  above.last = added;
  return added;
}

ValueTree::Index ValueTree::find(Index object, std::string_view name) const {
  Index found = kNone;
  for (Index at = nodes_[object].first; at != kNone; at = nodes_[at].next) {
    if (nodes_[at].name == name) found = at;
  }
  return found;
}

ValueTree::Index ValueTree::put(Index object, std::string_view name, Value::Type type,
                                std::string_view text) {
  const Index found = find(object, name);
  if (found == kNone) return add(object, name, type, text);
  Node& node = nodes_[found];
  node.first = node.last = kNone;
  node.type = type;
  node.text = text;
  return found;
}

ValueTree::Index ValueTree::reopen(Index object, std::string_view name, Value::Type type) {
  const Index found = find(object, name);
  return found == kNone ? add(object, name, type) : found;
}

std::string_view ValueTree::keep(std::string text) { return texts_.emplace_front(std::move(text)); }

Value ValueTree::assign(const json& value) {
  clear();
  copy(value, kNone, {});
  return root();
}

void ValueTree::copy(const json& value, Index parent, std::string_view name) {
  using Type = Value::Type;
  switch (value.type()) {
    case json::value_t::object: {
      const Index object = add(parent, name, Type::kObject);
      for (const auto& [key, field] : value.items()) copy(field, object, keep(key));
      break;
    }
    case json::value_t::array: {
      const Index list = add(parent, name, Type::kList);
      for (const json& item : value) copy(item, list, {});
      break;
    }
    case json::value_t::string:
      add(parent, name, Type::kText, keep(value.get_ref<const std::string&>()));
      break;
    case json::value_t::boolean:
      add(parent, name, Type::kBoolean, value.get<bool>() ? "true" : "false");
      break;
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float: add(parent, name, Type::kNumber, keep(value.dump())); break;
    default: add(parent, name, Type::kNull);
  }
}

json to_json(Value value) {
  switch (value.type()) {
    case Value::Type::kText: return value.text();
    case Value::Type::kNumber:
    case Value::Type::kBoolean: return json::parse(value.spelling());
    case Value::Type::kList: {
      json list = json::array();
      value.each([&](Value item) { list.push_back(to_json(item)); });
      return list;
    }
    case Value::Type::kObject: {
      json object = json::object();
      value.each([&](Value field) { object[std::string(field.name())] = to_json(field); });
      return object;
    }
    case Value::Type::kNull: break;
  }
  return nullptr;
}

}  // namespace lpp::k8s
