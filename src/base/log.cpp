// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <memory>
#include <vector>

#include "base/line_pace.h"
#include "base/on_behalf_of.h"

namespace lpp::log {

namespace {

std::atomic<Format> g_format{Format::kText};
thread_local const Scope* t_innermost = nullptr;
Divert g_divert;

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
    case Level::kOff: break;
  }
  return spdlog::level::off;
}

/// Length of the UTF-8 sequence at the begin of `text`; 0 when there is none. As RFC 3629 has it,
/// but for overlong forms and surrogates, which do no harm here.
std::size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

/// A string of a JSON text, quotes included; what is not UTF-8 is replaced.
void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t length = sequence_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else if (length == 0) {
      out += "\\ufffd";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

void append_plain(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
}

}  // namespace

Scope::Scope(std::initializer_list<Field> fields) : outer_(t_innermost) {
  assert(fields.size() <= kMaxFields);
  count_ = std::min(fields.size(), kMaxFields);
  std::copy_n(fields.begin(), count_, fields_.begin());
  t_innermost = this;
}

Scope::~Scope() { t_innermost = outer_; }

void set_up(Level level, Format format) {
  auto logger =
      std::make_shared<spdlog::logger>("lpp", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  const char* const pattern = format == Format::kJson
                                  ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                                  : "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
  logger->set_pattern(pattern, spdlog::pattern_time_type::utc);
  logger->set_level(level_of(level));
  g_format = format;
  spdlog::set_default_logger(std::move(logger));
}

void set_level(Level level) { spdlog::default_logger_raw()->set_level(level_of(level)); }

Level level() {
  for (const Level one : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError}) {
    if (enabled(one)) return one;
  }
  return Level::kOff;
}

bool enabled(Level level) { return spdlog::default_logger_raw()->should_log(level_of(level)); }

void divert(Divert divert) { g_divert = std::move(divert); }

/// The message and the fields of the thread's scopes.
std::string line_of(std::string_view message) {
  std::vector<Scope::Field> fields;  // the innermost first
  for (const Scope* scope = t_innermost; scope != nullptr; scope = scope->outer_) {
    for (std::size_t i = scope->count_; i-- > 0;) {
      const Scope::Field& field = scope->fields_[i];
      const auto same = [&](const Scope::Field& other) { return other.first == field.first; };
      if (!field.second.empty() && std::none_of(fields.begin(), fields.end(), same)) {
        fields.push_back(field);
      }
    }
  }
  std::string line;
  if (g_format == Format::kJson) {
    line += "\"msg\":";
    append_json(line, message);
  } else {
    append_plain(line, message);
  }
  for (auto it = fields.rbegin(); it != fields.rend(); ++it) {
    if (g_format == Format::kJson) {
      line += ',';
      append_json(line, it->first);
      line += ':';
      append_json(line, it->second);
    } else {
      line.append(" ").append(it->first).append("=").append(quoted(it->second));
    }
  }
  return line;
}

namespace {

void put(Level level, const std::string& line) {
  if (g_divert) {
    g_divert(level, line);
  } else {
    spdlog::default_logger_raw()->log(level_of(level), spdlog::string_view_t(line));
  }
}

/// Whether the line is to be written; and tells of those that were not.
bool may_write(Level level) {
  const std::string_view ns = OnBehalfOf::current();
  if (level == Level::kDebug || ns.empty()) return true;
  static LinePace pace(kLineBurst, kLinesPerSecond);
  const auto verdict = pace.ask(ns, SystemClock().now());
  if (verdict.pass && verdict.left_out > 0) {
    put(Level::kWarn, line_of(fmt::format("{} lines about namespace {} were left out, there are "
                                          "too many",
                                          verdict.left_out, ns)));
  }
  return verdict.pass;
}

}  // namespace

void write(Level level, fmt::string_view format, fmt::format_args args) {
  if (!may_write(level)) return;
  std::string line;
  try {
    line = line_of(fmt::vformat(format, args));
  } catch (const std::exception& e) {
    line = line_of(std::string("a log line could not be formatted: ") + e.what());
  }
  put(level, line);
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
      case '\n': result += "\\n"; break;
      case '\r': result += "\\r"; break;
      case '\t': result += "\\t"; break;
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
