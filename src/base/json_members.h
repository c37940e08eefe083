// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lpp {

/// Reads members of one JSON object that somebody else may have written; remembers the first thing
/// that is wrong. What is absent leaves its target as it is. One thread.
class JsonMembers {
 public:
  explicit JsonMembers(const nlohmann::json& object) : object_(object) {}

  void text(const char* member, std::string& out, bool required = false) {
    const auto it = object_.find(member);
    if (it == object_.end()) {
      if (required) complain(member, "is missing");
      return;
    }
    if (!it->is_string()) return complain(member, "must be a string");
    out = it->get<std::string>();
    if (required && out.empty()) complain(member, "must not be empty");
  }

  template <typename Int>
  void number(const char* member, Int& out, Int least) {
    const auto it = object_.find(member);
    if (it == object_.end()) return;
    if (!it->is_number_integer()) return complain(member, "must be an integer");
    const auto value = it->get<std::int64_t>();
    const bool wrapped = it->is_number_unsigned() && value < 0;
    if (wrapped || value < least || value > std::numeric_limits<Int>::max()) {
      return complain(member, "is out of range");
    }
    out = static_cast<Int>(value);
  }

  void texts(const char* member, std::vector<std::string>& out) {
    const auto it = object_.find(member);
    if (it == object_.end()) return;
    if (!it->is_array()) return complain(member, "must be an array of strings");
    for (const nlohmann::json& item : *it) {
      if (!item.is_string()) return complain(member, "must be an array of strings");
      out.push_back(item.get<std::string>());
    }
  }

  void flag(const char* member, bool& out) {
    const auto it = object_.find(member);
    if (it == object_.end()) return;
    if (!it->is_boolean()) return complain(member, "must be true or false");
    out = it->get<bool>();
  }

  void complain(std::string_view member, std::string_view what) {
    if (problem_.empty()) problem_ = std::string(member) + " " + std::string(what);
  }
  const std::string& problem() const { return problem_; }

 private:
  const nlohmann::json& object_;
  std::string problem_;
};

}  // namespace lpp
