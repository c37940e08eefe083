#include "k8s/json_reader.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace lpp::k8s {

namespace {

using nlohmann::json;

constexpr std::string_view kManagedFields = "managedFields";
constexpr std::array<std::string_view, 4> kContainerFields{"containers", "initContainers",
                                                           "tolerations", "volumes"};

bool unread(std::string_view field, Detail detail) {
  return field == kManagedFields || (detail == Detail::kNoContainers &&
                                     std::find(kContainerFields.begin(), kContainerFields.end(),
                                               field) != kContainerFields.end());
}

/// The place after the array that begins at `begin`, or npos when it does not end.
std::size_t end_of_array(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    switch (text[at]) {
      case '[':
        ++depth;
        break;
      case ']':
        if (--depth == 0) return at + 1;
        break;
      case '"':
        for (++at; at < text.size() && text[at] != '"'; ++at) {
          if (text[at] == '\\') ++at;
        }
        break;
      default:
        break;
    }
  }
  return std::string_view::npos;
}

/// The text without the arrays that nobody reads. They are found by their names and brackets,
/// faster than a parser gets through them. Within a text of JSON a quote has a backslash, so
/// that a field's name and bracket there are never taken for a field's.
std::string without_unread(std::string_view text, Detail detail) {
  std::string kept;
  kept.reserve(text.size());
  std::size_t from = 0;
  std::size_t at = text.find('[');
  while (at != std::string_view::npos) {
    std::size_t next = at + 1;
    if (text.substr(0, at).ends_with("\":")) {
      const std::size_t name_end = at - 2;
      const std::size_t quote =
          name_end == 0 ? std::string_view::npos : text.rfind('"', name_end - 1);
      const bool whole = quote != std::string_view::npos && quote >= from &&
                         !text.substr(0, quote).ends_with('\\');
      if (whole && unread(text.substr(quote + 1, name_end - quote - 1), detail)) {
        const std::size_t end = end_of_array(text, at);
        if (end == std::string_view::npos) break;
        kept.append(text, from, quote - from);
        from = next = end;
        if (text.substr(end).starts_with(',')) {
          from = next = end + 1;
        } else if (kept.ends_with(',')) {
          kept.pop_back();
        }
      }
    }
    at = text.find('[', next);
  }
  kept.append(text, from);
  return kept;
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
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return open(json::value_t::object); }
  bool start_array(std::size_t /*size*/) override { return open(json::value_t::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  /// True when the value that begins or has ended is an element of the delivered list.
  bool is_item() const { return on_item_ != nullptr && open_.size() == 2 && in_items_; }

  template <typename Value>
  bool scalar(Value&& value) {
    if (is_item()) {
      (*on_item_)(json(std::forward<Value>(value)));
      return true;
    }
    place(json(std::forward<Value>(value)));
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

json read(std::string_view text, const std::function<void(const json&)>* on_item, Detail detail) {
  Builder builder(on_item);
  const bool complete = json::sax_parse(without_unread(text, detail), &builder);
  return builder.take(complete);
}

}  // namespace

std::string nested_text(const json& object, const char* outer, const char* inner) {
  const auto middle = object.find(outer);
  if (middle == object.end() || !middle->is_object()) return {};
  const auto it = middle->find(inner);
  return it != middle->end() && it->is_string() ? it->get<std::string>() : std::string();
}

json read_json(std::string_view text, Detail detail) { return read(text, nullptr, detail); }

json read_list(std::string_view text, const std::function<void(const json&)>& on_item,
               Detail detail) {
  return read(text, &on_item, detail);
}

}  // namespace lpp::k8s
