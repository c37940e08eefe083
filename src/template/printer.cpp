// SPDX-License-Identifier: Apache-2.0
#include "template/printer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "template/format.h"
#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

constexpr std::string_view kLower = "0123456789abcdef";
constexpr std::string_view kUpper = "0123456789ABCDEF";

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

char32_t as_rune(std::int64_t value) {
  return value < 0 || value > 0x10FFFF ? char32_t{0xFFFD} : static_cast<char32_t>(value);
}

std::string chars(double value, std::chars_format format, std::optional<int> precision) {
  std::array<char, 2048> buffer{};
  char* end = buffer.data() + buffer.size();
  const auto result = precision.has_value()
                          ? std::to_chars(buffer.data(), end, value, format, *precision)
                          : std::to_chars(buffer.data(), end, value, format);
  return result.ec == std::errc{} ? std::string(buffer.data(), result.ptr) : std::string();
}

/// strconv.FormatFloat(value, 'g', -1, 64): shortest, with an exponent from 1e-5 down and 1e+06 up.
std::string shortest(double value) {
  std::string scientific = chars(value, std::chars_format::scientific, std::nullopt);
  const auto e = scientific.find('e');
  if (e == std::string::npos) return scientific;
  const bool negative = scientific[e + 1] == '-';
  int exponent = 0;
  std::from_chars(scientific.data() + e + 2, scientific.data() + scientific.size(), exponent);
  if (negative) exponent = -exponent;
  if (exponent < -4 || exponent >= 6) return scientific;
  return chars(value, std::chars_format::fixed, std::nullopt);
}

}  // namespace

std::size_t rune_count(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(decode_rune(text).size);
  return count;
}

void Printer::print(const Value& value, char32_t verb, const FormatSpec& spec) {
  spec_ = spec;
  if (out_.size() > kMaxText) return not_supported("a text of more than 64 KiB");
  if (value.kind == Kind::kInvalid) {
    if (verb != 'T' && verb != 'v') return bad_verb(value, verb);
    return pad("<nil>", spec_.zero);
  }
  if (verb == 'T') return pad(truncated(type_name(value)), spec_.zero);
  switch (value.kind) {
    case Kind::kInvalid:
      return;
    case Kind::kBool:
      return print_bool(value, verb);
    case Kind::kInt:
    case Kind::kInt64:
    case Kind::kByte:
      return print_integer(value, verb);
    case Kind::kFloat:
      return print_float(value, verb);
    case Kind::kString:
    case Kind::kNamedString:
      return print_string(value, verb);
    case Kind::kMap:
    case Kind::kList:
      return print_container(value, verb);
    case Kind::kObjects:
      if (value.size() == 0) return print_container(value, verb);
      return not_supported("printing a structure (" + std::string(value.objects[0]->type()) + ")");
    case Kind::kTime:
    case Kind::kNoTime:
      return print_time(value, verb);
    case Kind::kObject:
      return not_supported("printing a structure (" + std::string(type_name(value)) + ")");
  }
}

void Printer::print_bool(const Value& value, char32_t verb) {
  if (verb != 't' && verb != 'v') return bad_verb(value, verb);
  pad(value.integer != 0 ? "true" : "false", spec_.zero);
}

void Printer::print_integer(const Value& value, char32_t verb) {
  switch (verb) {
    case 'v':
      if (spec_.sharp_v && value.kind == Kind::kByte) {
        spec_.sharp = true;
        return integer_digits(value, 16, verb, false);
      }
      return integer_digits(value, 10, verb, false);
    case 'd':
      return integer_digits(value, 10, verb, false);
    case 'b':
      return integer_digits(value, 2, verb, false);
    case 'o':
    case 'O':
      return integer_digits(value, 8, verb, false);
    case 'x':
      return integer_digits(value, 16, verb, false);
    case 'X':
      return integer_digits(value, 16, verb, true);
    case 'c':
      return pad(encode_rune(as_rune(value.integer)), spec_.zero);
    case 'q': {
      const std::string text = encode_rune(as_rune(value.integer));
      if (!spec_.plus && !is_ascii(text)) {
        return not_supported("%q of a character beyond ASCII");
      }
      return pad(quote(text, '\'', spec_.plus), spec_.zero);
    }
    case 'U':
      return unicode_point(value);
    default:
      return bad_verb(value, verb);
  }
}

void Printer::integer_digits(const Value& value, int base, char32_t verb, bool upper) {
  const bool negative = value.integer < 0;
  auto magnitude = static_cast<std::uint64_t>(value.integer);
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
  std::string digits;  // backwards
  const std::string_view alphabet = upper ? kUpper : kLower;
  const auto divisor = static_cast<std::uint64_t>(base);
  do {
    digits += alphabet[magnitude % divisor];
    magnitude /= divisor;
  } while (magnitude > 0);
  while (digits.size() < least) digits += '0';
  if (spec_.sharp && base == 2) digits += "b0";
  if (spec_.sharp && base == 8 && digits.back() != '0') digits += '0';
  if (spec_.sharp && base == 16) digits += upper ? "X0" : "x0";
  if (verb == 'O') digits += "o0";
  if (negative) {
    digits += '-';
  } else if (spec_.plus) {
    digits += '+';
  } else if (spec_.space) {
    digits += ' ';
  }
  std::reverse(digits.begin(), digits.end());
  pad(digits, false);
}

