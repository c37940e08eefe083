// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/context.h"

/// Forms of output that commands share. Pure functions.
namespace lpp::cli {

using WallTime = std::chrono::system_clock::time_point;

/// "37s", "5m30s", "3h12m", "9d": as kubectl shows an age. Less than nothing is "0s".
std::string age_text(Duration age);

/// The age of an object; "<unknown>" when the time cannot be read.
std::string age_of(std::string_view rfc3339, WallTime now);

enum class Colour { kNone, kRed, kGreen, kYellow, kBold };

/// The text in that colour when the terminal shows colours.
std::string coloured(const Terminal& terminal, Colour colour, std::string_view text);

/// Without line breaks and control characters, which would spoil a table or a terminal.
std::string one_line(std::string_view text);

/// The same; "-" of nothing.
std::string or_dash(std::string_view text);

/// "12%"; "-" of nothing.
std::string share_text(std::uint64_t part, std::uint64_t whole);

/// "1 node", "2 nodes"; names that end in "s" get "es".
std::string counted(std::size_t number, std::string_view what);

/// "data" of "persistentvolumeclaim/data", as -o name prints it, also with the kind in the plural;
/// nullopt for anything else.
std::optional<std::string> name_of_kind(std::string_view word, std::string_view kind);

/// Columns of a terminal that the text takes: UTF-8 characters.
std::size_t columns_of(std::string_view text);

struct Cell {
  std::string text{};
  Colour colour = Colour::kNone;
};

/// How a table is made to fit the terminal's width.
struct Fit {
  bool whole = false;                      // it is not: nothing is shortened
  std::size_t middle = std::string::npos;  // column that loses its middle first
};

/// Lines of cells under headings, as kubectl prints them: three blanks between columns; the last
/// column is shortened to the terminal's width.
std::string table(const Terminal& terminal, const std::vector<std::string>& headings,
                  std::vector<std::vector<Cell>> rows, const Fit& fit = {});

/// "Name:   value" lines, values below one another, broken at the terminal's width.
std::string details(const Terminal& terminal,
                    const std::vector<std::pair<std::string, Cell>>& lines);

}  // namespace lpp::cli
