// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/whole_number.h"
#include "k8s/objects.h"

namespace lpp::k8s {

/// Reads one object field by field. The first wrong type is kept with its place and all reads
/// of the same object tree after it give empty values, so that decoders need one check at the end.
/// An absent field and null are the same. Children refer to their parent: keep it alive.
class ValueFields {
 public:
  ValueFields(Value root, std::optional<Error>& error) : error_(error) { open(root); }

  std::string text(const char* name) const {
    const Value value = find(name);
    if (!value.is_text() && !value.is_null()) fail(name, "expected a string");
    return std::string(value.text());
  }

  std::optional<std::string> optional_text(const char* name) const {
    if (!has(name)) return std::nullopt;
    return text(name);
  }

  /// A resource quantity: text, or a bare number (rule C9.2).
  std::string quantity(const char* name) const {
    const Value value = find(name);
    if (value.is_text()) return std::string(value.text());
    if (value.type() == Value::Type::kNumber) return std::string(value.spelling());
    if (!value.is_null()) fail(name, "expected a quantity");
    return {};
  }

  int integer(const char* name) const {
    const Value value = find(name);
    if (value.is_null()) return 0;
    if (value.type() == Value::Type::kNumber) {
      if (const auto number = whole_number<int>(value.spelling())) return *number;
    }
    fail(name, "expected an integer");
    return 0;
  }

  bool has(const char* name) const { return !find(name).is_null(); }

  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    find_list(name).each([&](Value item) {
      if (item.is_text()) {
        result.emplace_back(item.text());
      } else if (!item.is_null()) {
        fail(name, "expected a list of strings");
      }
    });
    return result;
  }

  StringMap map(const char* name) const {
    StringMap result;
    const Value object = find(name);
    if (!object.is_object() && !object.is_null()) fail(name, "expected an object");
    object.each([&](Value entry) {
      if (entry.is_text()) {
        result.insert_or_assign(result.end(), std::string(entry.name()), entry.text());
      } else if (!entry.is_null()) {
        fail(std::string(name) + "." + std::string(entry.name()), "expected a string");
      }
    });
    return result;
  }

  /// The object in that field; an empty one when it is absent.
  ValueFields object(const char* name) const {
    ValueFields child(*this, name, -1);
    child.open(find(name));
    return child;
  }

  /// Calls visit(ValueFields) for each object of the list in that field.
  template <typename Visit>
  void each(const char* name, Visit visit) const {
    int index = -1;
    find_list(name).each([&](Value item) {
      ++index;
      if (item.is_null()) return;
      ValueFields child(*this, name, index);
      child.open(item);
      visit(std::as_const(child));
    });
  }

  void require(const char* name) const {
    if (!error_ && text(name).empty()) fail(name, "required");
  }

 private:
  ValueFields(const ValueFields& parent, const char* name, int index)
      : parent_(&parent), name_(name), index_(index), error_(parent.error_) {}

  void open(Value value) {
    if (value.is_object()) {
      object_ = value;
    } else if (!value.is_null() && !error_) {
      error_ =
          invalid((parent_ == nullptr ? std::string("object") : path()) + ": expected an object");
    }
  }

  Value find(const char* name) const { return error_ ? Value() : object_.find(name); }

  Value find_list(const char* name) const {
    const Value value = find(name);
    if (value.is_list()) return value;
    if (!value.is_null()) fail(name, "expected a list");
    return {};
  }

  void fail(std::string_view name, const char* what) const {
    if (error_) return;
    const std::string place = path();
    error_ = invalid((place.empty() ? place : place + ".") + std::string(name) + ": " + what);
  }

  std::string path() const {
    if (parent_ == nullptr) return {};
    std::string place = parent_->path();
    if (!place.empty()) place += '.';
    place += name_;
    if (index_ >= 0) place += "[" + std::to_string(index_) + "]";
    return place;
  }

  const ValueFields* parent_ = nullptr;
  const char* name_ = "";
  int index_ = -1;
  Value object_{};
  std::optional<Error>& error_;
};

}  // namespace lpp::k8s
