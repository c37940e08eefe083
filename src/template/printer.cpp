// SPDX-License-Identifier: Apache-2.0
#include "template/printer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "template/format.h"
#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// strconv.CanBackquote.
bool can_backquote(std::string_view text) {
  while (!text.empty()) {
    const Rune rune = decode_rune(text);
    const bool bad = rune.size == 1 && rune.value == 0xFFFD;
    if (bad || rune.value == 0xFEFF || rune.value == '`' || rune.value == 0x7F ||
        (rune.value < 0x20 && rune.value != '\t')) {
      return false;
    }
    text.remove_prefix(rune.size);
  }
  return true;
}

std::string character(std::int64_t value) {
  return encode_rune(value < 0 || value > 0x10FFFF ? char32_t{0xFFFD}
                                                   : static_cast<char32_t>(value));
}

std::size_t rune_count(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(decode_rune(text).size);
  return count;
}

/// The verbs that print a value, each in its own way.
std::string_view verbs_for(const Value& value) {
  switch (value.kind) {
    case Kind::kInvalid: return "v";
    case Kind::kBool: return "vt";
    case Kind::kInt:
    case Kind::kInt64:
    case Kind::kByte: return "vdxcq";
    default: return "vsxq";
  }
}

}  // namespace

void Printer::print(const Value& value, char verb, const FormatSpec& spec) {
  spec_ = spec;
  if (out_.size() > kMaxText) return not_supported("a text of more than 64 KiB");
  if (value.kind == Kind::kObject || (value.kind == Kind::kObjects && value.size() > 0)) {
    const Object& object = value.object != nullptr ? *value.object : *value.objects[0];
    return not_supported("printing a structure (" + std::string(object.type()) + ")");
  }
  if (verbs_for(value).find(verb) == std::string_view::npos) {
    return refuse("%" + std::string(1, verb) + " does not print a value of type " +
                  std::string(type_name(value)));
  }
  switch (value.kind) {
    case Kind::kInvalid: return pad("<nil>", spec_.zero);
    case Kind::kBool: return pad(value.integer != 0 ? "true" : "false", spec_.zero);
    case Kind::kInt:
    case Kind::kInt64:
    case Kind::kByte: return print_integer(value.integer, verb);
    case Kind::kNoTime: return append("<nil>");
    case Kind::kString:
    case Kind::kNamedString:
    case Kind::kTime: return print_text(value.text, verb);
    default: return print_container(value, verb);
  }
}

void Printer::print_integer(std::int64_t value, char verb) {
  switch (verb) {
    case 'x': return digits(value, 16);
    case 'c': return pad(character(value), spec_.zero);
    case 'q': return quoted_rune(character(value));
    default: return digits(value, 10);
  }
}

void Printer::digits(std::int64_t value, unsigned base) {
  const bool negative = value < 0;
  auto magnitude = static_cast<std::uint64_t>(value);
  if (negative) magnitude = 0 - magnitude;
  std::size_t least = 0;
  if (spec_.precision.has_value()) {
    if (*spec_.precision == 0 && magnitude == 0) {
      return fill(static_cast<std::size_t>(spec_.width.value_or(0)), false);
    }
    least = static_cast<std::size_t>(*spec_.precision);
  } else if (spec_.zero && !spec_.minus && spec_.width.has_value()) {
    least = static_cast<std::size_t>(*spec_.width);
    if ((negative || spec_.plus || spec_.space) && least > 0) --least;  // room for the sign
  }
  std::string text;  // backwards
  do {
    text += kHexDigits[magnitude % base];
    magnitude /= base;
  } while (magnitude > 0);
  while (text.size() < least) text += '0';
  if (spec_.sharp && base == 16) text += "x0";
  if (negative) {
    text += '-';
  } else if (spec_.plus) {
    text += '+';
  } else if (spec_.space) {
    text += ' ';
  }
  std::reverse(text.begin(), text.end());
  pad(text, false);
}

void Printer::quoted_rune(const std::string& rune) {
  if (!spec_.plus && !is_ascii(rune)) return not_supported("%q of a character beyond ASCII");
  pad(quote(rune, '\'', spec_.plus), spec_.zero);
}

void Printer::print_text(std::string_view text, char verb) {
  switch (verb) {
    case 'x': return hex_bytes(text);
    case 'q': return quoted(text);
    default: return pad(truncated(text), spec_.zero);
  }
}

void Printer::print_container(const Value& value, char verb) {
  const FormatSpec spec = spec_;
  bool first = true;
  const auto separate = [&] {
    if (!first) append(" ");
    first = false;
  };
  const auto element = [&](const std::string& text) { print(Value::of_string(text), verb, spec); };
  append(value.kind == Kind::kMap ? "map[" : "[");
  if (value.kind == Kind::kMap) {
    for (const auto& [key, text] : *value.map) {
      separate();
      element(key);
      append(":");
      element(text);
    }
  }
  for (const auto& text : value.list) {
    separate();
    element(text);
  }
  append("]");
}

void Printer::hex_bytes(std::string_view text) {
  if (spec_.precision.has_value()) {
    text = text.substr(0, static_cast<std::size_t>(*spec_.precision));
  }
  std::string hex;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (spec_.space && i > 0) hex += ' ';
    if (spec_.sharp && (i == 0 || spec_.space)) hex += "0x";
    const auto byte = static_cast<unsigned char>(text[i]);
    hex += kHexDigits[byte >> 4U];
    hex += kHexDigits[byte & 15U];
  }
  pad(hex, spec_.zero);
}

void Printer::quoted(std::string_view text) {
  text = truncated(text);
  if (spec_.sharp && can_backquote(text)) {
    return pad("`" + std::string(text) + "`", spec_.zero);
  }
  if (!spec_.plus && !is_ascii(text)) return not_supported("quoting characters beyond ASCII");
  pad(quote(text, '"', spec_.plus), spec_.zero);
}

std::string_view Printer::truncated(std::string_view text) const {
  if (!spec_.precision.has_value()) return text;
  std::size_t size = 0;
  for (int i = 0; i < *spec_.precision && size < text.size(); ++i) {
    size += decode_rune(text.substr(size)).size;
  }
  return text.substr(0, size);
}

void Printer::pad(std::string_view text, bool zeros) {
  const auto width = static_cast<std::size_t>(spec_.width.value_or(0));
  const std::size_t count = rune_count(text);
  const std::size_t missing = width > count ? width - count : 0;
  if (!spec_.minus) fill(missing, zeros);
  out_ += text;
  if (spec_.minus) fill(missing, false);
}

void Printer::fill(std::size_t count, bool zeros) {
  out_.append(count, zeros && !spec_.minus ? '0' : ' ');
}

void Printer::refuse(std::string why) {
  if (refused_.empty()) refused_ = std::move(why);
}

}  // namespace lpp::gotemplate
