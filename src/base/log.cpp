#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <memory>

namespace lpp::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void set_up(Level level) {
  auto logger =
      std::make_shared<spdlog::logger>("lpp", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(to_spdlog(level));
  spdlog::set_default_logger(std::move(logger));
}

bool enabled(Level level) { return spdlog::should_log(to_spdlog(level)); }

void write(Level level, fmt::string_view format, fmt::format_args args) {
  try {
    spdlog::log(to_spdlog(level), "{}", fmt::vformat(format, args));
  } catch (const std::exception& e) {
    spdlog::error("a log line could not be formatted: {}", e.what());
  }
}

std::string quoted(std::string_view text) {
  bool plain = !text.empty();
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7f) {
      plain = false;
    }
  }
  if (plain) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\':
        result += '\\';
        result += c;
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\t':
        result += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
          result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          result += c;
        }
    }
  }
  return result + '"';
}

}  // namespace lpp::log
