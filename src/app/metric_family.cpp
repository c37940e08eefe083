// SPDX-License-Identifier: Apache-2.0
#include "app/metric_family.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace lpp::app {

namespace {

/// In a label's value.
void append_escaped(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.16g}", value);
}

}  // namespace

MetricFamily::MetricFamily(std::string_view name, std::string_view help, std::string_view type)
    : name_(name), text_(fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type)) {}

MetricFamily MetricFamily::counter(std::string_view name, std::string_view help) {
  return {name, help, "counter"};
}

MetricFamily MetricFamily::gauge(std::string_view name, std::string_view help) {
  return {name, help, "gauge"};
}

MetricFamily MetricFamily::histogram(std::string_view name, std::string_view help) {
  return {name, help, "histogram"};
}

MetricFamily& MetricFamily::add(const Labels& labels, double value) {
  add_line("", labels, "", value);
  return *this;
}

MetricFamily& MetricFamily::add(const Labels& labels, const HistogramSnapshot& snapshot) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < snapshot.counts.size(); ++i) {
    count += snapshot.counts[i];
    const bool last = i >= snapshot.bounds.size();
    add_line("_bucket", labels, last ? "+Inf" : number(snapshot.bounds[i]),
             static_cast<double>(count));
  }
  add_line("_sum", labels, "", snapshot.sum_seconds);
  add_line("_count", labels, "", static_cast<double>(count));
  return *this;
}

/// `bound`: of a bucket; "" = it is none.
void MetricFamily::add_line(std::string_view suffix, const Labels& labels, std::string_view bound,
                            double value) {
  has_series_ = true;
  text_ += name_;
  text_ += suffix;
  char before = '{';
  const auto add_label = [&](std::string_view name, std::string_view of) {
    text_ += before;
    text_ += name;
    text_ += "=\"";
    append_escaped(text_, of);
    text_ += '"';
    before = ',';
  };
  for (const auto& [name, of] : labels) add_label(name, of);
  if (!bound.empty()) add_label("le", bound);
  if (before == ',') text_ += '}';
  text_ += ' ';
  text_ += number(value);
  text_ += '\n';
}

}  // namespace lpp::app
