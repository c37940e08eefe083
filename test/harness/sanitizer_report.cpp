#include "harness/sanitizer_report.h"

#include <algorithm>
#include <array>

namespace lpp::testing {

std::string sanitizer_report(std::string_view log) {
  // "ERROR: AddressSanitizer: heap-use-after-free", "WARNING: ThreadSanitizer: data race",
  // "ERROR: LeakSanitizer: detected", and of the undefined-behaviour one "x.cpp:1:2: runtime
  // error:".
  constexpr std::array<std::string_view, 2> kMarks = {"Sanitizer: ", ": runtime error: "};
  std::size_t first = std::string_view::npos;
  for (const auto mark : kMarks) first = std::min(first, log.find(mark));
  if (first == std::string_view::npos) return "";
  const auto begin = log.rfind('\n', first) + 1;  // 0 when there is no line before
  return std::string(log.substr(begin, log.find('\n', first) - begin));
}

}  // namespace lpp::testing
