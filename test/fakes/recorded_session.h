// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "places/places.h"

namespace lpp::testing {

/// A request of an agent and its answer, as an older version has sent them; see test/data/agents.
struct RecordedExchange {
  std::string target{};
  std::string request{};
  std::string answer{};
  nlohmann::json asked() const { return nlohmann::json::parse(request); }
  nlohmann::json answered() const { return nlohmann::json::parse(answer); }
};

inline std::vector<RecordedExchange> recorded_session(const std::string& name) {
  std::vector<RecordedExchange> all;
  std::istringstream lines(repository_text("test/data/agents/" + name));
  for (std::string line; std::getline(lines, line);) {
    const auto one = nlohmann::json::parse(line);
    all.push_back(
        {.target = one.at("target"), .request = one.at("request"), .answer = one.at("answer")});
  }
  return all;
}

/// The text with other words in each place.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Whether `now` says all that `then` said: it may have more members, not others. Where `values`
/// does not hold, members of the same kind are enough.
inline bool says_all(const nlohmann::json& now, const nlohmann::json& then, bool values = true) {
  if (then.is_object()) {
    if (!now.is_object()) return false;
    for (const auto& [name, value] : then.items()) {
      if (!now.contains(name) || !says_all(now.at(name), value, values)) return false;
    }
    return true;
  }
  if (then.is_array()) {
    if (!now.is_array() || now.size() != then.size()) return false;
    for (std::size_t i = 0; i < then.size(); ++i) {
      if (!says_all(now.at(i), then.at(i), values)) return false;
    }
    return true;
  }
  return values ? now == then : now.type() == then.type();
}

}  // namespace lpp::testing
