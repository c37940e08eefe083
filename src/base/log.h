// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace lpp::log {

/// Levels: error = the operator must act; warn = something failed and is retried;
/// info = a volume or the process changed state; debug = each step. kOff: nothing is written.
enum class Level { kDebug, kInfo, kWarn, kError, kOff };

/// Text: "<time> <level> <message> name=value ...". JSON: one object a line with time, level, msg
/// and the fields. Either way one line is one message: control characters are escaped.
enum class Format { kText, kJson };

/// Sets the process-wide logger (stderr, UTC time). Call once at start.
void set_up(Level level, Format format = Format::kText);

/// What is written from now on. Thread-safe.
void set_level(Level level);
Level level();

/// Fields that belong to every line this thread writes while the object lives, such as the volume a
/// step is about. Empty values are left out; an inner scope's field hides an outer one of its name.
/// Scopes end in the reverse order of their begin, on their thread. The texts must outlive the
/// scope; nothing is copied, so that it costs next to nothing when no line is written.
class Scope {
 public:
  using Field = std::pair<std::string_view, std::string_view>;
  static constexpr std::size_t kMaxFields = 6;

  Scope(std::initializer_list<Field> fields);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  friend std::string line_of(std::string_view message);
  std::array<Field, kMaxFields> fields_{};
  std::size_t count_ = 0;
  const Scope* const outer_;
};

inline constexpr double kLineBurst = 5000;
inline constexpr double kLinesPerSecond = 50;

/// True when a line of this level is written at all.
bool enabled(Level level);
/// Writes one line. Thread-safe; an exception while formatting never reaches the caller. Lines
/// other than debug ones that a thread writes while it works for a namespace (on_behalf_of.h) have
/// that namespace's pace: kLineBurst at once, then kLinesPerSecond. What is left out is counted,
/// and told with the next line.
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

/// Where the lines go instead of to stderr, without time and level; nullptr = stderr again. For
/// tests; while no other thread logs.
using Divert = std::function<void(Level level, const std::string& line)>;
void divert(Divert divert);

/// `text` as a log value: quoted with escapes when it holds spaces, quotes or control characters.
std::string quoted(std::string_view text);

}  // namespace lpp::log
