// SPDX-License-Identifier: Apache-2.0
#include "harness/sanitizer_report.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace lpp::testing {

std::string sanitizer_report(std::string_view log) {
  // "ERROR: AddressSanitizer: heap-use-after-free", "WARNING: ThreadSanitizer: data race",
  // "ERROR: LeakSanitizer: detected", and of the undefined-behaviour one "x.cpp:1:2: runtime
  // error:".
  constexpr std::array<std::string_view, 2> kMarks = {"Sanitizer: ", ": runtime error: "};
  // A process that is told to end at once leaves its threads; the last line only counts reports.
  constexpr std::array<std::string_view, 2> kHarmless = {"Sanitizer: thread leak",
                                                         "Sanitizer: reported "};
  constexpr std::size_t kMostLines = 80;  // both stacks of a data race
  const auto lines = split(log, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto has = [line = std::string_view(lines[i])](std::string_view text) {
      return line.find(text) != std::string_view::npos;
    };
    if (std::any_of(kMarks.begin(), kMarks.end(), has) &&
        std::none_of(kHarmless.begin(), kHarmless.end(), has)) {
      std::string report;
      for (std::size_t end = std::min(lines.size(), i + kMostLines); i < end; ++i) {
        report.append(lines[i]).append("\n");
      }
      return report;
    }
  }
  return "";
}

}  // namespace lpp::testing
