// SPDX-License-Identifier: Apache-2.0
#include "k8s/json_reader.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lpp::k8s {

namespace {

using nlohmann::json;

/// The place after the text that begins with the quote at `begin`, or npos when it does not end.
std::size_t end_of_text(std::string_view text, std::size_t begin) {
  std::size_t at = text.find('"', begin + 1);
  while (at != std::string_view::npos) {
    std::size_t first = at;  // of the backslashes before it
    while (text[first - 1] == '\\') --first;
    if ((at - first) % 2 == 0) return at + 1;
    at = text.find('"', at + 1);
  }
  return at;
}

/// The place after the array or object that begins at `begin`, or npos when it does not end.
std::size_t end_of_container(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    switch (text[at]) {
      case '[':
      case '{': ++depth; break;
      case ']':
      case '}':
        if (--depth == 0) return at + 1;
        break;
      case '"':
        at = end_of_text(text, at);
        if (at == std::string_view::npos) return at;
        --at;
        break;
      default: break;
    }
  }
  return std::string_view::npos;
}

std::size_t end_of_value(std::string_view text, std::size_t begin) {
  switch (begin < text.size() ? text[begin] : '\0') {
    case '[':
    case '{': return end_of_container(text, begin);
    case '"': return end_of_text(text, begin);
    default: return std::min(text.find_first_of(",]} \t\r\n", begin), text.size());
  }
}

/// The text without the arrays of field managers. They are found by their name and brackets, faster
/// than a parser gets through them. Within a text of JSON a quote has a backslash, so that a
/// field's name and bracket there are never taken for a field's.
std::string without_managed_fields(std::string_view text) {
  static constexpr std::string_view kBegin = "\"managedFields\":[";
  std::string kept;
  kept.reserve(text.size());
  std::size_t from = 0;
  std::size_t at = text.find(kBegin);
  while (at != std::string_view::npos) {
    std::size_t next = at + kBegin.size();
    if (!text.substr(0, at).ends_with('\\')) {
      const std::size_t end = end_of_container(text, next - 1);
      if (end == std::string_view::npos) break;
      kept.append(text, from, at - from);
      from = next = end;
      if (text.substr(end).starts_with(',')) {
        from = next = end + 1;
      } else if (kept.ends_with(',')) {
        kept.pop_back();
      }
    }
    at = text.find(kBegin, next);
  }
  kept.append(text, from);
  return kept;
}

/// Copies what a projection leaves of a text. What is left out is only searched for its end, which
/// is many times faster than parsing it. It goes as deep as the projection does, not the text.
class Copier {
 public:
  explicit Copier(std::string_view text) : text_(text) {
    kept_.reserve(std::min(text.size() / 2, kMostAtOnce));
  }

  /// Nothing when the text is no JSON: a parser finds out why.
  std::optional<std::string> copy(Projection projection) {
    blank();
    if (!value(projection)) return std::nullopt;
    kept_.append(text_, at_);  // nothing, or an error for the parser
    return std::move(kept_);
  }

 private:
  // More is rarely left of an object.
  static constexpr std::size_t kMostAtOnce = std::size_t{64} << 10U;

  bool value(Projection projection) {
    const char first = next();
    if (!projection.empty() && first == '{') return object(projection);
    if (!projection.empty() && first == '[') return array(projection);
    const std::size_t end = end_of_value(text_, at_);
    if (end == std::string_view::npos) return false;
    kept_.append(text_, at_, end - at_);
    at_ = end;
    return true;
  }

  bool object(Projection projection) {
    take();
    blank();
    bool first = true;
    bool left_out = false;
    while (next() == '"') {
      const std::size_t end = end_of_text(text_, at_);
      if (end == std::string_view::npos) return false;
      const std::string_view name = text_.substr(at_ + 1, end - at_ - 2);
      at_ = end;
      blank();
      if (next() != ':') return false;
      ++at_;
      blank();
      const auto field = std::find_if(projection.begin(), projection.end(),
                                      [&](const ReadField& one) { return one.name == name; });
      const bool escaped = name.find('\\') != std::string_view::npos;  // may be any name
      if (field == projection.end() && !escaped) {
        at_ = end_of_value(text_, at_);
        if (at_ == std::string_view::npos) return false;
      } else {
        const std::size_t before = kept_.size();
        if (!std::exchange(first, false)) kept_ += ',';
        kept_.append("\"").append(name).append("\":");
        const bool bounded = !escaped && field->most != 0;
        if (bounded) {
          const auto read = bounded_value(*field);
          if (read == Bounded::kBad) return false;
          left_out = left_out || read != Bounded::kAll;
          if (read == Bounded::kNothing) {
            kept_.resize(before);
            first = kept_.ends_with('{');
          }
        } else if (!value(escaped ? Projection{} : field->inside)) {
          return false;
        }
      }
      if (!comma()) break;
      if (next() != '"') return false;
    }
    if (left_out) {
      if (!first) kept_ += ',';
      kept_.append("\"").append(kLeftOut).append("\":true");
    }
    return close('}');
  }

