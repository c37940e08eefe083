// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "agent/agent_client.h"
#include "fakes/fake_transport.h"

namespace lpp::testing {

/// Passes everything on, so that a script outlives the connections to it.
class Line final : public k8s::Transport {
 public:
  explicit Line(FakeTransport& to) : to_(to) {}
  Result<k8s::Response> round_trip(const k8s::Request& request,
                                   const std::stop_token& stop) override {
    return to_.round_trip(request, stop);
  }
  Result<k8s::Response> stream(const k8s::Request& request, const k8s::ChunkSink& sink,
                               const std::stop_token& stop) override {
    return to_.stream(request, sink, stop);
  }

 private:
  FakeTransport& to_;
};

/// A controller whose answers a test scripts.
inline agent::Way way_to(const std::string& name, FakeTransport& transport) {
  return {.name = name, .connect = [&transport] {
            return Result<std::unique_ptr<k8s::Transport>>(std::make_unique<Line>(transport));
          }};
}

}  // namespace lpp::testing
