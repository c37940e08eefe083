// SPDX-License-Identifier: Apache-2.0
#include "template/functions.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

#include "template/format.h"
#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

using Arguments = std::span<const Value>;

constexpr std::array kFunctions = {
    Signature{"and", 1, true},          Signature{"call", 1, true},
    Signature{"html", 0, true},         Signature{"index", 1, true},
    Signature{"slice", 1, true},        Signature{"js", 0, true},
    Signature{"len", 1, false},         Signature{"not", 1, false},
    Signature{"or", 1, true},           Signature{"print", 0, true},
    Signature{"printf", 1, true, true}, Signature{"println", 0, true},
    Signature{"urlquery", 0, true},     Signature{"eq", 1, true},
    Signature{"ge", 2, false},          Signature{"gt", 2, false},
    Signature{"le", 2, false},          Signature{"lt", 2, false},
    Signature{"ne", 2, false}};

std::string name_of(const Value& value) { return std::string(type_name(value)); }

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_nil(const Value& value) {
  switch (value.kind) {
    case Kind::kInvalid:
    case Kind::kNoTime: return true;
    case Kind::kMap: return value.map->empty();
    case Kind::kList:
    case Kind::kObjects: return value.size() == 0;
    default: return false;
  }
}

/// What a comparison is done on; types of one class can be compared.
enum class Class { kOther, kBool, kInt, kUint, kText };

Class class_of(const Value& value) {
  switch (value.kind) {
    case Kind::kBool: return Class::kBool;
    case Kind::kInt:
    case Kind::kInt64: return Class::kInt;
    case Kind::kByte: return Class::kUint;
    case Kind::kString:
    case Kind::kNamedString: return Class::kText;
    default: return Class::kOther;
  }
}

bool both_integers(Class a, Class b) {
  const auto integer = [](Class c) { return c == Class::kInt || c == Class::kUint; };
  return integer(a) && integer(b);
}

Error incompatible(const Value& a, const Value& b) {
  return invalid("incompatible types for comparison: " + name_of(a) + " and " + name_of(b));
}

Result<bool> equal_others(const Value& a, const Value& b) {
  const bool comparable = a.kind == b.kind || !a.valid() || !b.valid();
  if (comparable && (is_nil(a) || is_nil(b))) return is_nil(a) == is_nil(b);
  if (a.kind == b.kind && (a.kind == Kind::kMap || a.kind == Kind::kList)) {
    LPP_ASSIGN_OR_RETURN(const std::string shown, sprint(std::span(&b, 1)), "compare");
    return invalid("non-comparable type " + shown + ": " + name_of(b));
  }
  return invalid("values of type " + name_of(a) + " and " + name_of(b) + " cannot be compared");
}

Result<bool> equal(const Value& a, const Value& b) {
  const Class class_a = class_of(a);
  const Class class_b = class_of(b);
  if (both_integers(class_a, class_b)) return a.integer == b.integer;
  if (class_a != class_b) {
    if (a.valid() && b.valid()) return incompatible(a, b);
    return false;
  }
  switch (class_a) {
    case Class::kBool: return a.integer == b.integer;
    case Class::kText: return a.text == b.text;
    default: return equal_others(a, b);
  }
}

Result<bool> eq(Arguments arguments) {
  if (arguments.size() < 2) return invalid("missing argument for comparison");
  for (const Value& other : arguments.subspan(1)) {
    auto same = equal(arguments[0], other);
    if (!same.ok() || *same) return same;
  }
  return false;
}

Result<bool> lt(const Value& a, const Value& b) {
  const Class class_a = class_of(a);
  const Class class_b = class_of(b);
  const Error bad = invalid("invalid type for comparison");
  if (class_a == Class::kOther || class_b == Class::kOther) return bad;
  if (both_integers(class_a, class_b)) return a.integer < b.integer;
  if (class_a != class_b) return incompatible(a, b);
  if (class_a == Class::kBool) return bad;
  return a.text < b.text;
}

Result<bool> compare(std::string_view name, const Value& a, const Value& b) {
  const std::array pair = {a, b};
  if (name == "ne") {
    auto same = eq(pair);
    if (!same.ok()) return same;
    return !*same;
  }
  auto less = lt(a, b);
  if (!less.ok() || name == "lt") return less;
  if (name == "ge") return !*less;
  bool less_or_equal = *less;
  if (!less_or_equal) {
    auto same = eq(pair);
    if (!same.ok()) return same;
    less_or_equal = *same;
  }
  return name == "le" ? less_or_equal : !less_or_equal;
}

/// An index into a text or list; at most `limit`.
Result<std::size_t> index_argument(const Value& index, std::size_t limit) {
  if (!index.valid()) return invalid("cannot index slice/array with nil");
  if (!index.whole_number()) {
    return invalid("cannot index slice/array with type " + name_of(index));
  }
  if (index.integer < 0 || static_cast<std::uint64_t>(index.integer) > limit) {
    return invalid("index out of range: " + std::to_string(index.integer));
  }
  return static_cast<std::size_t>(index.integer);
}

