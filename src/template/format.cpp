// SPDX-License-Identifier: Apache-2.0
#include "template/format.h"

#include <algorithm>
#include <optional>

#include "template/printer.h"
#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

constexpr std::string_view kVerbs = "svdqxtc%";

/// One verb of a format.
struct Directive {
  std::string_view text{};  // "%-5.2[1]s"
  char verb = 0;
  FormatSpec spec{};
  std::optional<std::size_t> value{};  // [n], from 1
};

/// Reads the verbs of a format one after another.
class FormatReader {
 public:
  explicit FormatReader(std::string_view format) : format_(format) {}

  /// The text up to the next verb, or to the end.
  std::string_view literal() {
    const std::size_t start = at_;
    at_ = std::min(format_.find('%', at_), format_.size());
    return format_.substr(start, at_ - start);
  }
  bool done() const { return at_ >= format_.size(); }

  /// At a '%'.
  Result<Directive> directive() {
    const std::size_t start = at_++;
    Directive read;
    flags(read.spec);
    read.spec.width = number();
    if (current() == '.') {
      ++at_;
      read.spec.precision = number().value_or(0);
    }
    if (current() == '[') {
      ++at_;
      const auto index = number();
      if (!index.has_value() || *index < 1 || current() != ']') return unsupported(start);
      ++at_;
      read.value = static_cast<std::size_t>(*index);
    }
    if (too_large_) return invalid("a number in the format is too large");
    if (done()) return invalid(quote(format_.substr(start)) + " has no verb");
    read.verb = current();
    const bool go_syntax = read.verb == 'v' && read.spec.sharp;
    if (kVerbs.find(read.verb) == std::string_view::npos || go_syntax) return unsupported(start);
    if (read.verb == 'v') read.spec.plus = false;
    read.text = format_.substr(start, ++at_ - start);
    return read;
  }

 private:
  char current() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  Error unsupported(std::size_t start) const {
    const std::size_t size = done() ? 0 : decode_rune(format_.substr(at_)).size;
    return invalid(quote(format_.substr(start, at_ + size - start)) +
                   " is not supported in patterns, only %s %v %d %q %x %t %c and %% with flags "
                   "(no %#v), width, precision and [n] before the verb");
  }

  void flags(FormatSpec& spec) {
    for (; at_ < format_.size(); ++at_) {
      switch (format_[at_]) {
        case '#': spec.sharp = true; break;
        case '0': spec.zero = true; break;
        case '+': spec.plus = true; break;
        case '-': spec.minus = true; break;
        case ' ': spec.space = true; break;
        default: return;
      }
    }
  }

  /// nullopt when there are no digits.
  std::optional<int> number() {
    std::optional<int> value;
    for (; current() >= '0' && current() <= '9'; ++at_) {
      value = value.value_or(0) * 10 + (current() - '0');
      if (*value > static_cast<int>(kMaxText)) {
        too_large_ = true;
        value = 0;
      }
    }
    return value;
  }

  const std::string_view format_;
  std::size_t at_ = 0;
  bool too_large_ = false;
};

Result<std::string> finish(const Printer& printer) {
  if (!printer.refused().empty()) return invalid(printer.refused());
  if (printer.text().size() > kMaxText) return invalid("the text is longer than 64 KiB");
  return printer.text();
}

}  // namespace

Result<void> check_format(std::string_view format) {
  FormatReader reader(format);
  for (reader.literal(); !reader.done(); reader.literal()) {
    if (auto read = reader.directive(); !read.ok()) return std::move(read).error();
  }
  return {};
}

Result<std::string> sprintf(std::string_view format, std::span<const Value> values) {
  FormatReader reader(format);
  Printer printer;
  std::size_t next = 0;
  bool reordered = false;
  for (printer.append(reader.literal()); !reader.done(); printer.append(reader.literal())) {
    auto read = reader.directive();
    if (!read.ok()) return std::move(read).error();
    if (read->value.has_value()) {
      reordered = true;
      next = *read->value - 1;
    }
    if (read->verb == '%') {
      printer.append("%");
      continue;
    }
    if (next >= values.size()) return invalid("there is no value for " + std::string(read->text));
    printer.print(values[next++], read->verb, read->spec);
  }
  if (!reordered && next < values.size()) {
    return invalid("there is no verb for value " + std::to_string(next + 1));
  }
  return finish(printer);
}

Result<std::string> sprint(std::span<const Value> values) {
  Printer printer;
  bool text_before = true;
  for (const Value& value : values) {
    if (!text_before && !value.textual()) printer.append(" ");
    printer.print(value, 'v', FormatSpec{});
    text_before = value.textual();
  }
  return finish(printer);
}

Result<std::string> sprintln(std::span<const Value> values) {
  Printer printer;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) printer.append(" ");
    printer.print(values[i], 'v', FormatSpec{});
  }
  printer.append("\n");
  return finish(printer);
}

}  // namespace lpp::gotemplate
