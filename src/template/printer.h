// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "template/value.h"

namespace lpp::gotemplate {

/// Flags, width and precision of one formatting verb.
struct FormatSpec {
  bool minus = false;
  bool plus = false;
  bool sharp = false;
  bool space = false;
  bool zero = false;
  bool sharp_v = false;  // %#v
  std::optional<int> width{};
  std::optional<int> precision{};
};

/// Formats single values into a text: fmt's pp.printArg and its raw formatter. Used by one thread.
class Printer {
 public:
  /// Formats one value; a wrong verb is written as Go writes it: "%!d(string=x)".
  void print(const Value& value, char32_t verb, const FormatSpec& spec);

  void append(std::string_view text) { out_ += text; }
  const std::string& text() const { return out_; }
  /// What a value needed that is not supported, or "".
  const std::string& unsupported() const { return unsupported_; }

 private:
  void print_bool(const Value& value, char32_t verb);
  void print_integer(const Value& value, char32_t verb);
  void print_float(const Value& value, char32_t verb);
  void print_string(const Value& value, char32_t verb);
  void print_container(const Value& value, char32_t verb);
  void print_time(const Value& value, char32_t verb);
  void bad_verb(const Value& value, char32_t verb);

  void integer_digits(const Value& value, int base, char32_t verb, bool upper);
  void unicode_point(const Value& value);
  void hex_bytes(std::string_view text, bool upper);
  void quoted(std::string_view text);
  std::string_view truncated(std::string_view text) const;
  void pad(std::string_view text, bool zeros);
  void fill(std::size_t count, bool zeros);
  void not_supported(std::string what);

  FormatSpec spec_;
  std::string out_;
  std::string unsupported_;
};

/// Number of characters of a text.
std::size_t rune_count(std::string_view text);

}  // namespace lpp::gotemplate
