// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace lpp::k8s {

/// One HTTP request to the API server. `target` is path and query, already encoded, without the
/// server's base path (the transport adds it).
struct Request {
  std::string method;
  std::string target;
  std::string body{};
  std::string content_type{};  // set when there is a body
  std::string accept = "application/json";
  /// For round_trip: the whole call, credentials and names included. For stream: until connected;
  /// then `idle_timeout` is the longest silence (before the answer's head, the longer of the two).
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds idle_timeout{0};  // 0 = none; stream only
};

struct Response {
  int status = 0;
  std::string body{};  // empty for a stream that was accepted (2xx)
  std::string content_type{};
  std::optional<std::chrono::seconds> retry_after{};
  bool sent_on_reused_connection = false;
};

/// Error::reason when no connection came about (refused, unreachable, TLS).
inline constexpr std::string_view kConnectFailed = "ConnectFailed";

/// Receives a chunk of a 2xx response body; false ends the stream (reported as success).
using ChunkSink = std::function<bool(std::string_view)>;

/// The HTTP seam of the client runtime: everything above it can be tested without sockets.
/// Thread-safe; any number of calls at once. An Error means that no complete answer came:
/// kTimeout, kUnavailable (refused, reset, TLS failure) or kCancelled (stop was requested);
/// HTTP error statuses are Responses. The stop token ends a call within milliseconds. A
/// kUnavailable with the reason kConnectFailed says that no connection came about: nothing was
/// sent.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Result<Response> round_trip(const Request& request, const std::stop_token& stop) = 0;

  /// round_trip, but the body of a 2xx answer goes to the sink while it arrives, and the Response
  /// has none. Also an Error may come after some of it; when the sink returned false, the Response.
  /// A transport that has the whole of an answer anyway need not do more than this.
  virtual Result<Response> receive(const Request& request, const ChunkSink& sink,
                                   const std::stop_token& stop) {
    auto result = round_trip(request, stop);
    if (result.ok() && result->status / 100 == 2) sink(std::exchange(result->body, {}));
    return result;
  }

  /// Long-lived GET. A status other than 2xx is returned with its body, without calling the sink.
  /// Returns the Response when the server ended the stream properly or the sink returned false.
  virtual Result<Response> stream(const Request& request, const ChunkSink& sink,
                                  const std::stop_token& stop) = 0;
};

}  // namespace lpp::k8s
