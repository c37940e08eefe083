// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace lpp::app {

/// A page of headings, paragraphs and tables, built from texts that are escaped here and nowhere
/// else: whatever a text holds, it is shown, never obeyed. A plain value.
class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  enum class Mood { kPlain, kGood, kBad };

  HtmlPage& heading(std::string_view text);
  HtmlPage& paragraph(std::string_view text, Mood mood = Mood::kPlain);
  /// Lines of "name: value".
  HtmlPage& facts(const std::vector<std::pair<std::string, std::string>>& facts);
  /// `nothing` is shown instead of a table without rows. Rows have as many cells as there are
  /// columns.
  HtmlPage& table(const std::vector<std::string>& columns,
                  const std::vector<std::vector<std::string>>& rows, std::string_view nothing);
  /// Links within this server.
  HtmlPage& links(const std::vector<std::string>& paths);

  std::string text() const;

 private:
  std::string body_{};
  std::string title_{};
};

std::string html_escaped(std::string_view text);

/// "850 ms", "12 s", "3 min 20 s", "5 h 12 min", "3 d 4 h".
std::string human(Duration duration);

}  // namespace lpp::app
