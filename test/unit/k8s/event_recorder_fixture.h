// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "k8s/event_recorder.h"

/// A recorder of Events, with a server whose answers the test scripts.
namespace lpp::testing {

using namespace lpp::k8s;  // for tests only
using namespace std::chrono_literals;
using nlohmann::json;

inline ObjectReference claim_reference(const std::string& name = "data",
                                       const std::string& ns = "team") {
  return {.kind = "PersistentVolumeClaim",
          .api_version = "v1",
          .ns = ns,
          .name = name,
          .uid = "uid-" + name,
          .resource_version = "7"};
}

struct EventFixture {
  EventFixture() { clock.advance(20h); }
  void start_with_working_server() {
    transport.on("POST", "/events").always([](const Request& request) {
      return Response{.status = 201, .body = request.body};
    });
    transport.on("PATCH", "/events").always([](const Request&) {
      return Response{.status = 200, .body = "{}"};
    });
    recorder.start();
  }
  void send(const std::string& message, const ObjectReference& about = claim_reference(),
            EventType type = EventType::kWarning,
            const std::string& reason = "ProvisioningFailed") {
    recorder.event(about, type, reason, message);
  }
  /// One event, and the request that it became.
  json sent(const std::string& message) {
    const auto before = transport.requests().size();
    send(message);
    REQUIRE(transport.wait_for_requests(before + 1));
    return json::parse(transport.requests()[before].body);
  }
  Request request(std::size_t n) const {
    const auto requests = transport.requests();
    REQUIRE(n < requests.size());
    return requests[n];
  }

  FakeClock clock;
  FakeTransport transport;
  ApiClient client{transport, clock, {}};
  EventRecorder recorder{client, clock, "rancher.io/local-path_host_uid"};
};

}  // namespace lpp::testing
