// SPDX-License-Identifier: Apache-2.0
#include "flags/flag.h"

#include <algorithm>

namespace lpp::flags {

namespace {

constexpr std::size_t kHelpWidth = 96;
constexpr std::size_t kTextIndent = 6;

}  // namespace

const Flag* find_flag(std::span<const FlagGroup> groups, std::string_view name) {
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      if (name == flag.name) return &flag;
      if (flag.short_name != 0 && name == std::string_view(&flag.short_name, 1)) return &flag;
    }
  }
  return nullptr;
}

std::string_view shown_default(const Flag& flag) {
  if (!flag.fallback_note.empty()) return flag.fallback_note;
  const bool obvious = flag.is_boolean() && flag.fallback == "false";
  return obvious ? std::string_view() : flag.fallback;
}

void append_wrapped(std::string& out, std::string_view text, std::size_t indent) {
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column == 0 || column + 1 + word.size() > kHelpWidth) {
      if (column != 0) out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += '\n';
}

void append_group(std::string& out, const FlagGroup& group) {
  out.append("\n").append(group.title).append(":\n");
  for (const Flag& flag : group.flags) {
    out += "  ";
    if (flag.short_name != 0) out.append("-").append(1, flag.short_name).append(", ");
    out.append("--").append(flag.name);
    if (!flag.is_boolean()) {
      out.append(" ").append(flag.choices.empty() ? flag.placeholder : flag.choices);
    }
    out += '\n';

    std::string text(flag.help);
    if (const auto shown = shown_default(flag); !shown.empty()) {
      text.append(" (default: ").append(shown).append(")");
    }
    if (!flag.env.empty()) text.append(" [$").append(flag.env).append("]");
    append_wrapped(out, text, kTextIndent);
  }
}

}  // namespace lpp::flags
