// SPDX-License-Identifier: Apache-2.0
#include "template/evaluator.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "template/failure.h"
#include "template/format.h"
#include "template/functions.h"

namespace lpp::gotemplate {

namespace {

/// Bounds loops: labels and annotations of a claim have at most some thousands of entries.
constexpr int kMaxSteps = 100'000;

enum class Flow { kNext, kBreak, kContinue };

/// What an argument may be: anything, or a string only.
enum class Parameter { kAny, kString };

using Words = std::span<const NodePtr>;

class Evaluator {
 public:
  std::string run(const Tree& tree, const Object& data) {
    const Value dot = Value::of_object(data);
    variables_.emplace_back("$", dot);
    walk(dot, *tree.root);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Failure{node_->position, here(message)};
  }
  std::string here(const std::string& message) const {
    return "at <" + to_string(*node_) + ">: " + message;
  }
  /// What is missing counts as empty until it would be seen: that would be a mistake in a path.
  static void refuse_missing(const Value& value) {
    if (value.missing()) throw Failure{static_cast<std::size_t>(value.integer), value.text};
  }
  void at(const Node& node) {
    node_ = &node;
    if (++steps_ > kMaxSteps) fail("too many steps");
  }
  void write(std::string_view text) {
    out_ += text;
    if (out_.size() > kMaxText) fail("the text is longer than 64 KiB");
  }

  Flow walk(const Value& dot, const Node& node) {
    at(node);
    switch (node.type) {
      case NodeType::kAction: {
        const Value value = pipeline(dot, *node.pipe);
        if (node.pipe->declarations.empty()) print(node, value);
        return Flow::kNext;
      }
      case NodeType::kBreak: return Flow::kBreak;
      case NodeType::kContinue: return Flow::kContinue;
      case NodeType::kIf:
      case NodeType::kWith: return walk_condition(dot, node);
      case NodeType::kRange: return walk_range(dot, node);
      case NodeType::kList:
        for (const auto& item : node.nodes) {
          if (const Flow flow = walk(dot, *item); flow != Flow::kNext) return flow;
        }
        return Flow::kNext;
      default: write(node.text); return Flow::kNext;
    }
  }

  Flow walk_condition(const Value& dot, const Node& node) {
    const std::size_t mark = variables_.size();
    const Value value = pipeline(dot, *node.pipe);
    Flow flow = Flow::kNext;
    if (is_true(value)) {
      flow = walk(node.type == NodeType::kWith ? value : dot, *node.list);
    } else if (node.else_list) {
      flow = walk(dot, *node.else_list);
    }
    variables_.resize(mark);
    return flow;
  }

  Flow walk_range(const Value& dot, const Node& node) {
    const std::size_t mark = variables_.size();
    const Value over = pipeline(dot, *node.pipe);
    Flow flow = Flow::kNext;
    if (!iterate(over, node) && node.else_list) flow = walk(dot, *node.else_list);
    // Of this range, where an else continues the one around it.
    if (flow == Flow::kBreak) flow = Flow::kNext;
    variables_.resize(mark);
    return flow;
  }

  /// False when there was nothing to iterate over.
  bool iterate(const Value& over, const Node& node) {
    switch (over.kind) {
      case Kind::kInvalid:
      case Kind::kNoTime:
        if (over.kind == Kind::kNoTime) fail("range can't iterate over <nil>");
        return false;
      case Kind::kInt:
      case Kind::kInt64:
      case Kind::kByte:
        if (node.pipe->declarations.size() > 1) {
          fail("can't use " + std::to_string(over.integer) +
               " to iterate over more than one variable");
        }
        for (std::int64_t i = 0; i < over.integer; ++i) {
          Value element = over;
          element.integer = i;
          if (!once(node, Value{}, element)) break;
        }
        return over.integer > 0;
      case Kind::kList:
      case Kind::kObjects:
        for (std::size_t i = 0; i < over.size(); ++i) {
          const Value index = Value::of_int(static_cast<std::int64_t>(i));
          if (!once(node, index, over.element(i))) break;
        }
        return over.size() > 0;
      case Kind::kMap:
        for (const auto& [key, value] : *over.map) {
          if (!once(node, Value::of_string(key), Value::of_string(value))) break;
        }
        return !over.map->empty();
      default: {
        const auto text = sprint(std::span(&over, 1));
        fail("range can't iterate over " + (text.ok() ? *text : std::string(type_name(over))));
      }
    }
  }

