// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/objects.h"

namespace lpp::config::pattern {

/// The types that values can have in a pattern; Go's name in the comment.
enum class Kind {
  kInvalid,  // nil; with a text, a label or annotation that is missing
  kBool,     // bool
  kInt,      // int
  kInt64,    // int64
  kByte,     // uint8: a byte of a string
  kFloat,    // float64
  kString,   // string
  kUid,      // types.UID, a string
  kMap,      // map[string]string: labels or annotations
  kList,     // []string
  kOwners,   // []v1.OwnerReference
  kOwner,    // v1.OwnerReference
  kTime,     // v1.Time
  kNoTime,   // *v1.Time that is nil
  kMeta,     // v1.ObjectMeta: .PVC
  kData,     // what "." is at the start
};

/// A value in the evaluation of a pattern. A plain value; maps and metadata belong to the claim.
struct Value {
  Kind kind = Kind::kInvalid;
  std::int64_t integer = 0;  // kBool (0 or 1), kInt, kInt64, kByte; kInvalid: the place of `text`
  double real = 0;
  std::string text{};  // kString, kUid, kTime; kInvalid: what is missing, to say when it is printed
  const k8s::StringMap* map = nullptr;
  std::vector<std::string> list{};
  std::span<const k8s::OwnerReference> owners{};  // kOwners; the one of kOwner

  static Value of_bool(bool value) { return {.kind = Kind::kBool, .integer = value ? 1 : 0}; }
  static Value of_int(std::int64_t value) { return {.kind = Kind::kInt, .integer = value}; }
  static Value of_byte(unsigned char value) { return {.kind = Kind::kByte, .integer = value}; }
  static Value of_float(double value) { return {.kind = Kind::kFloat, .real = value}; }
  static Value of_string(std::string value) {
    return {.kind = Kind::kString, .text = std::move(value)};
  }
  static Value of_owners(std::span<const k8s::OwnerReference> owners) {
    return {.kind = Kind::kOwners, .owners = owners};
  }
  bool valid() const { return kind != Kind::kInvalid; }
  bool missing() const { return !valid() && !text.empty(); }
  bool whole_number() const {
    return kind == Kind::kInt || kind == Kind::kInt64 || kind == Kind::kByte;
  }
  bool textual() const { return kind == Kind::kString || kind == Kind::kUid; }

  // Of lists: text, []string or owners. Element and part are in bounds.
  bool is_list() const { return textual() || kind == Kind::kList || kind == Kind::kOwners; }
  std::size_t size() const;
  Value element(std::size_t at) const;
  Value part(std::size_t begin, std::size_t end) const;
};

/// Go's name of the type, e.g. "map[string]string".
std::string_view type_name(Kind kind);

/// Whether if, and, or … take it as true: not the zero value of its type.
bool is_true(const Value& value);

}  // namespace lpp::config::pattern
