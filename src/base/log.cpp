#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace lpp::log {

void set_up(Level level) {
  auto logger =
      std::make_shared<spdlog::logger>("lpp", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  switch (level) {
    case Level::kDebug:
      logger->set_level(spdlog::level::debug);
      break;
    case Level::kInfo:
      logger->set_level(spdlog::level::info);
      break;
    case Level::kWarn:
      logger->set_level(spdlog::level::warn);
      break;
    case Level::kError:
      logger->set_level(spdlog::level::err);
      break;
  }
  spdlog::set_default_logger(std::move(logger));
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