Result<Value> index_once(const Value& item, const Value& index) {
  if (item.kind == Kind::kNoTime) return invalid("index of nil pointer");
  if (item.kind == Kind::kMap) {
    if (!index.valid()) return invalid("value is nil; should be of type string");
    if (index.kind != Kind::kString) {
      return invalid("value has type " + name_of(index) + "; should be string");
    }
    const auto found = item.map->find(index.text);
    return Value::of_string(found == item.map->end() ? "" : found->second);
  }
  if (!item.is_list()) return invalid("can't index item of type " + name_of(item));
  const std::size_t size = item.size();
  auto bound = index_argument(index, size);
  if (!bound.ok()) return std::move(bound).error();
  const std::size_t at = *bound;
  if (at == size) {
    return invalid(item.textual() ? "reflect: string index out of range"
                                  : "reflect: slice index out of range");
  }
  return item.element(at);
}

Result<Value> index(Arguments arguments) {
  Value item = arguments[0];
  if (!item.valid()) return invalid("index of untyped nil");
  for (const Value& at : arguments.subspan(1)) {
    auto next = index_once(item, at);
    if (!next.ok()) return next;
    item = *std::move(next);
  }
  return item;
}

Result<Value> slice(Arguments arguments) {
  const Value& item = arguments[0];
  const Arguments bounds = arguments.subspan(1);
  if (!item.valid()) return invalid("slice of untyped nil");
  if (item.kind == Kind::kNoTime) return invalid("slice of nil pointer");
  if (bounds.size() > 3) return invalid("too many slice indexes: " + std::to_string(bounds.size()));
  if (!item.is_list()) return invalid("can't slice item of type " + name_of(item));
  if (item.textual() && bounds.size() == 3) return invalid("cannot 3-index slice a string");
  const std::size_t size = item.size();
  std::array<std::size_t, 3> at = {0, size, size};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    auto bound = index_argument(bounds[i], size);
    if (!bound.ok()) return std::move(bound).error();
    at[i] = *bound;
  }
  for (std::size_t i = 0; i + 1 < std::max<std::size_t>(2, bounds.size()); ++i) {
    if (at[i] > at[i + 1]) {
      return invalid("invalid slice index: " + std::to_string(at[i]) + " > " +
                     std::to_string(at[i + 1]));
    }
  }
  return item.part(at[0], at[1]);
}

Result<Value> length(const Value& item) {
  if (item.kind == Kind::kNoTime) return invalid("len of nil pointer");
  if (item.is_list()) return Value::of_int(static_cast<std::int64_t>(item.size()));
  if (item.kind == Kind::kMap) return Value::of_int(static_cast<std::int64_t>(item.map->size()));
  if (!item.valid()) return invalid("reflect: call of reflect.Value.Type on zero Value");
  return invalid("len of type " + name_of(item));
}

std::string html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '\0': escaped += "\xEF\xBF\xBD"; break;
      case '"': escaped += "&#34;"; break;
      case '\'': escaped += "&#39;"; break;
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

Result<std::string> js(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  if (!is_ascii(text)) return invalid("js of characters beyond ASCII is not supported in patterns");
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '\'' || c == '"') {
      escaped += '\\';
      escaped += c;
    } else if (c == '<' || c == '>' || c == '&' || c == '=' || byte < ' ') {
      escaped += "\\u00";
      escaped += kHex[byte >> 4U];
      escaped += kHex[byte & 15U];
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string url_query(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      escaped += c;
    } else if (c == ' ') {
      escaped += '+';
    } else {
      escaped += '%';
      escaped += kHex[byte >> 4U];
      escaped += kHex[byte & 15U];
    }
  }
  return escaped;
}

Result<Value> text_value(Result<std::string> text) {
  if (!text.ok()) return std::move(text).error();
  if (text->size() > kMaxText) return invalid("the text is longer than 64 KiB");
  return Value::of_string(*std::move(text));
}

Result<Value> escape(std::string_view name, Arguments arguments) {
  const auto no_value = [](const Value& value) { return !value.valid(); };
  if (std::any_of(arguments.begin(), arguments.end(), no_value)) {
    return invalid("there is no value to print");
  }
  auto text = sprint(arguments);
  if (!text.ok()) return std::move(text).error();
  if (name == "html") return text_value(html(*text));
  if (name == "js") return text_value(js(*text));
  return text_value(url_query(*text));
}

Result<Value> bool_value(Result<bool> result) {
  if (!result.ok()) return std::move(result).error();
  return Value::of_bool(*result);
}

}  // namespace

const Signature* find_function(std::string_view name) {
  const auto* it = std::find_if(kFunctions.begin(), kFunctions.end(),
                                [&](const Signature& function) { return function.name == name; });
  return it == kFunctions.end() ? nullptr : it;
}

bool prints(std::string_view name) {
  return is_one_of(name, {"print", "println", "printf", "html", "js", "urlquery"});
}

Result<Value> call_function(std::string_view name, Arguments arguments) {
  if (name == "print") return text_value(sprint(arguments));
  if (name == "println") return text_value(sprintln(arguments));
  if (name == "printf") {
    return text_value(sprintf(arguments[0].text, arguments.subspan(1)));
  }
  if (name == "html" || name == "js" || name == "urlquery") return escape(name, arguments);
  if (name == "index") return index(arguments);
  if (name == "slice") return slice(arguments);
  if (name == "len") return length(arguments[0]);
  if (name == "not") return Value::of_bool(!is_true(arguments[0]));
  if (name == "eq") return bool_value(eq(arguments));
  return bool_value(compare(name, arguments[0], arguments[1]));
}

}  // namespace lpp::gotemplate
