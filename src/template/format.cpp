// SPDX-License-Identifier: Apache-2.0
#include "template/format.h"

#include "template/printer.h"
#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

constexpr int kTooLarge = 1'000'000;

Result<std::string> finish(const Printer& printer) {
  if (!printer.unsupported().empty()) return invalid(printer.unsupported());
  if (printer.text().size() > kMaxText) return invalid("the text is longer than 64 KiB");
  return printer.text();
}

/// One call of Sprintf.
class Formatter {
 public:
  Formatter(std::string_view format, std::span<const Value> values)
      : format_(format), values_(values) {}

  Result<std::string> run() {
    while (at_ < format_.size()) {
      const auto percent = format_.find('%', at_);
      printer_.append(format_.substr(at_, percent - at_));
      if (percent == std::string_view::npos) break;
      at_ = percent + 1;
      if (!one_verb()) {
        printer_.append("%!(NOVERB)");
        break;
      }
    }
    extra_values();
    return finish(printer_);
  }

 private:
  /// After a '%'; false when the format ends before a verb.
  bool one_verb() {
    spec_ = FormatSpec{};
    good_index_ = true;
    flags();
    bool after_index = index();
    after_index = width(after_index);
    after_index = precision(after_index);
    if (!after_index) index();
    if (at_ >= format_.size()) return false;
    const Rune verb = decode_rune(format_.substr(at_));
    at_ += verb.size;
    apply(verb.value);
    return true;
  }

  void apply(char32_t verb) {
    const std::string bang = "%!" + encode_rune(verb);
    if (verb == '%') return printer_.append("%");
    if (!good_index_) return printer_.append(bang + "(BADINDEX)");
    if (next_ >= values_.size()) return printer_.append(bang + "(MISSING)");
    if (verb == 'v' || verb == 'w') {
      spec_.sharp_v = spec_.sharp;
      spec_.sharp = false;
      spec_.plus = false;
    }
    printer_.print(values_[next_++], verb, spec_);
  }

  void flags() {
    for (; at_ < format_.size(); ++at_) {
      switch (format_[at_]) {
        case '#':
          spec_.sharp = true;
          break;
        case '0':
          spec_.zero = true;
          break;
        case '+':
          spec_.plus = true;
          break;
        case '-':
          spec_.minus = true;
          break;
        case ' ':
          spec_.space = true;
          break;
        default:
          return;
      }
    }
  }

  char current() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  /// Reads digits up to `end`; nullopt when there are none, or too many (then at_ is `end`).
  std::optional<int> number(std::size_t end) {
    std::optional<int> value;
    for (; at_ < end && format_[at_] >= '0' && format_[at_] <= '9'; ++at_) {
      if (value.value_or(0) > kTooLarge) {
        at_ = end;
        return std::nullopt;
      }
      value = value.value_or(0) * 10 + (format_[at_] - '0');
    }
    return value;
  }

  /// An explicit index "[n]"; true when there was one.
  bool index() {
    if (current() != '[') return false;
    reordered_ = true;
    const auto close = format_.find(']', at_ + 1);
    if (format_.size() - at_ < 3 || close == std::string_view::npos) {
      good_index_ = false;
      ++at_;
      return false;
    }
    ++at_;
    const auto value = number(close);
    const bool readable = value.has_value() && at_ == close;
    at_ = close + 1;
    if (readable && *value >= 1 && static_cast<std::size_t>(*value) <= values_.size()) {
      next_ = static_cast<std::size_t>(*value) - 1;
      return true;
    }
    good_index_ = false;
    return readable;
  }

  /// A '*': the next value as an integer.
  std::optional<int> from_value() {
    if (next_ >= values_.size()) return std::nullopt;
    const Value& value = values_[next_++];
    if (!value.whole_number()) return std::nullopt;
    if (value.integer > kTooLarge || value.integer < -kTooLarge) return std::nullopt;
    return static_cast<int>(value.integer);
  }

  bool width(bool after_index) {
    if (current() == '*') {
      ++at_;
      spec_.width = from_value();
      if (!spec_.width.has_value()) printer_.append("%!(BADWIDTH)");
      if (spec_.width.value_or(0) < 0) {
        spec_.width = -*spec_.width;
        spec_.minus = true;
        spec_.zero = false;
      }
      return false;
    }
    spec_.width = number(format_.size());
    if (after_index && spec_.width.has_value()) good_index_ = false;
    return after_index;
  }

  bool precision(bool after_index) {
    if (current() != '.' || at_ + 1 >= format_.size()) return after_index;
    ++at_;
    if (after_index) good_index_ = false;
    after_index = index();
    if (current() == '*') {
      ++at_;
      spec_.precision = from_value();
      if (spec_.precision.value_or(0) < 0) spec_.precision.reset();
      if (!spec_.precision.has_value()) printer_.append("%!(BADPREC)");
      return false;
    }
    spec_.precision = number(format_.size()).value_or(0);
    return after_index;
  }

  void extra_values() {
    if (reordered_ || next_ >= values_.size()) return;
    printer_.append("%!(EXTRA ");
    for (std::size_t i = next_; i < values_.size(); ++i) {
      if (i > next_) printer_.append(", ");
      if (values_[i].valid()) {
        printer_.append(std::string(type_name(values_[i])) + "=");
      }
      printer_.print(values_[i], 'v', FormatSpec{});
    }
    printer_.append(")");
  }

  const std::string_view format_;
  const std::span<const Value> values_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
  bool reordered_ = false;
  bool good_index_ = true;
  FormatSpec spec_;
  Printer printer_;
};

}  // namespace

Result<std::string> sprintf(std::string_view format, std::span<const Value> values) {
  return Formatter(format, values).run();
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
