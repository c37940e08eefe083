// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/selectors.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/strings.h"
#include "devcluster/apiserver/names.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

std::optional<std::int64_t> number_if_any(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_word(char c) {
  return c != ',' && c != '(' && c != ')' && c != '=' && c != '!' && c != '<' && c != '>' &&
         c != ' ' && c != '\t';
}

/// A field's value as a selector sees it. A few fields have names or defaults of their own.
std::string field_value(const Json& object, std::string_view field) {
  if (field == "source") return text_at(object, {"source", "component"});
  if (field == "status.podIPs") return text_at(object, {"status", "podIP"});
  const Json* value = &object;
  for (const auto part : split(field, '.')) value = &child(*value, part);
  if (value->is_string()) return value->get<std::string>();
  if (value->is_null()) {
    return field == "spec.unschedulable" || field == "spec.hostNetwork" ? "false" : "";
  }
  return dump(*value);
}

}  // namespace

class LabelSelectorParser {
 public:
  explicit LabelSelectorParser(std::string_view text) : text_(text) {}

  Result<LabelSelector> run() {
    LabelSelector selector;
    skip();
    if (at_end()) return selector;
    while (true) {
      LPP_ASSIGN_OR_RETURN(auto requirement, parse_requirement(), "unable to parse requirement");
      selector.requirements_.push_back(std::move(requirement));
      skip();
      if (at_end()) return selector;
      if (!take(',')) return invalid("found '" + rest() + "', expected: ',' or 'end of string'");
      skip();
      if (at_end()) return invalid("found '', expected: identifier after ','");
    }
  }

 private:
  using Op = LabelSelector::Op;
  using Requirement = LabelSelector::Requirement;

  Result<Requirement> parse_requirement() {
    skip();
    Requirement requirement;
    const bool negated = take('!');
    skip();
    requirement.key = word();
    if (requirement.key.empty()) {
      return invalid("found '" + rest() + "', expected: !, identifier, or ','");
    }
    if (const auto why = qualified_name_problem(requirement.key); !why.empty()) {
      return invalid("<nil>: Invalid value: \"" + requirement.key + "\": " + why);
    }
    skip();
    if (negated) {
      requirement.op = Op::kNotExists;
      return requirement;
    }
    if (at_end() || peek() == ',') return requirement;
    return parse_operator(std::move(requirement));
  }

  Result<Requirement> parse_operator(Requirement requirement) {
    if (take('!')) {
      if (!take('=')) return invalid("found '!', expected: '!='");
      requirement.op = Op::kNotIn;
      return single_value(std::move(requirement));
    }
    if (take('=')) {
      take('=');
      requirement.op = Op::kIn;
      return single_value(std::move(requirement));
    }
    if (peek() == '>' || peek() == '<') {
      requirement.op = take('>') ? Op::kGreater : Op::kLess;
      if (requirement.op == Op::kLess) take('<');
      LPP_ASSIGN_OR_RETURN(auto done, single_value(std::move(requirement)), "value");
      if (!number_if_any(done.values.front())) {
        return invalid("values[0][" + done.key + "]: Invalid value: \"" + done.values.front() +
                       "\": for 'Gt', 'Lt' operators, the value must be an integer");
      }
      return done;
    }
    const std::string op = word();
    if (op != "in" && op != "notin") {
      return invalid("found '" + (op.empty() ? rest() : op) +
                     "', expected: in, notin, =, ==, !=, gt, lt");
    }
    requirement.op = op == "in" ? Op::kIn : Op::kNotIn;
    return value_list(std::move(requirement));
  }

  Result<Requirement> single_value(Requirement requirement) {
    skip();
    LPP_RETURN_IF_ERROR(add_value(requirement, word()), "value");
    return requirement;
  }

  Result<Requirement> value_list(Requirement requirement) {
    skip();
    if (!take('(')) return invalid("found '" + rest() + "' expected: '('");
    while (true) {
      skip();
      LPP_RETURN_IF_ERROR(add_value(requirement, word()), "value");
      skip();
      if (take(')')) return requirement;
      if (!take(',')) return invalid("found '" + rest() + "', expected: ',', or ')'");
    }
  }

  static Result<void> add_value(Requirement& requirement, std::string value) {
    if (const auto why = label_value_problem(value); !why.empty()) {
      return invalid("values[0][" + requirement.key + "]: Invalid value: \"" + value +
                     "\": " + why);
    }
    requirement.values.push_back(std::move(value));
    return {};
  }

  bool at_end() const { return position_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  std::string rest() const { return std::string(text_.substr(std::min(position_, text_.size()))); }
  void skip() {
    while (peek() == ' ' || peek() == '\t') ++position_;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  std::string word() {
    const auto start = position_;
    while (!at_end() && is_word(peek())) ++position_;
    return std::string(text_.substr(start, position_ - start));
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  auto result = LabelSelectorParser(text).run();
  if (result.ok() || result.error().message.starts_with("unable to parse requirement")) {
    return result;
  }
  return std::move(result).error().wrap("unable to parse requirement");
}

bool LabelSelector::matches(const Json& object) const {
  if (requirements_.empty()) return true;
  const Json& labels = at_path(object, {"metadata", "labels"});
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) { return matches(requirement, labels); });
}

bool LabelSelector::matches(const Requirement& requirement, const Json& labels) {
  const Json& label = child(labels, requirement.key);
  const bool present = label.is_string();
  const std::string value = present ? label.get<std::string>() : std::string();
  const bool listed = present && std::find(requirement.values.begin(), requirement.values.end(),
                                           value) != requirement.values.end();
  switch (requirement.op) {
    case Op::kIn: return listed;
    case Op::kNotIn: return !listed;
    case Op::kExists: return present;
    case Op::kNotExists: return !present;
    case Op::kGreater:
    case Op::kLess: {
      const auto have = number_if_any(value);
      const auto want = number_if_any(requirement.values.front());
      if (!present || !have || !want) return false;
      return requirement.op == Op::kGreater ? *have > *want : *have < *want;
    }
  }
  return false;
}

Result<FieldSelector> FieldSelector::parse(std::string_view text, const ResourceInfo& info) {
  FieldSelector selector;
  if (trim(text).empty()) return selector;
  for (const auto part : split(text, ',')) {
    if (part.empty()) continue;
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return invalid("invalid selector: '" + std::string(text) + "'; can't understand '" +
                     std::string(part) + "'");
    }
    Term term;
    term.equal = part[equals - 1] != '!';
    term.field = std::string(part.substr(0, term.equal ? equals : equals - 1));
    auto value = part.substr(equals + 1);
    if (value.starts_with('=')) value.remove_prefix(1);
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '\\' && i + 1 < value.size()) ++i;
      term.value += value[i];
    }
    const bool known =
        term.field == "metadata.name" || term.field == "metadata.namespace" ||
        std::find(info.fields.begin(), info.fields.end(), term.field) != info.fields.end();
    if (!known) {
      return invalid(info.fields.empty() ? "\"" + term.field +
                                               "\" is not a known field selector: only "
                                               "\"metadata.name\", \"metadata.namespace\""
                                         : "field label not supported: " + term.field);
    }
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

bool FieldSelector::matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return (field_value(object, term.field) == term.value) == term.equal;
  });
}

}  // namespace lpp::devcluster
