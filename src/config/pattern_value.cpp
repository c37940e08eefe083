#include "config/pattern_value.h"

namespace lpp::config::pattern {

std::string_view type_name(Kind kind) {
  switch (kind) {
    case Kind::kInvalid:
      return "nil";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
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
      return !value.list.empty();
    case Kind::kTime:
    case Kind::kMeta:
    case Kind::kData:
      return true;
  }
  return false;
}

}  // namespace lpp::config::pattern
