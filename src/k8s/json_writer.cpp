// SPDX-License-Identifier: Apache-2.0
#include "k8s/json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace lpp::k8s {

namespace {

using nlohmann::json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Needs no escape and is ASCII. What is not is negative. An object and no function, to be inlined.
constexpr auto kIsPlain = [](char c) { return c >= ' ' && c != '"' && c != '\\'; };

void append_text(const std::string& text, std::string& out) {
  const std::size_t begin = out.size();
  out += '"';
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end; ++at) {
    const char* const special = std::find_if_not(at, end, kIsPlain);
    out.append(at, special);
    at = special;
    if (at == end) break;
    if (*at != '"' && *at != '\\') {  // rare enough for the library
      out.resize(begin);
      out += dump(text);
      return;
    }
    out += '\\';
    out += *at;
  }
  out += '"';
}

void append(const json& value, std::string& out) {
  switch (value.type()) {
    case json::value_t::object: {
      char before = '{';
      for (const auto& [name, field] : value.get_ref<const json::object_t&>()) {
        out += before;
        append_text(name, out);
        out += ':';
        append(field, out);
        before = ',';
      }
      out += before == '{' ? "{}" : "}";
      break;
    }
    case json::value_t::array: {
      char before = '[';
      for (const json& item : value) {
        out += before;
        append(item, out);
        before = ',';
      }
      out += before == '[' ? "[]" : "]";
      break;
    }
    case json::value_t::string: append_text(value.get_ref<const std::string&>(), out); break;
    default: out += dump(value);
  }
}

}  // namespace

std::string write_json(const json& value) {
  std::string text;
  append(value, text);
  return text;
}

}  // namespace lpp::k8s
