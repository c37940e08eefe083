// SPDX-License-Identifier: Apache-2.0
#include "config/pattern_value.h"

namespace lpp::config::pattern {

std::size_t Value::size() const {
  if (textual()) return text.size();
  return kind == Kind::kList ? list.size() : owners.size();
}

Value Value::element(std::size_t at) const {
  if (textual()) return of_byte(static_cast<unsigned char>(text[at]));
  if (kind == Kind::kList) return of_string(list[at]);
  return {.kind = Kind::kOwner, .owners = owners.subspan(at, 1)};
}

Value Value::part(std::size_t begin, std::size_t end) const {
  Value result{.kind = kind};
  if (textual()) result.text = text.substr(begin, end - begin);
  if (kind == Kind::kOwners) result.owners = owners.subspan(begin, end - begin);
  if (kind == Kind::kList) {
    result.list.assign(list.begin() + static_cast<std::ptrdiff_t>(begin),
                       list.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return result;
}

std::string_view type_name(Kind kind) {
  switch (kind) {
    case Kind::kInvalid:
      return "nil";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kInt64:
      return "int64";
    case Kind::kByte:
      return "uint8";
    case Kind::kFloat:
      return "float64";
    case Kind::kString:
      return "string";
    case Kind::kUid:
      return "types.UID";
    case Kind::kMap:
      return "map[string]string";
    case Kind::kList:
      return "[]string";
    case Kind::kOwners:
      return "[]v1.OwnerReference";
    case Kind::kOwner:
      return "v1.OwnerReference";
    case Kind::kTime:
      return "v1.Time";
    case Kind::kNoTime:
      return "*v1.Time";
    case Kind::kMeta:
      return "v1.ObjectMeta";
    case Kind::kData:
      return "config.PatternData";
  }
  return "";
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::kInvalid:
    case Kind::kNoTime:
      return false;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kInt64:
    case Kind::kByte:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0;
    case Kind::kString:
    case Kind::kUid:
      return !value.text.empty();
    case Kind::kMap:
      return !value.map->empty();
    case Kind::kList:
    case Kind::kOwners:
      return value.size() > 0;
    case Kind::kOwner:
    case Kind::kTime:
    case Kind::kMeta:
    case Kind::kData:
      return true;
  }
  return false;
}

}  // namespace lpp::config::pattern
