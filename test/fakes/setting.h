// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

namespace lpp::testing {

/// What a variable of the environment says to a test; an empty one says nothing.
inline std::optional<std::string> setting(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

/// The same, a number above 0: with "0" a test would do nothing and pass.
inline int setting(const char* name, int otherwise) {
  const auto text = setting(name);
  if (!text) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 1) {
    throw std::runtime_error(std::string(name) + ": not a number above 0: " + *text);
  }
  return value;
}

}  // namespace lpp::testing
