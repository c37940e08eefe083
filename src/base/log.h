#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace lpp::log {

/// Levels: error = the operator must act; warn = something failed and is retried;
/// info = a volume or the process changed state; debug = each step. kOff: nothing is written.
enum class Level { kDebug, kInfo, kWarn, kError, kOff };

/// Sets the process-wide logger (stderr, one line per message, UTC time). Call once at start.
void set_up(Level level);

/// True when a line of this level is written at all.
bool enabled(Level level);
/// Writes one line. Thread-safe; an exception while formatting never reaches the caller.
void write(Level level, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void debug(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, format, fmt::make_format_args(args...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, format, fmt::make_format_args(args...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kWarn)) write(Level::kWarn, format, fmt::make_format_args(args...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, const Args&... args) {
  if (enabled(Level::kError)) write(Level::kError, format, fmt::make_format_args(args...));
}

/// `text` as a log value: quoted with escapes when it holds spaces, quotes or control characters.
std::string quoted(std::string_view text);

}  // namespace lpp::log
