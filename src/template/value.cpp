// SPDX-License-Identifier: Apache-2.0
#include "template/value.h"

#include "template/quote.h"

namespace lpp::gotemplate {

Value Value::of_object(const Object& object) {
  return {.kind = Kind::kObject, .type = object.type(), .object = &object};
}

std::size_t Value::size() const {
  if (textual()) return text.size();
  return kind == Kind::kList ? list.size() : objects.size();
}

Value Value::element(std::size_t at) const {
  if (textual()) return of_byte(static_cast<unsigned char>(text[at]));
  if (kind == Kind::kList) return of_string(list[at]);
  return of_object(*objects[at]);
}

Value Value::part(std::size_t begin, std::size_t end) const {
  Value result{.kind = kind, .type = type};
  if (textual()) result.text = text.substr(begin, end - begin);
  if (kind == Kind::kObjects) result.objects = objects.subspan(begin, end - begin);
  if (kind == Kind::kList) {
    result.list.assign(list.begin() + static_cast<std::ptrdiff_t>(begin),
                       list.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return result;
}

Error no_field(std::string_view name, std::string_view type) {
  return invalid("can't evaluate field " + std::string(name) + " in type " + std::string(type));
}

Result<Value> field_of(const Value& receiver, std::string_view name, bool has_arguments) {
  switch (receiver.kind) {
    case Kind::kInvalid: return receiver;
    case Kind::kMap: {
      if (has_arguments) return invalid(std::string(name) + " is not a method but has arguments");
      const auto it = receiver.map->find(name);
      if (it == receiver.map->end()) {
        return Value{.text = "map has no entry for key " + quote(name)};
      }
      return Value::of_string(it->second);
    }
    case Kind::kTime:
    case Kind::kNoTime:
      return invalid(std::string(name) + " of a time is not supported in patterns");
    case Kind::kObject: break;
    default: return no_field(name, type_name(receiver));
  }
  auto field = receiver.object->field(name);
  if (field.ok() && has_arguments) {
    return invalid(std::string(name) + " has arguments but cannot be invoked as function");
  }
  return field;
}

std::string_view type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kInvalid: return "nil";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kInt64: return "int64";
    case Kind::kByte: return "uint8";
    case Kind::kString: return "string";
    case Kind::kMap: return "map[string]string";
    case Kind::kList: return "[]string";
    case Kind::kNamedString:
    case Kind::kObjects:
    case Kind::kObject:
    case Kind::kTime:
    case Kind::kNoTime: break;
  }
  return value.type;
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::kInvalid:
    case Kind::kNoTime: return false;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kInt64:
    case Kind::kByte: return value.integer != 0;
    case Kind::kString:
    case Kind::kNamedString: return !value.text.empty();
    case Kind::kMap: return !value.map->empty();
    case Kind::kList:
    case Kind::kObjects: return value.size() > 0;
    case Kind::kObject:
    case Kind::kTime: return true;
  }
  return false;
}

}  // namespace lpp::gotemplate