  /// One iteration; false after a break.
  bool once(const Node& node, const Value& index, const Value& element) {
    const auto& declared = node.pipe->declarations;
    const std::size_t mark = variables_.size();
    if (node.pipe->assigns) {
      if (!declared.empty()) {
        set(declared[0]->names[0], declared.size() > 1 ? index : element);
      }
      if (declared.size() > 1) set(declared[1]->names[0], element);
    } else if (!declared.empty()) {
      variables_[mark - 1].second = element;
      if (declared.size() > 1) variables_[mark - 2].second = index;
    }
    const Flow flow = walk(element, *node.list);
    variables_.resize(mark);
    return flow != Flow::kBreak;
  }

  Value pipeline(const Value& dot, const Node& pipe) {
    at(pipe);
    std::optional<Value> value;
    for (const auto& node : pipe.nodes) value = command(dot, *node, value);
    for (const auto& variable : pipe.declarations) {
      if (pipe.assigns) {
        set(variable->names[0], *value);
      } else {
        variables_.emplace_back(variable->names[0], *value);
      }
    }
    return *std::move(value);
  }

  /// `last` is the value of the command before in the pipeline, if any.
  Value command(const Value& dot, const Node& node, const std::optional<Value>& last) {
    const Words words(node.nodes);
    const Node& first = *words[0];
    const bool has_arguments = words.size() > 1 || last.has_value();
    switch (first.type) {
      case NodeType::kField: return field(dot, first, has_arguments);
      case NodeType::kChain: return chain(dot, first, has_arguments);
      case NodeType::kIdentifier: return call(dot, first, node, words.subspan(1), last);
      case NodeType::kPipe: not_a_function(first, has_arguments); return pipeline(dot, first);
      case NodeType::kVariable: return variable(first, has_arguments);
      default: break;
    }
    at(first);
    not_a_function(first, has_arguments);
    if (first.type == NodeType::kNil) fail("nil is not a command");
    return constant(dot, first);
  }

  void not_a_function(const Node& node, bool has_arguments) const {
    if (has_arguments) fail("can't give argument to non-function " + to_string(node));
  }

  Value constant(const Value& dot, const Node& node) {
    at(node);
    switch (node.type) {
      case NodeType::kBool: return Value::of_bool(node.truth);
      case NodeType::kDot: return dot;
      case NodeType::kString: return Value::of_string(node.value);
      default: break;
    }
    if (node.overflows) fail(node.text + " overflows int");
    return Value::of_int(node.integer);
  }

  Value field(const Value& dot, const Node& node, bool has_arguments) {
    at(node);
    return fields(dot, node.names, has_arguments);
  }

  Value chain(const Value& dot, const Node& node, bool has_arguments) {
    at(node);
    const Node& term = *node.nodes[0];
    if (term.type == NodeType::kNil) {
      fail("indirection through explicit nil in " + to_string(node));
    }
    return fields(argument(dot, term, Parameter::kAny), node.names, has_arguments);
  }

  Value variable(const Node& node, bool has_arguments) {
    at(node);
    Value value = get(node.names[0]);
    if (node.names.size() > 1) {
      return fields(value, std::span(node.names).subspan(1), has_arguments);
    }
    not_a_function(node, has_arguments);
    return value;
  }

  Value fields(Value value, std::span<const std::string> names, bool has_arguments) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool last = i + 1 == names.size();
      auto next = field_of(value, names[i], last && has_arguments);
      if (!next.ok()) fail(next.error().message);
      const bool missed_now = next->missing() && !value.missing();
      value = *std::move(next);
      if (missed_now) {
        value.text = here(value.text);
        value.integer = static_cast<std::int64_t>(node_->position);
      }
    }
    return value;
  }

