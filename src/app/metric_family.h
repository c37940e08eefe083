// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/by_labels.h"
#include "base/histogram.h"

namespace lpp::app {

/// Builds one metric with its series. A plain value while it is built.
class MetricFamilyBuilder {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  static MetricFamilyBuilder counter(std::string name, std::string help);
  static MetricFamilyBuilder gauge(std::string name, std::string help);
  static MetricFamilyBuilder histogram(std::string name, std::string help);

  MetricFamilyBuilder& add(Labels labels, double value);
  MetricFamilyBuilder& add(Labels labels, const HistogramSnapshot& snapshot);

  /// One series for each entry of a ByLabels; `names` are its labels'.
  template <typename Value, std::size_t N>
  MetricFamilyBuilder& add_all(const std::array<const char*, N>& names,
                               const ByLabels<Value, N>& values, const Labels& constant = {}) {
    for (const auto* entry : values.entries()) {
      Labels labels;
      for (std::size_t i = 0; i < N; ++i) labels.push_back({names[i], entry->first[i]});
      labels.insert(labels.end(), constant.begin(), constant.end());
      if constexpr (std::is_same_v<Value, Histogram>) {
        add(std::move(labels), entry->second.snapshot());
      } else {
        add(std::move(labels), static_cast<double>(entry->second.load()));
      }
    }
    return *this;
  }

  prometheus::MetricFamily build() { return std::move(family_); }

 private:
  MetricFamilyBuilder(prometheus::MetricType type, std::string name, std::string help);
  prometheus::MetricFamily family_{};
};

/// A Collectable that is a function.
std::unique_ptr<prometheus::Collectable> make_collector(
    std::function<std::vector<prometheus::MetricFamily>()> collect);

using Collectors = std::vector<std::unique_ptr<prometheus::Collectable>>;
/// All that they collect, in Prometheus' text format.
std::string render_text(const Collectors& collectors);

}  // namespace lpp::app
