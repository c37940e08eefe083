// SPDX-License-Identifier: Apache-2.0
#include "k8s/fenced_transport.h"

#include <algorithm>

namespace lpp::k8s {

namespace {

using std::chrono::milliseconds;

bool is_write(const Request& request) {
  return request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
}

/// What is left of the lease; zero when it is over.
milliseconds remaining(TimePoint valid_until, TimePoint now) {
  // Compared before subtracting: the past may be as far away as TimePoint::min().
  if (valid_until <= now) return milliseconds::zero();
  return std::chrono::floor<milliseconds>(valid_until - now);
}

Error not_leader(const Request& request) {
  return Error{.code = ErrorCode::kUnavailable,
               .message = request.method + " refused: this process does not hold the lease",
               .reason = std::string(kNotLeader)};
}

}  // namespace

Result<Response> FencedTransport::round_trip(const Request& request, const std::stop_token& stop) {
  if (!is_write(request)) return inner_.round_trip(request, stop);
  const milliseconds left = remaining(valid_until_(), clock_.now());
  if (left <= milliseconds::zero()) return not_leader(request);
  if (request.timeout <= left) return inner_.round_trip(request, stop);
  Request shortened = request;
  shortened.timeout = left;
  return inner_.round_trip(shortened, stop);
}

Result<Response> FencedTransport::receive(const Request& request, const ChunkSink& sink,
                                          const std::stop_token& stop) {
  if (!is_write(request)) return inner_.receive(request, sink, stop);
  return Transport::receive(request, sink, stop);  // through round_trip
}

Result<Response> FencedTransport::stream(const Request& request, const ChunkSink& sink,
                                         const std::stop_token& stop) {
  // Streams are long-lived reads; a write as a stream could outlive the lease.
  if (is_write(request)) return not_leader(request);
  return inner_.stream(request, sink, stop);
}

}  // namespace lpp::k8s
