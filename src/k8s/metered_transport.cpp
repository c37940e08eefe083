// SPDX-License-Identifier: Apache-2.0
#include "k8s/metered_transport.h"

namespace lpp::k8s {

Result<Response> MeteredTransport::round_trip(const Request& request, const std::stop_token& stop) {
  const TimePoint sent = clock_.now();
  auto result = inner_.round_trip(request, stop);
  stats_.latency.at({request.method}).observe(clock_.now() - sent);
  count(request, result);
  return result;
}

Result<Response> MeteredTransport::receive(const Request& request, const ChunkSink& sink,
                                           const std::stop_token& stop) {
  const TimePoint sent = clock_.now();
  auto result = inner_.receive(request, sink, stop);
  stats_.latency.at({request.method}).observe(clock_.now() - sent);
  count(request, result);
  return result;
}

Result<Response> MeteredTransport::stream(const Request& request, const ChunkSink& sink,
                                          const std::stop_token& stop) {
  auto result = inner_.stream(request, sink, stop);
  count(request, result);
  return result;
}

void MeteredTransport::count(const Request& request, const Result<Response>& result) {
  if (!result.ok() && result.error().is(ErrorCode::kCancelled)) return;  // our own doing
  stats_.requests.at({result.ok() ? std::to_string(result->status) : "<error>", request.method})
      .fetch_add(1, std::memory_order_relaxed);
}

}  // namespace lpp::k8s
