// SPDX-License-Identifier: Apache-2.0
#include "app/metrics.h"

#include <prometheus/text_serializer.h>

#include "app/metric_family.h"

namespace lpp::app {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(std::function<std::vector<MetricFamily>()> collect)
      : collect_(std::move(collect)) {}
  std::vector<MetricFamily> Collect() const override { return collect_(); }

 private:
  const std::function<std::vector<MetricFamily>()> collect_;
};

}  // namespace

std::unique_ptr<prometheus::Collectable> make_collector(
    std::function<std::vector<MetricFamily>()> collect) {
  return std::make_unique<Collector>(std::move(collect));
}

MetricFamilyBuilder::MetricFamilyBuilder(MetricType type, std::string name, std::string help) {
  family_.name = std::move(name);
  family_.help = std::move(help);
  family_.type = type;
}

MetricFamilyBuilder MetricFamilyBuilder::counter(std::string name, std::string help) {
  return {MetricType::Counter, std::move(name), std::move(help)};
}

MetricFamilyBuilder MetricFamilyBuilder::gauge(std::string name, std::string help) {
  return {MetricType::Gauge, std::move(name), std::move(help)};
}

MetricFamilyBuilder MetricFamilyBuilder::histogram(std::string name, std::string help) {
  return {MetricType::Histogram, std::move(name), std::move(help)};
}

MetricFamilyBuilder& MetricFamilyBuilder::add(Labels labels, double value) {
  ClientMetric& metric = family_.metric.emplace_back();
  metric.label = std::move(labels);
  if (family_.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return *this;
}

MetricFamilyBuilder& MetricFamilyBuilder::add(Labels labels, const HistogramSnapshot& snapshot) {
  ClientMetric& metric = family_.metric.emplace_back();
  metric.label = std::move(labels);
  auto& histogram = metric.histogram;
  histogram.bucket.reserve(snapshot.bounds.size());
  for (std::size_t i = 0; i < snapshot.counts.size(); ++i) {
    histogram.sample_count += snapshot.counts[i];
    // The serializer adds the last one, +Inf, itself.
    if (i < snapshot.bounds.size()) {
      histogram.bucket.push_back({histogram.sample_count, snapshot.bounds[i]});
    }
  }
  histogram.sample_sum = snapshot.sum_seconds;
  return *this;
}

Metrics::Metrics(const Subjects& subjects) {
  collectors_.push_back(work_metrics(subjects));
  collectors_.push_back(volume_metrics(subjects));
  collectors_.push_back(usage_metrics(subjects));
  collectors_.push_back(client_metrics(subjects));
  collectors_.push_back(daemon_metrics(subjects));
  collectors_.push_back(agent_metrics(subjects));
  collectors_.push_back(process_metrics());
}

std::string Metrics::render() const { return render_text(collectors_); }

std::string render_text(const Collectors& collectors) {
  std::string text;
  for (const auto& collector : collectors) {
    auto families = collector->Collect();
    // A metric without series would be two lines of comment about nothing.
    std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
    text += prometheus::TextSerializer().Serialize(families);
  }
  return text;
}

}  // namespace lpp::app
