#pragma once

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <string>
#include <string_view>

namespace lpp::log {

/// Levels: error = the operator must act; warn = something failed and is retried;
/// info = a volume or the process changed state; debug = each step.
enum class Level { kDebug, kInfo, kWarn, kError };

/// Sets the process-wide logger (stderr, one line per message, UTC time). Call once at start.
void set_up(Level level);

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

/// `text` as a log value: quoted with escapes when it holds spaces, quotes or control characters.
std::string quoted(std::string_view text);

}  // namespace lpp::log
