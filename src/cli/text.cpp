// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/parse_time.h"

namespace lpp::cli {

namespace {

constexpr std::size_t kGap = 3;

std::string_view code(Colour colour) {
  switch (colour) {
    case Colour::kNone: return "";
    case Colour::kRed: return "\x1b[31m";
    case Colour::kGreen: return "\x1b[32m";
    case Colour::kYellow: return "\x1b[33m";
    case Colour::kBold: return "\x1b[1m";
  }
  return "";
}

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// The first characters of a text that fit into so many columns, with "…" for the rest.
std::string shortened(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return text;
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if (!continues_a_character(text[end]) && ++columns == width) break;
  }
  return text.substr(0, end) + "…";
}

/// The first and last characters of a text, with "…" between them, in so many columns.
std::string without_middle(const std::string& text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  if (columns <= width) return text;
  const std::string start = shortened(text, width / 2);
  std::size_t at = text.size();
  for (std::size_t kept = 0; kept < width - width / 2; ++kept) {
    do --at;
    while (continues_a_character(text[at]));
  }
  return start + text.substr(at);
}

/// Words, broken so that no line is longer than `width` (0 = no limit) unless a word is.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const bool fits = width == 0 || columns_of(lines.back()) + 1 + columns_of(word) <= width;
    if (lines.back().empty() || fits) {
      if (!lines.back().empty()) lines.back() += ' ';
      lines.back() += word;
    } else {
      lines.emplace_back(word);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string age_text(Duration age) {
  const auto s =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(age).count());
  const auto m = s / 60;
  const auto h = m / 60;
  const auto d = h / 24;
  const auto pair = [](std::int64_t a, char a_unit, std::int64_t b, char b_unit) {
    return b == 0 ? fmt::format("{}{}", a, a_unit) : fmt::format("{}{}{}{}", a, a_unit, b, b_unit);
  };
  if (s < 120) return fmt::format("{}s", s);
  if (m < 10) return pair(m, 'm', s % 60, 's');
  if (h < 3) return fmt::format("{}m", m);
  if (h < 8) return pair(h, 'h', m % 60, 'm');
  if (h < 48) return fmt::format("{}h", h);
  if (d < 8) return pair(d, 'd', h % 24, 'h');
  if (d < std::int64_t{2} * 365) return fmt::format("{}d", d);
  return pair(d / 365, 'y', d % 365, 'd');
}

std::string age_of(std::string_view rfc3339, WallTime now) {
  const auto time = parse_rfc3339(rfc3339);
  return time ? age_text(std::chrono::duration_cast<Duration>(now - *time)) : "<unknown>";
}

std::string coloured(const Terminal& terminal, Colour colour, std::string_view text) {
  if (!terminal.colours || colour == Colour::kNone) return std::string(text);
  return std::string(code(colour)).append(text).append("\x1b[0m");
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 0x7f;
    if (!control) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string or_dash(std::string_view text) { return text.empty() ? "-" : one_line(text); }

std::string share_text(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.0f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string counted(std::size_t number, std::string_view what) {
  const std::string_view ending = number == 1 ? "" : what.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", number, what, ending);
}

std::optional<std::string> name_of_kind(std::string_view word, std::string_view kind) {
  if (!word.starts_with(kind)) return std::nullopt;
  word.remove_prefix(kind.size());
  if (word.starts_with('s')) word.remove_prefix(1);
  if (word.size() < 2 || word.front() != '/') return std::nullopt;
  return std::string(word.substr(1));
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_a_character(c); }));
}

std::string table(const Terminal& terminal, const std::vector<std::string>& headings,
                  std::vector<std::vector<Cell>> rows, const Fit& fit) {
  constexpr std::size_t kLeast = 20;  // less of a column would say nothing
  const bool bounded = terminal.width > 0 && !fit.whole;
  const auto columns = static_cast<std::size_t>(terminal.width);
  std::vector<std::size_t> widths;
  std::size_t used = 0;
  const auto measure = [&] {
    widths.clear();
    used = 0;
    for (std::size_t i = 0; i + 1 < headings.size(); ++i) {
      std::size_t width = columns_of(headings[i]);
      for (const auto& row : rows) width = std::max(width, columns_of(row[i].text));
      widths.push_back(width + kGap);
      used += widths.back();
    }
  };
  measure();
  if (bounded && fit.middle < widths.size() && used + 2 * kLeast > columns) {
    const std::size_t others = used - widths[fit.middle];
    const std::size_t left =
        columns > others + 2 * kLeast + kGap ? columns - others - 2 * kLeast - kGap : 0;
    for (auto& row : rows) {
      row[fit.middle].text = without_middle(row[fit.middle].text, std::max(kLeast, left));
    }
    measure();
  }
  const std::size_t room =
      !bounded ? std::string::npos : (columns > used + kLeast ? columns - used : kLeast);
  std::string out;
  const auto line = [&](std::size_t count, const auto& cell) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      const Cell next = cell(i);
      const std::string shown = i + 1 == count ? shortened(next.text, room) : next.text;
      text += coloured(terminal, next.colour, shown);
      if (i + 1 < count) text.append(widths[i] - columns_of(shown), ' ');
    }
    while (text.ends_with(' ')) text.pop_back();
    out += text + '\n';
  };
  line(headings.size(), [&](std::size_t i) { return Cell{headings[i], Colour::kBold}; });
  for (const auto& row : rows) {
    line(headings.size(), [&](std::size_t i) { return row[i]; });
  }
  return out;
}

std::string details(const Terminal& terminal,
                    const std::vector<std::pair<std::string, Cell>>& lines) {
  std::size_t indent = 0;
  for (const auto& [name, value] : lines) indent = std::max(indent, name.size() + 1 + kGap);
  const auto columns = static_cast<std::size_t>(terminal.width);
  const std::size_t room = columns > indent + 30 ? columns - indent : 0;
  std::string out;
  for (const auto& [name, value] : lines) {
    std::string start = name.empty() ? "" : name + ":";
    for (const std::string& text : wrapped(value.text, room)) {
      start.append(indent - start.size(), ' ');
      out += start + coloured(terminal, value.colour, text) + '\n';
      start.clear();
    }
  }
  return out;
}

}  // namespace lpp::cli
