// SPDX-License-Identifier: Apache-2.0
#include "template/quote.h"

#include <algorithm>
#include <array>

namespace lpp::gotemplate {

namespace {

constexpr char32_t kBadRune = 0xFFFD;
constexpr std::string_view kHex = "0123456789abcdef";

std::string hex(char32_t value, int digits) {
  std::string text;
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    text += kHex[(value >> static_cast<unsigned>(shift)) & 15U];
  }
  return text;
}

int digit(char c, int base) {
  int value = 99;
  if (c >= '0' && c <= '9') value = c - '0';
  if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') value = c - 'A' + 10;
  return value < base ? value : -1;
}

bool is_surrogate(char32_t rune) { return rune >= 0xD800 && rune < 0xE000; }

/// One character of a literal after strconv.UnquoteChar; `byte` for \x and octal escapes.
struct Unquoted {
  char32_t value = 0;
  bool byte = false;
};

std::optional<Unquoted> unquote_number(std::string_view& rest, int digits, int base) {
  if (rest.size() < static_cast<std::size_t>(digits)) return std::nullopt;
  char32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const int d = digit(rest[static_cast<std::size_t>(i)], base);
    if (d < 0) return std::nullopt;
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(d);
  }
  rest.remove_prefix(static_cast<std::size_t>(digits));
  const bool byte = digits < 4;
  if (byte ? value > 255 : (value > 0x10FFFF || is_surrogate(value))) return std::nullopt;
  return Unquoted{value, byte};
}

std::optional<Unquoted> unquote_char(std::string_view& rest, char quotes) {
  if (rest.empty() || rest.front() == quotes || rest.front() == '\n') return std::nullopt;
  if (rest.front() != '\\') {
    const Rune rune = decode_rune(rest);
    rest.remove_prefix(rune.size);
    return Unquoted{rune.value, false};
  }
  if (rest.size() < 2) return std::nullopt;
  const char c = rest[1];
  if (c >= '0' && c <= '7') {
    rest.remove_prefix(1);
    return unquote_number(rest, 3, 8);
  }
  rest.remove_prefix(2);
  switch (c) {
    case 'a': return Unquoted{'\a'};
    case 'b': return Unquoted{'\b'};
    case 'f': return Unquoted{'\f'};
    case 'n': return Unquoted{'\n'};
    case 'r': return Unquoted{'\r'};
    case 't': return Unquoted{'\t'};
    case 'v': return Unquoted{'\v'};
    case 'x': return unquote_number(rest, 2, 16);
    case 'u': return unquote_number(rest, 4, 16);
    case 'U': return unquote_number(rest, 8, 16);
    case '\\': return Unquoted{'\\'};
    case '\'':
    case '"':
      if (c != quotes) return std::nullopt;
      return Unquoted{static_cast<char32_t>(c)};
    default: return std::nullopt;
  }
}

}  // namespace

Rune decode_rune(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t size = 0;
  char32_t value = 0;
  char32_t least = 0;
  if ((first & 0xE0U) == 0xC0U) {
    size = 2, value = first & 0x1FU, least = 0x80;
  } else if ((first & 0xF0U) == 0xE0U) {
    size = 3, value = first & 0x0FU, least = 0x800;
  } else if ((first & 0xF8U) == 0xF0U) {
    size = 4, value = first & 0x07U, least = 0x10000;
  }
  if (size == 0 || text.size() < size) return {kBadRune, 1};
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {kBadRune, 1};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  if (value < least || value > 0x10FFFF || is_surrogate(value)) return {kBadRune, 1};
  return {value, size};
}

std::string encode_rune(char32_t rune) {
  if (rune > 0x10FFFF || is_surrogate(rune)) rune = kBadRune;
  const auto unit = [](char32_t bits) {
    return static_cast<char>(static_cast<unsigned char>(bits));
  };
  if (rune < 0x80) return {unit(rune)};
  if (rune < 0x800) return {unit(0xC0U | (rune >> 6U)), unit(0x80U | (rune & 0x3FU))};
  if (rune < 0x10000) {
    return {unit(0xE0U | (rune >> 12U)), unit(0x80U | ((rune >> 6U) & 0x3FU)),
            unit(0x80U | (rune & 0x3FU))};
  }
  return {unit(0xF0U | (rune >> 18U)), unit(0x80U | ((rune >> 12U) & 0x3FU)),
          unit(0x80U | ((rune >> 6U) & 0x3FU)), unit(0x80U | (rune & 0x3FU))};
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string quote(std::string_view text, char quotes, bool ascii_only) {
  constexpr std::string_view kLetters = "abtnvfr";  // of the codes 7 to 13
  std::string result(1, quotes);
  while (!text.empty()) {
    const Rune rune = decode_rune(text);
    const std::string_view bytes = text.substr(0, rune.size);
    text.remove_prefix(rune.size);
    if (rune.size == 1 && rune.value == kBadRune) {
      result += "\\x" + hex(static_cast<unsigned char>(bytes[0]), 2);
    } else if (rune.value == static_cast<char32_t>(quotes) || rune.value == '\\') {
      result += '\\';
      result += bytes;
    } else if (rune.value >= 7 && rune.value <= 13) {
      result += '\\';
      result += kLetters[rune.value - 7];
    } else if (rune.value < 0x20 || rune.value == 0x7F) {
      result += "\\x" + hex(rune.value, 2);
    } else if (rune.value < 0x7F || !ascii_only) {
      result += bytes;
    } else if (rune.value < 0x10000) {
      result += "\\u" + hex(rune.value, 4);
    } else {
      result += "\\U" + hex(rune.value, 8);
    }
  }
  return result + quotes;
}

std::optional<std::string> unquote(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != literal.back()) return std::nullopt;
  const char quotes = literal.front();
  std::string_view rest = literal.substr(1, literal.size() - 2);
  std::string result;
  if (quotes == '`') {
    for (const char c : rest) {
      if (c == '`') return std::nullopt;
      if (c != '\r') result += c;
    }
    return result;
  }
  if (quotes != '"') return std::nullopt;
  while (!rest.empty()) {
    const auto c = unquote_char(rest, quotes);
    if (!c.has_value()) return std::nullopt;
    if (c->byte) {
      result += static_cast<char>(static_cast<unsigned char>(c->value));
    } else {
      result += encode_rune(c->value);
    }
  }
  return result;
}

std::optional<char32_t> unquote_rune(std::string_view literal, std::string_view& rest) {
  if (literal.size() < 2 || literal.front() != '\'') return std::nullopt;
  rest = literal.substr(1);
  const auto c = unquote_char(rest, '\'');
  if (!c.has_value()) return std::nullopt;
  return c->value;
}

std::string unicode_name(char32_t rune) {
  std::string digits = hex(rune, 8);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 4));
  std::transform(digits.begin(), digits.end(), digits.begin(),
                 [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  return "U+" + digits;
}

}  // namespace lpp::gotemplate
