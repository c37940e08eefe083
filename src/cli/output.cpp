// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "k8s/json_writer.h"
#include "text/yaml_scalar.h"

namespace lpp::cli {

namespace {

using nlohmann::json;

std::string quoted(const json& text) { return k8s::write_json(text); }

/// Some readers take for a date or a number what others take for text: "2026-05-28", "08", "1e999".
bool is_doubtful(std::string_view text) {
  return text.front() >= '0' && text.front() <= '9' &&
         text.find_first_not_of("0123456789_.eE-") == std::string_view::npos &&
         std::count(text.begin(), text.end(), '.') < 2;
}

/// A scalar; text is quoted, as in JSON, wherever a reader could take it for something else:
/// yaml-cpp's own emitter writes the texts "true", "yes" and "12" plain, and indents the lists of
/// maps, which kubectl does not.
std::string scalar(const json& value) {
  if (!value.is_string()) return quoted(value);
  const auto& text = value.get_ref<const std::string&>();
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos &&
                     text.front() != '-' && text.front() != '.';
  if (!plain) return quoted(value);
  const auto typed = text::plain_scalar(text);
  return typed && typed->is_string() && !is_doubtful(text) ? text : quoted(value);
}

void append(std::string& out, const json& value, std::size_t indent);

/// What follows "key:" or "-".
void append_value(std::string& out, const json& value, std::size_t indent, bool in_list) {
  if (value.is_structured() && !value.empty()) {
    if (in_list && value.is_object()) {  // the first member stands beside the dash
      std::string block;
      append(block, value, indent);
      out += " " + block.substr(indent);
      return;
    }
    out += '\n';
    append(out, value, indent);
    return;
  }
  out +=
      value.is_structured() ? (value.is_array() ? " []\n" : " {}\n") : " " + scalar(value) + "\n";
}

void append(std::string& out, const json& value, std::size_t indent) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      out.append(indent, ' ').append(scalar(json(key))).append(":");
      append_value(out, member, member.is_array() ? indent : indent + 2, false);
    }
  } else {
    for (const json& item : value) {
      out.append(indent, ' ').append("-");
      append_value(out, item, indent + 2, true);
    }
  }
}

}  // namespace

std::string to_json_text(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_yaml_text(const json& value) {
  if (!value.is_structured() || value.empty()) return quoted(value) + "\n";
  std::string out;
  append(out, value, 0);
  return out;
}

std::string machine_text(const json& value, std::string_view format) {
  return format == "yaml" ? to_yaml_text(value) : to_json_text(value);
}

}  // namespace lpp::cli
