// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/by_labels.h"
#include "base/histogram.h"

namespace lpp::app {

/// One metric with its series, written in Prometheus' text format (version 0.0.4) as they are
/// added. Not thread-safe.
class MetricFamily {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  static MetricFamily counter(std::string_view name, std::string_view help);
  static MetricFamily gauge(std::string_view name, std::string_view help);
  static MetricFamily histogram(std::string_view name, std::string_view help);

  MetricFamily& add(const Labels& labels, double value);
  MetricFamily& add(const Labels& labels, const HistogramSnapshot& snapshot);

  /// One series for each entry of a ByLabels; `names` are its labels'.
  template <typename Value, std::size_t N>
  MetricFamily& add_all(const std::array<const char*, N>& names, const ByLabels<Value, N>& values,
                        const Labels& constant = {}) {
    for (const auto* entry : values.entries()) {
      Labels labels;
      for (std::size_t i = 0; i < N; ++i) labels.push_back({names[i], entry->first[i]});
      labels.insert(labels.end(), constant.begin(), constant.end());
      if constexpr (std::is_same_v<Value, Histogram>) {
        add(labels, entry->second.snapshot());
      } else {
        add(labels, static_cast<double>(entry->second.load()));
      }
    }
    return *this;
  }

  /// Its lines; "" without a series: two lines of comment about nothing help nobody.
  std::string text() const { return has_series_ ? text_ : std::string(); }

 private:
  MetricFamily(std::string_view name, std::string_view help, std::string_view type);
  void add_line(std::string_view suffix, const Labels& labels, std::string_view bound,
                double value);

  std::string name_{};
  std::string text_{};
  bool has_series_ = false;
};

}  // namespace lpp::app
