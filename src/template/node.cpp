// SPDX-License-Identifier: Apache-2.0
#include "template/node.h"

#include <string_view>

namespace lpp::gotemplate {

namespace {

std::string join(const std::vector<std::string>& names, std::string_view before) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0 || !before.empty()) text += '.';
    text += names[i];
  }
  return text;
}

std::string parenthesized(const Node& node) {
  return node.type == NodeType::kPipe ? "(" + to_string(node) + ")" : to_string(node);
}

std::string pipe_text(const Node& pipe) {
  std::string text;
  for (const auto& variable : pipe.declarations) {
    if (!text.empty()) text += ", ";
    text += to_string(*variable);
  }
  if (!text.empty()) text += pipe.assigns ? " = " : " := ";
  for (std::size_t i = 0; i < pipe.nodes.size(); ++i) {
    if (i > 0) text += " | ";
    text += to_string(*pipe.nodes[i]);
  }
  return text;
}

std::string branch_text(std::string_view keyword, const Node& node) {
  std::string text = "{{" + std::string(keyword) + " " + to_string(*node.pipe) + "}}";
  text += to_string(*node.list);
  if (node.else_list) text += "{{else}}" + to_string(*node.else_list);
  return text + "{{end}}";
}

}  // namespace

std::string to_string(const Node& node) {
  std::string text;
  switch (node.type) {
    case NodeType::kAction: return "{{" + to_string(*node.pipe) + "}}";
    case NodeType::kBool: return node.truth ? "true" : "false";
    case NodeType::kBreak: return "{{break}}";
    case NodeType::kChain: return parenthesized(*node.nodes.front()) + join(node.names, ".");
    case NodeType::kCommand:
      for (const auto& word : node.nodes) {
        if (!text.empty()) text += ' ';
        text += parenthesized(*word);
      }
      return text;
    case NodeType::kContinue: return "{{continue}}";
    case NodeType::kDot: return ".";
    case NodeType::kElse: return "{{else}}";
    case NodeType::kEnd: return "{{end}}";
    case NodeType::kField: return join(node.names, ".");
    case NodeType::kIdentifier:
    case NodeType::kNumber:
    case NodeType::kString:
    case NodeType::kText: return node.text;
    case NodeType::kIf: return branch_text("if", node);
    case NodeType::kList:
      for (const auto& item : node.nodes) text += to_string(*item);
      return text;
    case NodeType::kNil: return "nil";
    case NodeType::kPipe: return pipe_text(node);
    case NodeType::kRange: return branch_text("range", node);
    case NodeType::kVariable: return join(node.names, "");
    case NodeType::kWith: return branch_text("with", node);
  }
  return text;
}

}  // namespace lpp::gotemplate