  enum class Bounded { kAll, kPart, kNothing, kBad };

  /// A value of which not more may be kept than the field says.
  Bounded bounded_value(const ReadField& field) {
    using enum FieldType;
    const bool is_map = field.type == kTextMap || field.type == kQuantityMap;
    const bool is_list = field.type == kTexts || field.type == kObjects;
    if (is_map && next() == '{') return bounded_entries(field, '}');
    if (is_list && next() == '[') return bounded_entries(field, ']');
    const std::size_t end = end_of_value(text_, at_);
    if (end == std::string_view::npos) return Bounded::kBad;
    if (end - at_ > field.most) {
      at_ = end;
      return Bounded::kNothing;
    }
    return value(field.inside) ? Bounded::kAll : Bounded::kBad;
  }

  Bounded bounded_entries(const ReadField& field, char last) {
    take();
    blank();
    bool first = true;
    auto result = Bounded::kAll;
    std::size_t used = 0;
    while (next() != last) {
      const std::size_t begin = at_;
      std::string_view key;
      if (last == '}') {
        if (next() != '"') return Bounded::kBad;
        at_ = end_of_text(text_, begin);
        if (at_ == std::string_view::npos) return Bounded::kBad;
        key = text_.substr(begin + 1, at_ - begin - 2);
        blank();
        if (next() != ':') return Bounded::kBad;
        ++at_;
        blank();
      }
      const std::size_t end = end_of_value(text_, at_);
      if (end == std::string_view::npos) return Bounded::kBad;
      if (fits(field, key, end - begin, used)) {
        if (!std::exchange(first, false)) kept_ += ',';
        kept_.append(text_, begin, at_ - begin);
        if (!value(field.inside)) return Bounded::kBad;
      } else {
        result = Bounded::kPart;
        at_ = end;
      }
      if (!comma()) break;
      if (next() == last) return Bounded::kBad;
    }
    return close(last) ? result : Bounded::kBad;
  }

  bool array(Projection projection) {
    take();
    blank();
    while (next() != ']') {
      // A list in a list has no fields of this kind.
      if (!value(next() == '[' ? Projection{} : projection)) return false;
      if (!comma()) break;
      kept_ += ',';
    }
    return close(']');
  }

  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void take() { kept_ += text_[at_++]; }
  void blank() {
    if (next() > ' ') return;  // as nearly always
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  }
  bool comma() {
    blank();
    if (next() != ',') return false;
    ++at_;
    blank();
    return true;
  }
  bool close(char bracket) {
    if (next() != bracket) return false;
    take();
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::string kept_;
};

std::string projected(std::string_view text, Projection projection) {
  if (!projection.empty()) {
    if (auto kept = Copier(text).copy(projection)) return *std::move(kept);
  }
  return without_managed_fields(text);
}

/// Far more than any Kubernetes object has; values are built and destroyed recursively.
constexpr std::size_t kMaxDepth = 1000;

/// Builds values from the parser's events.
class Builder final : public nlohmann::json_sax<json> {
 public:
  json take(bool complete) { return complete ? std::move(root_) : json(json::value_t::discarded); }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return scalar(value);
  }
  // Copied, not moved: the parser goes on with a buffer that has grown already.
  bool string(string_t& value) override { return scalar(value); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return open(json::value_t::object); }
  bool start_array(std::size_t /*size*/) override { return open(json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  bool scalar(json value) {
    place(std::move(value));
    return true;
  }

  bool open(json::value_t type) {
    open_.push_back(place(json(type)));
    return open_.size() < kMaxDepth;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// Puts a value where the parser is, and says where it stands now.
  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    return &(parent[key_] = std::move(value));
  }

  json root_;
  std::vector<json*> open_;  // the containers around the parser's place; a parent never moves
  std::string key_;          // of the value that comes next
};

json read(std::string_view text, Projection projection) {
  Builder builder;
  const bool complete = json::sax_parse(projected(text, projection), &builder);
  return builder.take(complete);
}

}  // namespace

json read_json(std::string_view text, Projection projection) { return read(text, projection); }

json read_json_frame(std::string_view text, Projection projection) {
  const std::array<ReadField, 2> frame{
      {{.name = "type"}, {.name = "object", .inside = projection}}};
  return read(text, projection.empty() ? projection : Projection(frame));
}

}  // namespace lpp::k8s
