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
      case '{':
        ++depth;
        break;
      case ']':
      case '}':
        if (--depth == 0) return at + 1;
        break;
      case '"':
        at = end_of_text(text, at);
        if (at == std::string_view::npos) return at;
        --at;
        break;
      default:
        break;
    }
  }
  return std::string_view::npos;
}

std::size_t end_of_value(std::string_view text, std::size_t begin) {
  switch (begin < text.size() ? text[begin] : '\0') {
    case '[':
    case '{':
      return end_of_container(text, begin);
    case '"':
      return end_of_text(text, begin);
    default:
      return std::min(text.find_first_of(",]} \t\r\n", begin), text.size());
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
  explicit Copier(std::string_view text) : text_(text) { kept_.reserve(text.size() / 2); }

  /// Nothing when the text is no JSON: a parser finds out why.
  std::optional<std::string> copy(Projection projection) {
    blank();
    if (!value(projection)) return std::nullopt;
    kept_.append(text_, at_);  // nothing, or an error for the parser
    return std::move(kept_);
  }

 private:
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
        if (!std::exchange(first, false)) kept_ += ',';
        kept_.append("\"").append(name).append("\":");
        if (!value(escaped ? Projection{} : field->inside)) return false;
      }
      if (!comma()) break;
      if (next() != '"') return false;
    }
    return close('}');
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
  /// With `on_item` the elements of the outermost object's "items" are delivered and not kept.
  explicit Builder(const std::function<void(const json&)>* on_item) : on_item_(on_item) {}

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
  /// True when the value that begins or has ended is an element of the delivered list.
  bool is_item() const { return on_item_ != nullptr && open_.size() == 2 && in_items_; }

  bool scalar(json value) {
    if (is_item()) {
      (*on_item_)(value);
    } else {
      place(std::move(value));
    }
    return true;
  }

  bool open(json::value_t type) {
    if (is_item()) {
      item_ = json(type);
      open_.push_back(&item_);
      return true;
    }
    if (open_.size() == 1 && open_.back()->is_object() && type == json::value_t::array) {
      in_items_ = key_ == "items";
    }
    open_.push_back(place(json(type)));
    return open_.size() < kMaxDepth;
  }

  bool close() {
    open_.pop_back();
    if (open_.size() == 1) in_items_ = false;
    if (is_item()) {
      (*on_item_)(item_);
      item_ = nullptr;
    }
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

  const std::function<void(const json&)>* const on_item_;
  json root_;
  json item_;                // the element of the delivered list that is being read
  std::vector<json*> open_;  // the containers around the parser's place; a parent never moves
  std::string key_;          // of the value that comes next
  bool in_items_ = false;
};

json read(std::string_view text, const std::function<void(const json&)>* on_item,
          Projection projection) {
  Builder builder(on_item);
  const bool complete = json::sax_parse(projected(text, projection), &builder);
  return builder.take(complete);
}

}  // namespace

json read_json(std::string_view text, Projection projection) {
  return read(text, nullptr, projection);
}

json read_json_frame(std::string_view text, Projection projection) {
  const std::array<ReadField, 2> frame{
      {{.name = "type"}, {.name = "object", .inside = projection}}};
  return read(text, nullptr, projection.empty() ? projection : Projection(frame));
}

json read_json_list(std::string_view text, const std::function<void(const json&)>& on_item,
                    Projection projection) {
  const std::array<ReadField, 2> list{
      {{.name = "metadata"}, {.name = "items", .inside = projection}}};
  return read(text, &on_item, projection.empty() ? projection : Projection(list));
}

}  // namespace lpp::k8s
