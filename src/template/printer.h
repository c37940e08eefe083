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
  std::optional<int> width{};
  std::optional<int> precision{};
};

/// Formats single values into a text, as Go's fmt does. Used by one thread.
class Printer {
 public:
  /// Formats one value with one of the verbs s, v, d, q, x, t and c.
  void print(const Value& value, char verb, const FormatSpec& spec);

  void append(std::string_view text) { out_ += text; }
  const std::string& text() const { return out_; }
  /// Why a value could not be printed, or "".
  const std::string& refused() const { return refused_; }

 private:
  void print_integer(std::int64_t value, char verb);
  void print_text(std::string_view text, char verb);
  void print_container(const Value& value, char verb);

  void digits(std::int64_t value, unsigned base);
  void quoted_rune(const std::string& rune);
  void hex_bytes(std::string_view text);
  void quoted(std::string_view text);
  std::string_view truncated(std::string_view text) const;
  void pad(std::string_view text, bool zeros);
  void fill(std::size_t count, bool zeros);
  void refuse(std::string why);
  void not_supported(const std::string& what) { refuse(what + " is not supported in patterns"); }

  FormatSpec spec_;
  std::string out_;
  std::string refused_;
};

}  // namespace lpp::gotemplate