void Printer::unicode_point(const Value& value) {
  if (value.integer < 0) return not_supported("%U of a negative number");
  std::string digits;
  auto rest = static_cast<std::uint64_t>(value.integer);
  const auto least = static_cast<std::size_t>(std::max(4, spec_.precision.value_or(0)));
  for (; rest > 0; rest /= 16) digits += kUpper[rest % 16];
  while (digits.size() < least) digits += '0';
  std::reverse(digits.begin(), digits.end());
  digits.insert(0, "U+");
  if (spec_.sharp) {
    if (value.integer >= 0x7F) return not_supported("%#U of a character beyond ASCII");
    if (value.integer >= 0x20) {
      digits += " '" + std::string(1, static_cast<char>(value.integer)) + "'";
    }
  }
  pad(digits, false);
}

void Printer::print_float(const Value& value, char32_t verb) {
  if (std::u32string_view(U"vgGeEfFbxX").find(verb) == std::u32string_view::npos) {
    return bad_verb(value, verb);
  }
  if (verb == 'b' || verb == 'x' || verb == 'X' || spec_.sharp) {
    return not_supported("this format of a floating-point number");
  }
  std::string number;
  const double magnitude = std::fabs(value.real);
  if (verb == 'v' || verb == 'g' || verb == 'G') {
    number = spec_.precision.has_value()
                 ? chars(magnitude, std::chars_format::general, spec_.precision)
                 : shortest(magnitude);
  } else {
    const bool scientific = verb == 'e' || verb == 'E';
    number = chars(magnitude, scientific ? std::chars_format::scientific : std::chars_format::fixed,
                   spec_.precision.value_or(6));
  }
  if (number.empty()) return not_supported("so many digits");
  if (verb == 'E' || verb == 'G') std::replace(number.begin(), number.end(), 'e', 'E');
  std::string sign;
  if (std::signbit(value.real)) {
    sign = "-";
  } else if (spec_.plus) {
    sign = "+";
  } else if (spec_.space) {
    sign = " ";
  }
  const auto width = static_cast<std::size_t>(spec_.width.value_or(0));
  if (!sign.empty() && spec_.zero && !spec_.minus && width > sign.size() + number.size()) {
    out_ += sign;
    fill(width - sign.size() - number.size(), true);
    out_ += number;
    return;
  }
  pad(sign + number, spec_.zero);
}

void Printer::print_string(const Value& value, char32_t verb) {
  switch (verb) {
    case 'v':
      if (spec_.sharp_v) return quoted(value.text);
      return pad(truncated(value.text), spec_.zero);
    case 's':
      return pad(truncated(value.text), spec_.zero);
    case 'x':
    case 'X':
      return hex_bytes(value.text, verb == 'X');
    case 'q':
      return quoted(value.text);
    default:
      return bad_verb(value, verb);
  }
}

void Printer::print_container(const Value& value, char32_t verb) {
  if (verb == 'w') return bad_verb(value, verb);
  if (verb == 'p') return not_supported("%p");
  const bool map = value.kind == Kind::kMap;
  const FormatSpec spec = spec_;
  const std::string name(type_name(value));
  const auto element = [&](const std::string& text) { print(Value::of_string(text), verb, spec); };
  if (spec.sharp_v && (map ? value.map->empty() : value.size() == 0)) {
    return append(name + "(nil)");
  }
  append(spec.sharp_v ? name + "{" : map ? "map[" : "[");
  bool first = true;
  const auto separate = [&] {
    if (!first) append(spec.sharp_v ? ", " : " ");
    first = false;
  };
  if (map) {
    for (const auto& [key, text] : *value.map) {
      separate();
      element(key);
      append(":");
      element(text);
    }
  } else {
    for (const auto& text : value.list) {
      separate();
      element(text);
    }
  }
  append(spec.sharp_v ? "}" : "]");
}

void Printer::print_time(const Value& value, char32_t verb) {
  const bool as_text = verb == 'v' || verb == 's' || verb == 'q' || verb == 'x' || verb == 'X';
  if (!as_text || spec_.sharp_v) return not_supported("this format of a time");
  if (value.kind == Kind::kNoTime) return append("<nil>");
  print_string(value, verb);
}

void Printer::bad_verb(const Value& value, char32_t verb) {
  out_ += "%!" + encode_rune(verb) + "(";
  if (value.kind == Kind::kInvalid) {
    out_ += "<nil>";
  } else {
    out_ += std::string(type_name(value)) + "=";
    const FormatSpec spec = spec_;
    print(value, 'v', spec);
  }
  out_ += ")";
}

void Printer::hex_bytes(std::string_view text, bool upper) {
  if (spec_.precision.has_value()) {
    text = text.substr(0, static_cast<std::size_t>(*spec_.precision));
  }
  std::string hex;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (spec_.space && i > 0) hex += ' ';
    if (spec_.sharp && (i == 0 || spec_.space)) hex += upper ? "0X" : "0x";
    const auto byte = static_cast<unsigned char>(text[i]);
    hex += (upper ? kUpper : kLower)[byte >> 4U];
    hex += (upper ? kUpper : kLower)[byte & 15U];
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
  if (count > kMaxText) return not_supported("a text of more than 64 KiB");
  out_.append(count, zeros && !spec_.minus ? '0' : ' ');
}

void Printer::not_supported(std::string what) {
  if (unsupported_.empty()) unsupported_ = std::move(what) + " is not supported in patterns";
}

}  // namespace lpp::gotemplate