  Value call(const Value& dot, const Node& identifier, const Node& whole, Words words,
             const std::optional<Value>& last) {
    at(identifier);
    const Signature& function = *find_function(identifier.text);
    const std::size_t count = words.size() + (last.has_value() ? 1 : 0);
    const std::string name(function.name);
    if (function.variadic && count < function.fixed) {
      fail("wrong number of args for " + name + ": want at least " +
           std::to_string(function.fixed) + " got " + std::to_string(words.size()));
    }
    if (!function.variadic && count != function.fixed) {
      fail("wrong number of args for " + name + ": want " + std::to_string(function.fixed) +
           " got " + std::to_string(count));
    }
    if (name == "and" || name == "or") return short_circuit(dot, name == "or", words, last);

    std::vector<Value> arguments;
    const auto parameter = [&] {
      return function.format_first && arguments.empty() ? Parameter::kString : Parameter::kAny;
    };
    for (const auto& word : words) arguments.push_back(argument(dot, *word, parameter()));
    if (last.has_value()) arguments.push_back(checked(*last, parameter()));
    if (prints(name)) std::for_each(arguments.begin(), arguments.end(), refuse_missing);
    auto result = name == "call" ? no_call(words, arguments) : call_function(name, arguments);
    if (!result.ok()) {
      at(whole);
      fail("error calling " + name + ": " + result.error().message);
    }
    return *std::move(result);
  }

  Value short_circuit(const Value& dot, bool wanted, Words words,
                      const std::optional<Value>& last) {
    Value value;
    for (const auto& word : words) {
      value = argument(dot, *word, Parameter::kAny);
      if (is_true(value) == wanted) return value;
    }
    return last.has_value() ? *last : value;
  }

  /// There are no functions among the values: "call" can only fail.
  static Result<Value> no_call(Words words, const std::vector<Value>& arguments) {
    if (!arguments[0].valid()) return invalid("call of nil");
    const std::string piped = arguments[0].textual()
                                  ? arguments[0].text
                                  : "<" + std::string(type_name(arguments[0])) + " Value>";
    const std::string name = words.empty() ? piped : to_string(*words[0]);
    return invalid("non-function " + name + " of type " + std::string(type_name(arguments[0])));
  }

  Value argument(const Value& dot, const Node& node, Parameter parameter) {
    at(node);
    switch (node.type) {
      case NodeType::kDot: return checked(dot, parameter);
      case NodeType::kNil:
        if (parameter == Parameter::kString) fail("cannot assign nil to string");
        return Value{};
      case NodeType::kField: return checked(field(dot, node, false), parameter);
      case NodeType::kVariable: return checked(variable(node, false), parameter);
      case NodeType::kPipe: return checked(pipeline(dot, node), parameter);
      case NodeType::kIdentifier:
        return checked(call(dot, node, node, {}, std::nullopt), parameter);
      case NodeType::kChain: return checked(chain(dot, node, false), parameter);
      default: break;
    }
    if (parameter == Parameter::kString && node.type != NodeType::kString) {
      fail("expected string; found " + to_string(node));
    }
    return constant(dot, node);
  }

  Value checked(Value value, Parameter parameter) const {
    if (parameter == Parameter::kString && value.kind != Kind::kString) {
      if (!value.valid()) fail("invalid value; expected string");
      fail("wrong type for value; expected string; got " + std::string(type_name(value)));
    }
    return value;
  }

  void print(const Node& node, const Value& value) {
    at(node);
    refuse_missing(value);
    if (!value.valid()) fail("there is no value to print");
    auto text = sprint(std::span(&value, 1));
    if (!text.ok()) fail(text.error().message);
    write(*text);
  }

  void set(const std::string& name, const Value& value) {
    for (auto it = variables_.rbegin(); it != variables_.rend(); ++it) {
      if (it->first == name) {
        it->second = value;
        return;
      }
    }
    fail("undefined variable: " + name);
  }

  const Value& get(const std::string& name) const {
    for (auto it = variables_.rbegin(); it != variables_.rend(); ++it) {
      if (it->first == name) return it->second;
    }
    fail("undefined variable: " + name);
  }

  std::string out_;
  std::vector<std::pair<std::string, Value>> variables_;
  const Node* node_ = nullptr;
  int steps_ = 0;
};

}  // namespace

std::string evaluate(const Tree& tree, const Object& data) { return Evaluator().run(tree, data); }

}  // namespace lpp::gotemplate
