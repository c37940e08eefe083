// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/json_util.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/json_extent.h"

namespace lpp::devcluster {
namespace {

constexpr std::size_t kMaxDepth = 200;

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

const Json& child(const Json& object, std::string_view key) {
  static const Json null_value;
  if (!object.is_object()) return null_value;
  const auto it = object.find(key);
  return it == object.end() ? null_value : *it;
}

const Json& at_path(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json* value = &object;
  for (const auto key : keys) value = &child(*value, key);
  return *value;
}

std::string text_at(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json& value = at_path(object, keys);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<std::int64_t> number_at(const Json& object,
                                      std::initializer_list<std::string_view> keys) {
  const Json& value = at_path(object, keys);
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

bool true_at(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json& value = at_path(object, keys);
  return value.is_boolean() && value.get<bool>();
}

bool is_blank(const Json& value) {
  if (value.is_null()) return true;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return (value.is_object() || value.is_array()) && value.empty();
}

Json& object_in(Json& parent, const char* key) {
  if (!parent.is_object()) parent = Json::object();
  Json& value = parent[key];
  if (!value.is_object()) value = Json::object();
  return value;
}

void set_default(Json& object, const char* key, Json value) {
  Json& slot = object[key];
  if (slot.is_null()) slot = std::move(value);
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Json> parse_json(std::string_view text) {
  if (first_json_value(text, kMaxDepth).too_deep_at) return std::nullopt;
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::string namespace_of(const Json& object) { return text_at(object, {"metadata", "namespace"}); }
std::string name_of(const Json& object) { return text_at(object, {"metadata", "name"}); }

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::array<std::uint32_t, 3> b{};
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < n; ++k) b[k] = static_cast<unsigned char>(bytes[i + k]);
    const std::uint32_t word = b[0] << 16 | b[1] << 8 | b[2];
    out += kBase64[word >> 18 & 63];
    out += kBase64[word >> 12 & 63];
    out += n > 1 ? kBase64[word >> 6 & 63] : '=';
    out += n > 2 ? kBase64[word & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string out;
  std::uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=' || c == '\n' || c == '\r') continue;
    const auto value = kBase64.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    word = (word << 6 | static_cast<std::uint32_t>(value)) & 0xffffffU;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(word >> bits & 0xffU);
    }
  }
  return out;
}

}  // namespace lpp::devcluster
