// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lpp::gotemplate {

class Object;

using StringMap = std::map<std::string, std::string, std::less<>>;

/// The types that values can have in a template; Go's name in the comment.
enum class Kind {
  kInvalid,      // nil; with a text, an entry of a map that is missing
  kBool,         // bool
  kInt,          // int
  kInt64,        // int64
  kByte,         // uint8: a byte of a string
  kString,       // string
  kNamedString,  // a type of its own that is a string
  kMap,          // map[string]string
  kList,         // []string
  kObjects,      // a list of structures
  kObject,       // a structure
  kTime,         // a time, by its text
  kNoTime,       // a pointer to a time that is nil
};

/// A value in the evaluation of a template. A plain value; maps and objects belong to the data.
struct Value {
  Kind kind = Kind::kInvalid;
  std::string_view type{};   // Go's name of the type of those that have none by their kind
  std::int64_t integer = 0;  // kBool (0 or 1), kInt, kInt64, kByte; kInvalid: the place of `text`
  std::string text{};  // of strings and times; kInvalid: what is missing, to say when it is printed
  const StringMap* map = nullptr;
  std::vector<std::string> list{};
  std::span<const Object* const> objects{};
  const Object* object = nullptr;

  static Value of_bool(bool value) { return {.kind = Kind::kBool, .integer = value ? 1 : 0}; }
  static Value of_int(std::int64_t value) { return {.kind = Kind::kInt, .integer = value}; }
  static Value of_byte(unsigned char value) { return {.kind = Kind::kByte, .integer = value}; }
  static Value of_string(std::string value) {
    return {.kind = Kind::kString, .text = std::move(value)};
  }
  static Value of_object(const Object& object);

  bool valid() const { return kind != Kind::kInvalid; }
  bool missing() const { return !valid() && !text.empty(); }
  bool whole_number() const {
    return kind == Kind::kInt || kind == Kind::kInt64 || kind == Kind::kByte;
  }
  bool textual() const { return kind == Kind::kString || kind == Kind::kNamedString; }

  // Of lists: text, []string or objects. Element and part are in bounds.
  bool is_list() const { return textual() || kind == Kind::kList || kind == Kind::kObjects; }
  std::size_t size() const;
  Value element(std::size_t at) const;
  Value part(std::size_t begin, std::size_t end) const;
};

/// A structure of the data; the template's "." is one at the start.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  /// Go's name of its type, e.g. "v1.ObjectMeta". Lives as long as the program.
  virtual std::string_view type() const = 0;

  /// kInvalid with Go's message where there is no such field (no_field).
  virtual Result<Value> field(std::string_view name) const = 0;
};

/// What Go says of a field that a type has not.
Error no_field(std::string_view name, std::string_view type);

/// A field of an object, or an entry of a map: one that is missing is a value that is missing(),
/// which has no fields but missing ones. kInvalid with Go's message. Pure.
Result<Value> field_of(const Value& receiver, std::string_view name, bool has_arguments);

/// Go's name of the type, e.g. "map[string]string".
std::string_view type_name(const Value& value);

/// Whether if, and, or … take it as true: not the zero value of its type.
bool is_true(const Value& value);

}  // namespace lpp::gotemplate
