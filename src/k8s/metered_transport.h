// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/by_labels.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "k8s/transport.h"

namespace lpp::k8s {

/// What has been asked of the API server: client-go's rest_client_* numbers. Thread-safe.
struct RequestStats {
  static constexpr std::array<double, 12> kBounds{0.005, 0.025, 0.1, 0.25, 0.5,  1.0,
                                                  2.0,   4.0,   8.0, 15.0, 30.0, 60.0};
  /// By status code ("<error>" when no answer came) and method.
  ByLabels<Counter, 2> requests{100};
  /// By method; watches are not in it, as they have no end.
  ByLabels<Histogram, 1> latency{10, kBounds};
};

/// Counts and times what passes. Thread-safe; owns nothing.
class MeteredTransport final : public Transport {
 public:
  MeteredTransport(Transport& inner, Clock& clock) : inner_(inner), clock_(clock) {}

  Result<Response> round_trip(const Request& request, const std::stop_token& stop) override;
  Result<Response> receive(const Request& request, const ChunkSink& sink,
                           const std::stop_token& stop) override;
  Result<Response> stream(const Request& request, const ChunkSink& sink,
                          const std::stop_token& stop) override;

  const RequestStats& stats() const { return stats_; }

 private:
  void count(const Request& request, const Result<Response>& result);

  Transport& inner_;
  Clock& clock_;
  RequestStats stats_;
};

}  // namespace lpp::k8s
