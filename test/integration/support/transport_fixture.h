// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "harness/temp_dir.h"
#include "harness/test_server.h"
#include "k8s/httplib_transport.h"

namespace lpp::testing {

/// What most transport tests need: an authority, a server certificate for loopback, a clock.
struct TransportFixture {
  SystemClock clock;
  TestCa ca;
  TestCertificate certificate = ca.server({"DNS:localhost", "IP:127.0.0.1"});

  HttpServer::Options options() const { return {.certificate = certificate}; }

  k8s::RestConfig config(const TestServer& server) const {
    k8s::RestConfig config;
    config.host = "127.0.0.1";
    config.port = server.port();
    config.ca.data = ca.pem();
    config.source = "test";
    return config;
  }

  std::unique_ptr<k8s::Transport> transport(const k8s::RestConfig& config) {
    auto made = k8s::make_httplib_transport(config, clock);
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
    return std::move(made).value();
  }
  std::unique_ptr<k8s::Transport> transport(const TestServer& server) {
    return transport(config(server));
  }
};

inline k8s::Request get(const std::string& target = "/api",
                        std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
  k8s::Request request{.method = "GET", .target = target};
  request.timeout = timeout;
  return request;
}

inline k8s::Request post(const std::string& body, const std::string& target = "/api") {
  return {.method = "POST", .target = target, .body = body, .content_type = "application/json"};
}

inline bool answer_ok(Exchange& exchange) { return exchange.respond(200, "{}"); }

/// Milliseconds that `work` takes.
template <typename Work>
long long milliseconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               begin)
      .count();
}

}  // namespace lpp::testing
