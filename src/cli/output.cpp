// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/yaml_scalar.h"

namespace lpp::cli {

namespace {

using nlohmann::json;

/// Some readers take for a date or a number what others take for text: "2026-05-28", "08", "1e999".
bool is_doubtful(std::string_view text) {
  return text.front() >= '0' && text.front() <= '9' &&
         text.find_first_not_of("0123456789_.eE-") == std::string_view::npos &&
         std::count(text.begin(), text.end(), '.') < 2;
}

bool is_plain(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  if (text.empty() || text.find_first_not_of(kPlain) != std::string::npos || text.front() == '-' ||
      text.front() == '.') {
    return false;
  }
  const auto typed = text::plain_scalar(text);
  return typed && typed->is_string() && !is_doubtful(text);
}

/// Text is quoted wherever a reader could take it for something else: the emitter by itself writes
/// the texts "true", "yes" and "12" plain.
void write(YAML::Emitter& out, const json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key;
      write(out, json(key));
      out << YAML::Value;
      write(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const json& item : value) write(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (!is_plain(text)) out << YAML::DoubleQuoted;
    // Else it is written as it is, and Go's reader refuses it.
    if (text.find('\x7f') != std::string::npos) out << YAML::EscapeNonAscii;
    out << text;
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // a number or a boolean
  }
}

}  // namespace

std::string to_json_text(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_yaml_text(const json& value) {
  YAML::Emitter out;
  write(out, value);
  return std::string(out.c_str(), out.size()) + "\n";
}

std::string machine_text(const json& value, std::string_view format) {
  return format == "yaml" ? to_yaml_text(value) : to_json_text(value);
}

}  // namespace lpp::cli
