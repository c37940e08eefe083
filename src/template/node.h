// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lpp::gotemplate {

enum class NodeType {
  kAction,
  kBool,
  kBreak,
  kChain,
  kCommand,
  kContinue,
  kDot,
  kElse,  // only while parsing
  kEnd,   // only while parsing
  kField,
  kIdentifier,
  kIf,
  kList,
  kNil,
  kNumber,
  kPipe,
  kRange,
  kString,
  kText,
  kVariable,
  kWith,
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

/// One node of a parsed template; which members are in use depends on the type. Immutable once
/// parsed.
struct Node {
  NodeType type = NodeType::kList;
  std::size_t position = 0;             // byte offset in the template
  std::string text{};                   // of a text, identifier or number; a string's literal
  std::string value{};                  // of a string, without quotes
  std::vector<std::string> names{};     // of a field, variable ("$x" first) or chain
  bool truth = false;                   // of a bool
  std::int64_t integer = 0;             // of a number
  bool overflows = false;               // a number that is too large for an int
  std::vector<NodePtr> nodes{};         // list: items; pipe: commands; command: words; chain: term
  std::vector<NodePtr> declarations{};  // pipe: variables
  bool assigns = false;                 // pipe: "=" instead of ":="
  NodePtr pipe{};                       // action, if, range, with
  NodePtr list{};                       // if, range, with
  NodePtr else_list{};
};

/// A parsed template.
struct Tree {
  std::string name{};
  std::string text{};
  NodePtr root{};
};

/// The node as text, as Go prints it in error messages.
std::string to_string(const Node& node);

}  // namespace lpp::gotemplate
