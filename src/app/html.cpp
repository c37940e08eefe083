// SPDX-License-Identifier: Apache-2.0
#include "app/html.h"

#include "base/log.h"

namespace lpp::app {

namespace {

/// Readable on a phone: there each row of a table becomes a block with the columns' names in front.
constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:75rem;padding:.5rem 1rem 3rem;overflow-wrap:break-word}
h1{font-size:1.35rem;margin:.6rem 0}
h2{font-size:1.05rem;margin:1.6rem 0 .4rem;border-bottom:1px solid #8886}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .9rem;margin:0}
dt{color:#777}dd{margin:0}
p{margin:.3rem 0}
.good{color:#187a34}.bad{color:#c02020;font-weight:600}.none{color:#777}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th{text-align:left;color:#777;font-weight:600;white-space:nowrap}
th,td{padding:.25rem .8rem .25rem 0;vertical-align:top;border-bottom:1px solid #8883}
td{white-space:pre-wrap}dd{overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){.good{color:#5fce7f}.bad{color:#ff7b72}dt,th,.none{color:#999}}
@media (max-width:45rem){
body{overflow-wrap:anywhere}
table,tbody,tr,td{display:block}thead{display:none}
tr{border:1px solid #8884;border-radius:.4rem;margin:.5rem 0;padding:.3rem .6rem}
td{border:0;padding:.1rem 0}td:empty{display:none}
td::before{content:attr(data-name) ": ";color:#777}
dl{grid-template-columns:1fr}dd{margin-bottom:.3rem}
}
)";

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        // Other control characters are no part of HTML, and could hide something.
        out += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

std::string human(Duration duration) {
  using namespace std::chrono;
  const auto ms = duration_cast<milliseconds>(duration).count();
  if (ms < 1000) return fmt::format("{} ms", ms);
  const auto s = ms / 1000;
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
  return fmt::format("{} d {} h", s / 86400, s % 86400 / 3600);
}

HtmlPage::HtmlPage(std::string_view title) : title_(html_escaped(title)) {}

HtmlPage& HtmlPage::heading(std::string_view text) {
  body_ += "<h2>" + html_escaped(text) + "</h2>\n";
  return *this;
}

HtmlPage& HtmlPage::paragraph(std::string_view text, Mood mood) {
  body_ += mood == Mood::kGood  ? "<p class=\"good\">"
           : mood == Mood::kBad ? "<p class=\"bad\">"
                                : "<p>";
  body_ += html_escaped(text) + "</p>\n";
  return *this;
}

HtmlPage& HtmlPage::facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  body_ += "<dl>\n";
  for (const auto& [name, value] : facts) {
    body_ += "<dt>" + html_escaped(name) + "</dt><dd>" + html_escaped(value) + "</dd>\n";
  }
  body_ += "</dl>\n";
  return *this;
}

HtmlPage& HtmlPage::table(const std::vector<std::string>& columns,
                          const std::vector<std::vector<std::string>>& rows,
                          std::string_view nothing) {
  if (rows.empty()) {
    body_ += "<p class=\"none\">" + html_escaped(nothing) + "</p>\n";
    return *this;
  }
  body_ += "<table><thead><tr>";
  for (const std::string& column : columns) body_ += "<th>" + html_escaped(column) + "</th>";
  body_ += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    body_ += "<tr>";
    for (std::size_t i = 0; i < columns.size() && i < row.size(); ++i) {
      body_ +=
          "<td data-name=\"" + html_escaped(columns[i]) + "\">" + html_escaped(row[i]) + "</td>";
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table>\n";
  return *this;
}

HtmlPage& HtmlPage::links(const std::vector<std::string>& paths) {
  body_ += "<p>";
  for (const std::string& path : paths) {
    body_ += "<a href=\"" + html_escaped(path) + "\">" + html_escaped(path) + "</a> ";
  }
  body_ += "</p>\n";
  return *this;
}

std::string HtmlPage::text() const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         title_ + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<h1>" +
         title_ + "</h1>\n" + body_ + "</body>\n</html>\n";
}

}  // namespace lpp::app
