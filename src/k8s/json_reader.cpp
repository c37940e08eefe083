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
/// Far more than any Kubernetes object has; values are built and destroyed recursively.
constexpr std::size_t kMaxDepth = 1000;

/// Builds values from the parser's events; nothing is built of a field that is skipped.
class Builder final : public nlohmann::json_sax<json> {
 public:
  /// With `on_item` the elements of the outermost object's "items" are delivered and not kept.
  Builder(const std::function<void(const json&)>* on_item, Detail detail)
      : on_item_(on_item), detail_(detail) {}

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
    if (skipping_ == 0) key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  /// The objects in which fields are skipped.
  enum class Part { kOther, kMetadata, kSpec };
  struct Open {
    json* value;
    Part part;
  };

  /// Only in an object's metadata: elsewhere the name may be a user's own, of a label perhaps.
  bool skips_this() const {
    if (open_.empty()) return false;
    switch (open_.back().part) {
      case Part::kMetadata:
        return key_ == kManagedFields;
      case Part::kSpec:
        return detail_ == Detail::kNoContainers &&
               std::find(kContainerFields.begin(), kContainerFields.end(), key_) !=
                   kContainerFields.end();
      case Part::kOther:
        break;
    }
    return false;
  }

  /// True when the value that begins or has ended is an element of the delivered list.
  bool is_item() const { return on_item_ != nullptr && open_.size() == 2 && in_items_; }

  template <typename Value>
  bool scalar(Value&& value) {
    if (skipping_ > 0 || skips_this()) return true;
    if (is_item()) {
      (*on_item_)(json(std::forward<Value>(value)));
      return true;
    }
    place(json(std::forward<Value>(value)));
    return true;
  }

  bool open(json::value_t type) {
    if (skipping_ > 0 || skips_this()) {
      ++skipping_;
      return skipping_ < kMaxDepth;
    }
    if (is_item()) {
      item_ = json(type);
      open_.push_back({&item_, Part::kOther});
      return true;
    }
    const bool in_object = !open_.empty() && open_.back().value->is_object();
    if (open_.size() == 1 && in_object && type == json::value_t::array) {
      in_items_ = key_ == "items";
    }
    Part part = Part::kOther;
    if (in_object && type == json::value_t::object) {
      part = key_ == "metadata" ? Part::kMetadata : key_ == "spec" ? Part::kSpec : Part::kOther;
    }
    open_.push_back({place(json(type)), part});
    return open_.size() < kMaxDepth;
  }

  bool close() {
    if (skipping_ > 0) {
      --skipping_;
      return true;
    }
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
    json& parent = *open_.back().value;
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    return &(parent[key_] = std::move(value));
  }

  const std::function<void(const json&)>* const on_item_;
  const Detail detail_;
  json root_;
  json item_;                 // the element of the delivered list that is being read
  std::vector<Open> open_;    // the containers around the parser's place; a parent never moves
  std::string key_;           // of the value that comes next
  std::size_t skipping_ = 0;  // containers open within a skipped field
  bool in_items_ = false;
};

json read(std::string_view text, const std::function<void(const json&)>* on_item, Detail detail) {
  Builder builder(on_item, detail);
  const bool complete = json::sax_parse(text.begin(), text.end(), &builder);
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
