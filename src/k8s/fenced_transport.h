// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>

#include "base/clock.h"
#include "k8s/transport.h"

namespace lpp::k8s {

/// Error::reason of a write that was refused.
inline constexpr std::string_view kNotLeader = "NotLeader";

/// A Transport that refuses writes outside the lease (kUnavailable, reason kNotLeader; nothing was
/// sent) and shortens their deadlines so that each is over before the lease could pass to another.
/// Reads pass. Thread-safe.
class FencedTransport final : public Transport {
 public:
  FencedTransport(Transport& inner, Clock& clock, std::function<TimePoint()> valid_until)
      : inner_(inner), clock_(clock), valid_until_(std::move(valid_until)) {}
  Result<Response> round_trip(const Request& request, const std::stop_token& stop) override;
  Result<Response> receive(const Request& request, const ChunkSink& sink,
                           const std::stop_token& stop) override;
  Result<Response> stream(const Request& request, const ChunkSink& sink,
                          const std::stop_token& stop) override;

 private:
  Transport& inner_;
  Clock& clock_;
  const std::function<TimePoint()> valid_until_;
};

}  // namespace lpp::k8s
