// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Go's quoting rules (strconv). Pure.
namespace lpp::gotemplate {

struct Rune {
  char32_t value = 0;    // U+FFFD for a byte that is not UTF-8
  std::size_t size = 1;  // bytes
};

/// The character at the beginning of a non-empty text.
Rune decode_rune(std::string_view text);
std::string encode_rune(char32_t rune);

/// Whether all characters are ASCII: what needs Unicode tables is decided by the caller.
bool is_ascii(std::string_view text);

/// strconv.Quote with the given quotes, as if all characters beyond ASCII were printable.
/// `ascii_only` writes them as \u escapes.
std::string quote(std::string_view text, char quotes = '"', bool ascii_only = false);

/// strconv.Unquote of a "..." or `...` literal.
std::optional<std::string> unquote(std::string_view literal);

/// The character at the beginning of a '...' literal, and the literal's rest behind it.
std::optional<char32_t> unquote_rune(std::string_view literal, std::string_view& rest);

/// fmt's %U: "U+0041".
std::string unicode_name(char32_t rune);

}  // namespace lpp::gotemplate
