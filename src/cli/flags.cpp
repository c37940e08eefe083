#include "cli/flags.h"

#include <algorithm>

#include "base/log.h"
#include "cli/flag_values.h"

namespace lpp::cli {

namespace {

constexpr std::size_t kHelpWidth = 96;
constexpr std::size_t kTextIndent = 6;

/// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Error unknown_flag(std::string_view argument, std::string_view name,
                   std::span<const FlagGroup> groups) {
  std::vector<std::string_view> names;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) names.push_back(flag.name);
  }
  const std::string_view guess = nearest(name, names);
  return invalid(fmt::format("unknown flag {}{}", argument.substr(0, argument.find('=')),
                             guess.empty() ? "" : fmt::format("; did you mean --{}?", guess)));
}

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

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > 100) return {};  // the cost is quadratic, and nobody types that
  std::string_view best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, name.size() / 3);
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::optional<std::string_view> flag_name(std::string_view argument) {
  if (argument.size() < 2 || argument.front() != '-' || argument == "--") return std::nullopt;
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  return argument.substr(0, argument.find('='));
}

bool Given::asked_for(std::string_view name) const {
  const auto it = flags.find(name);
  return it != flags.end() && parse_go_bool(it->second.back()).value_or(true);
}

// Written out, because a parser that matches values by regular expression does not survive a
// --config of JSON text with line breaks, or a long one.
Result<Given> parse_flags(std::span<const std::string> arguments,
                          std::span<const FlagGroup> groups) {
  Given given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      const auto rest = arguments.subspan(i + 1);
      given.words.insert(given.words.end(), rest.begin(), rest.end());
      break;
    }
    const auto name = flag_name(argument);
    if (!name) {
      given.words.push_back(argument);
      continue;
    }
    const Flag* flag = find_flag(groups, *name);
    // "-ojson": a short name with its value behind it.
    if (flag == nullptr && !argument.starts_with("--")) {
      flag = find_flag(groups, name->substr(0, 1));
      if (flag != nullptr && !flag->is_boolean()) {
        given.flags[flag->name].push_back(argument.substr(2));
        continue;
      }
      flag = nullptr;
    }
    if (flag == nullptr) return unknown_flag(argument, *name, groups);

    std::string& value = given.flags[flag->name].emplace_back();
    if (const auto equals = argument.find('='); equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (flag->is_boolean()) {
      value = "true";
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return invalid(
          fmt::format("--{} needs a value: --{} {}", flag->name, flag->name, flag->placeholder));
    }
  }
  return given;
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

}  // namespace lpp::cli
