// SPDX-License-Identifier: Apache-2.0
#include "base/parse_time.h"

#include <algorithm>
#include <ctime>

#include "base/whole_number.h"

namespace lpp {

namespace {

/// The digits there; -1 unless all of them are.
int number_at(std::string_view text, std::size_t at, std::size_t width) {
  if (at + width > text.size()) return -1;
  return static_cast<int>(whole_number<unsigned>(text.substr(at, width)).value_or(-1U));
}

/// "Z" or "+01:30".
std::optional<std::chrono::minutes> offset_of(std::string_view text) {
  if (text == "Z" || text == "z") return std::chrono::minutes(0);
  const int hours = number_at(text, 1, 2);
  const int minutes = number_at(text, 4, 2);
  const bool is_whole = text.size() == 6 && text[3] == ':' && (text[0] == '+' || text[0] == '-');
  if (!is_whole || hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  return std::chrono::minutes((hours * 60 + minutes) * (text[0] == '-' ? -1 : 1));
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> parse_rfc3339(std::string_view text) {
  std::tm parts{};
  parts.tm_year = number_at(text, 0, 4) - 1900;
  parts.tm_mon = number_at(text, 5, 2) - 1;
  parts.tm_mday = number_at(text, 8, 2);
  parts.tm_hour = number_at(text, 11, 2);
  parts.tm_min = number_at(text, 14, 2);
  parts.tm_sec = number_at(text, 17, 2);
  constexpr std::size_t kWhole = 19;
  const bool is_separated = text.size() > kWhole && text[4] == '-' && text[7] == '-' &&
                            (text[10] == 'T' || text[10] == ' ') && text[13] == ':' &&
                            text[16] == ':';
  if (!is_separated || parts.tm_year < -1900 || parts.tm_mon < 0 || parts.tm_mon > 11 ||
      parts.tm_mday < 1 || parts.tm_mday > 31 || parts.tm_hour < 0 || parts.tm_hour > 23 ||
      parts.tm_min < 0 || parts.tm_min > 59 || parts.tm_sec < 0 || parts.tm_sec > 60) {
    return std::nullopt;
  }
  text.remove_prefix(kWhole);
  std::chrono::nanoseconds fraction{0};
  if (text[0] == '.') {
    text.remove_prefix(1);
    for (std::int64_t scale = 100'000'000; !text.empty() && text[0] >= '0' && text[0] <= '9';
         scale /= 10) {
      fraction += std::chrono::nanoseconds(scale * (text[0] - '0'));
      text.remove_prefix(1);
    }
  }
  const auto offset = offset_of(text);
  if (!offset) return std::nullopt;
  constexpr std::time_t kLatest = 7'258'118'400;  // the year 2200
  const std::time_t seconds = ::timegm(&parts) - std::chrono::seconds(*offset).count();
  const auto time =
      std::chrono::system_clock::from_time_t(std::clamp<std::time_t>(seconds, 0, kLatest));
  return seconds < 0 || seconds >= kLatest
             ? time
             : time + std::chrono::duration_cast<std::chrono::system_clock::duration>(fraction);
}

}  // namespace lpp
