// SPDX-License-Identifier: Apache-2.0
#include "config/json_text.h"

#include <set>

#include "base/json_extent.h"
#include "base/strings.h"
#include "k8s/json_writer.h"
#include "text/place.h"

namespace lpp::config {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = 4UL * 1024 * 1024;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxMessage = 300;
constexpr std::size_t kMaxWarnings = 10;

std::string place(std::string_view source, std::size_t offset) {
  const text::Place found = text::place_at(source, offset);
  return "line " + std::to_string(found.line) + ", column " + std::to_string(found.column);
}

/// What the parser quotes of the text may hold broken UTF-8: Events and logs must not.
std::string readable(std::string_view text) {
  return k8s::write_json(json(std::string(truncate_utf8(text, kMaxMessage))));
}

/// "syntax error while parsing value - unexpected ...", without the library's own position.
std::string reason(const json::exception& e) {
  std::string_view what = e.what();
  const auto column = what.find("column ");
  if (column != std::string_view::npos) {
    const auto colon = what.find(": ", column);
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
  } else if (const auto end = what.find("] "); end != std::string_view::npos) {
    what.remove_prefix(end + 2);
  }
  const std::string quoted = readable(what);
  // Quoting was only for the broken bytes; a message reads better without the quotes.
  const json plain = json::parse(quoted, nullptr, false);
  return plain.is_string() ? plain.get<std::string>() : quoted;
}

/// Notes keys that an object holds twice. (The library's parser has a callback for that, but with
/// one it looks through all elements of a list at the end of each: a long list takes minutes.)
class DuplicateFinder final : public nlohmann::json_sax<json> {
 public:
  explicit DuplicateFinder(std::vector<std::string>& warnings) : warnings_(warnings) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t /*size*/) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second && warnings_.size() < kMaxWarnings) {
      warnings_.push_back("key " + shown(json(name)) +
                          " is given twice in one object; the last counts");
    }
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*why*/) override {
    return false;  // told by the parser that makes the value
  }

 private:
  std::vector<std::string>& warnings_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Result<JsonText> parse_json_text(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return invalid("is " + std::to_string(text.size()) + " bytes long; at most " +
                   std::to_string(kMaxBytes) + " are read");
  }
  if (trim(text).empty()) return invalid("is empty");
  const JsonExtent extent = first_json_value(text, kMaxDepth);
  if (extent.too_deep_at) {
    return invalid(place(text, *extent.too_deep_at) + ": nested more than " +
                   std::to_string(kMaxDepth) + " levels deep");
  }
  JsonText result;
  try {
    const std::string_view value = text.substr(0, extent.end);
    result.value = json::parse(value);
    DuplicateFinder duplicates(result.warnings);
    (void)json::sax_parse(value, &duplicates);
  } catch (const json::parse_error& e) {
    return invalid(place(text, e.byte == 0 ? 0 : e.byte - 1) + ": " + reason(e));
  } catch (const std::exception& e) {
    return invalid(e.what());
  }
  const std::string_view rest = trim(text.substr(extent.end));
  if (!rest.empty()) {
    const auto offset = static_cast<std::size_t>(rest.data() - text.data());
    result.warnings.push_back(place(text, offset) +
                              ": text after the end of the configuration is ignored");
  }
  return result;
}

std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  const std::string text = k8s::write_json(value);
  return text.size() <= 100 ? text : std::string(truncate_utf8(text, 100)) + "...";
}

}  // namespace lpp::config
