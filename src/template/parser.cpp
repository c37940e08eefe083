// SPDX-License-Identifier: Apache-2.0
#include "template/parser.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "template/failure.h"
#include "template/format.h"
#include "template/functions.h"
#include "template/lexer.h"
#include "template/number.h"
#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

/// Bounds the recursion of parser and evaluator.
constexpr int kMaxDepth = 100;

NodePtr make(NodeType type, std::size_t position, std::string text = {}) {
  auto node = std::make_unique<Node>();
  node->type = type;
  node->position = position;
  node->text = std::move(text);
  return node;
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  for (const auto name : split(text, '.')) names.emplace_back(name);
  return names;
}

bool starts_operand(TokenType type) {
  switch (type) {
    case TokenType::kBool:
    case TokenType::kCharConstant:
    case TokenType::kComplex:
    case TokenType::kDot:
    case TokenType::kField:
    case TokenType::kIdentifier:
    case TokenType::kNumber:
    case TokenType::kNil:
    case TokenType::kRawString:
    case TokenType::kString:
    case TokenType::kVariable:
    case TokenType::kLeftParen: return true;
    default: return false;
  }
}

/// "if", "range" or "with", with its condition, its list and the list of else.
enum class Control { kIf, kRange, kWith };

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(lex(text)) {}

  NodePtr parse() {
    auto root = make(NodeType::kList, peek().position);
    while (peek().type != TokenType::kEof) {
      auto node = text_or_action();
      if (node->type == NodeType::kEnd || node->type == NodeType::kElse) {
        fail("unexpected " + to_string(*node), node->position);
      }
      root->nodes.push_back(std::move(node));
    }
    return root;
  }

 private:
  const Token& peek() const { return tokens_[next_]; }
  /// The last token is never passed.
  const Token& next() {
    const Token& token = tokens_[next_];
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }
  void skip_space() {
    while (peek().type == TokenType::kSpace) next();
  }
  const Token& next_non_space() {
    skip_space();
    return next();
  }
  const Token& peek_non_space() {
    skip_space();
    return peek();
  }

  [[noreturn]] static void fail(std::string message, std::size_t position) {
    throw Failure{position, std::move(message)};
  }
  [[noreturn]] static void unexpected(const Token& token, const std::string& context) {
    if (token.type == TokenType::kError) fail(token.text, token.position);
    fail("unexpected " + describe(token) + " in " + context, token.position);
  }
  const Token& expect(TokenType type, const std::string& context) {
    const Token& token = next_non_space();
    if (token.type != type) unexpected(token, context);
    return token;
  }

  /// Text or action; ends a list by kEnd or kElse.
  NodePtr text_or_action() {
    const Token& token = next_non_space();
    if (token.type == TokenType::kText) return make(NodeType::kText, token.position, token.text);
    if (token.type == TokenType::kLeftDelim) return action();
    unexpected(token, "input");
  }

  NodePtr action() {
    const Token& token = peek_non_space();
    switch (token.type) {
      case TokenType::kBlock:
      case TokenType::kDefine:
      case TokenType::kTemplate:
        fail("{{" + token.text + "}} is not supported in patterns", token.position);
      case TokenType::kBreak:
      case TokenType::kContinue: return loop_control();
      case TokenType::kElse: next(); return else_control();
      case TokenType::kEnd:
        next();
        return make(NodeType::kEnd, expect(TokenType::kRightDelim, "end").position);
      case TokenType::kIf: next(); return control(Control::kIf);
      case TokenType::kRange: next(); return control(Control::kRange);
      case TokenType::kWith: next(); return control(Control::kWith);
      default: break;
    }
    auto node = make(NodeType::kAction, token.position);
    node->pipe = pipeline("command", TokenType::kRightDelim);
    return node;
  }

  NodePtr loop_control() {
    const Token& token = next();
    const bool is_break = token.type == TokenType::kBreak;
    const std::string name = "{{" + token.text + "}}";
    if (const Token& end = next_non_space(); end.type != TokenType::kRightDelim) {
      unexpected(end, name);
    }
    if (range_depth_ == 0) fail(name + " outside {{range}}", token.position);
    return make(is_break ? NodeType::kBreak : NodeType::kContinue, token.position);
  }

  NodePtr else_control() {
    const Token& token = peek_non_space();
    if (token.type != TokenType::kIf && token.type != TokenType::kWith) {
      expect(TokenType::kRightDelim, "else");
    }
    return make(NodeType::kElse, token.position);
  }

  /// Items up to {{end}} or {{else}}, which is returned apart.
  NodePtr item_list(NodePtr& end) {
    auto list = make(NodeType::kList, peek_non_space().position);
    while (peek_non_space().type != TokenType::kEof) {
      auto node = text_or_action();
      if (node->type == NodeType::kEnd || node->type == NodeType::kElse) {
        end = std::move(node);
        return list;
      }
      list->nodes.push_back(std::move(node));
    }
    fail("unexpected EOF", peek().position);
  }

  NodePtr control(Control kind) {
    enter(peek().position);
    const std::size_t variables = variables_.size();
    const bool range = kind == Control::kRange;
    const std::string context = range ? "range" : kind == Control::kIf ? "if" : "with";
    auto node = make(range                  ? NodeType::kRange
                     : kind == Control::kIf ? NodeType::kIf
                                            : NodeType::kWith,
                     0);
    node->pipe = pipeline(context, TokenType::kRightDelim);
    node->position = node->pipe->position;
    range_depth_ += range ? 1 : 0;
    NodePtr end;
    node->list = item_list(end);
    range_depth_ -= range ? 1 : 0;
    if (end->type == NodeType::kElse) node->else_list = else_list(kind, end->position);
    variables_.resize(variables);
    leave();
    return node;
  }

  /// "{{else if}}" stands for "{{else}}{{if}}" with a second {{end}}; the same for with.
  NodePtr else_list(Control kind, std::size_t position) {
    const TokenType type = peek().type;
    if ((kind == Control::kIf && type == TokenType::kIf) ||
        (kind == Control::kWith && type == TokenType::kWith)) {
      next();
      auto list = make(NodeType::kList, position);
      list->nodes.push_back(control(kind));
      return list;
    }
    NodePtr end;
    auto list = item_list(end);
    if (end->type != NodeType::kEnd) {
      fail("expected end; found " + to_string(*end), end->position);
    }
    return list;
  }

  NodePtr pipeline(const std::string& context, TokenType end) {
    auto pipe = make(NodeType::kPipe, peek_non_space().position);
    declarations(*pipe, context);
    while (true) {
      const Token& token = peek_non_space();
      if (token.type == end) {
        next();
        check_pipeline(*pipe, context, token.position);
        return pipe;
      }
      if (!starts_operand(token.type)) unexpected(token, context);
      pipe->nodes.push_back(command());
    }
  }

  void declarations(Node& pipe, const std::string& context) {
    while (peek_non_space().type == TokenType::kVariable) {
      const std::size_t before = next_;
      const Token variable = next();
      const Token& after = peek_non_space();
      const bool comma = after.type == TokenType::kChar && after.text == ",";
      if (!comma && after.type != TokenType::kAssign && after.type != TokenType::kDeclare) {
        next_ = before;  // an operand
        return;
      }
      pipe.assigns = after.type == TokenType::kAssign;
      next();
      auto node = make(NodeType::kVariable, variable.position);
      node->names = split_names(variable.text);
      pipe.declarations.push_back(std::move(node));
      variables_.push_back(variable.text);
      if (!comma) return;
      if (context != "range" || pipe.declarations.size() >= 2) {
        fail("too many declarations in " + context, variable.position);
      }
      const TokenType type = peek_non_space().type;
      if (type != TokenType::kVariable && type != TokenType::kRightDelim &&
          type != TokenType::kRightParen) {
        fail("range can only initialize variables", peek().position);
      }
    }
  }

  static void check_pipeline(const Node& pipe, const std::string& context, std::size_t position) {
    if (pipe.nodes.empty()) fail("missing value for " + context, position);
    for (std::size_t i = 1; i < pipe.nodes.size(); ++i) {
      switch (pipe.nodes[i]->nodes.front()->type) {
        case NodeType::kBool:
        case NodeType::kDot:
        case NodeType::kNil:
        case NodeType::kNumber:
        case NodeType::kString:
          fail("non executable command in pipeline stage " + std::to_string(i + 1),
               pipe.nodes[i]->position);
        default: break;
      }
    }
  }

  NodePtr command() {
    auto command = make(NodeType::kCommand, peek_non_space().position);
    while (true) {
      skip_space();
      if (auto word = operand()) command->nodes.push_back(std::move(word));
      const Token& token = peek();
      if (token.type == TokenType::kSpace) {
        next();
        continue;
      }
      if (token.type == TokenType::kPipe) {
        next();
      } else if (token.type != TokenType::kRightDelim && token.type != TokenType::kRightParen) {
        unexpected(token, "operand");
      }
      break;
    }
    if (command->nodes.empty()) fail("empty command", command->position);
    refuse_format(*command);
    return command;
  }

  /// A format that can never be used is told of before there is a claim.
  static void refuse_format(const Node& command) {
    const auto& words = command.nodes;
    if (words.size() < 2 || words[0]->text != "printf" || words[0]->type != NodeType::kIdentifier ||
        words[1]->type != NodeType::kString) {
      return;
    }
    if (const auto good = check_format(words[1]->value); !good.ok()) {
      fail("printf: " + good.error().message, words[1]->position);
    }
  }

  NodePtr operand() {
    auto node = term();
    if (!node || peek().type != TokenType::kField) return node;
    const std::size_t position = peek().position;
    std::vector<std::string> names;
    while (peek().type == TokenType::kField) names.push_back(next().text.substr(1));
    switch (node->type) {
      case NodeType::kField:
      case NodeType::kVariable:
        node->position = position;
        node->names.insert(node->names.end(), names.begin(), names.end());
        return node;
      case NodeType::kBool:
      case NodeType::kString:
      case NodeType::kNumber:
      case NodeType::kNil:
      case NodeType::kDot: fail("unexpected . after term " + quote(to_string(*node)), position);
      default: break;
    }
    auto chain = make(NodeType::kChain, position);
    chain->nodes.push_back(std::move(node));
    chain->names = std::move(names);
    return chain;
  }

  /// nullptr when the next token is no term.
  NodePtr term() {
    const Token& token = peek_non_space();
    if (!starts_operand(token.type)) return nullptr;
    next();
    switch (token.type) {
      case TokenType::kIdentifier:
        if (!is_function(token.text)) {
          fail("function " + quote(token.text) + " not defined", token.position);
        }
        return make(NodeType::kIdentifier, token.position, token.text);
      case TokenType::kDot: return make(NodeType::kDot, token.position);
      case TokenType::kNil: return make(NodeType::kNil, token.position);
      case TokenType::kVariable: return variable(token);
      case TokenType::kField: {
        auto node = make(NodeType::kField, token.position);
        node->names = split_names(std::string_view(token.text).substr(1));
        return node;
      }
      case TokenType::kBool: {
        auto node = make(NodeType::kBool, token.position);
        node->truth = token.text == "true";
        return node;
      }
      case TokenType::kLeftParen: {
        enter(token.position);
        auto pipe = pipeline("parenthesized pipeline", TokenType::kRightParen);
        leave();
        return pipe;
      }
      case TokenType::kString:
      case TokenType::kRawString: return string(token);
      default: return number(token);
    }
  }

  NodePtr variable(const Token& token) {
    auto node = make(NodeType::kVariable, token.position);
    node->names = split_names(token.text);
    if (std::find(variables_.begin(), variables_.end(), node->names.front()) == variables_.end()) {
      fail("undefined variable " + quote(node->names.front()), token.position);
    }
    return node;
  }

  static NodePtr string(const Token& token) {
    auto node = make(NodeType::kString, token.position, token.text);
    auto value = unquote(token.text);
    if (!value.has_value()) fail("invalid syntax", token.position);
    node->value = *std::move(value);
    return node;
  }

  static NodePtr number(const Token& token) {
    auto node = make(NodeType::kNumber, token.position, token.text);
    if (auto problem = parse_number(*node); !problem.empty()) {
      fail(std::move(problem), token.position);
    }
    return node;
  }

  void enter(std::size_t position) {
    if (++depth_ > kMaxDepth) fail("max expression depth exceeded", position);
  }
  void leave() { --depth_; }

  const std::vector<Token> tokens_;
  std::size_t next_ = 0;
  std::vector<std::string> variables_{"$"};
  int range_depth_ = 0;
  int depth_ = 0;
};

}  // namespace

Tree parse(std::string name, std::string text) {
  NodePtr root = Parser(text).parse();
  return Tree{std::move(name), std::move(text), std::move(root)};
}

}  // namespace lpp::gotemplate
