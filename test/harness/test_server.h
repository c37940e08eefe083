// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/sync.h"
#include "harness/acceptor.h"
#include "harness/http_server.h"

namespace lpp::testing {

/// A server that does what the test's handler does, and remembers what it was asked.
class TestServer {
 public:
  /// Port 0: it could not listen.
  TestServer(HttpServer::Options options, HttpServer::Handler handler);

  int port() const { return http_.port(); }
  std::vector<HttpRequest> requests() const;
  HttpRequest last_request() const;
  int connections() const { return http_.accepted(); }
  void set_certificate(const TestCertificate& certificate);
  void close_connections() { http_.close_all(); }

 private:
  mutable Mutex mutex_;
  std::vector<HttpRequest> requests_ LPP_GUARDED_BY(mutex_);
  HttpServer http_;  // last: its threads use the others
};

/// A proxy on loopback that understands CONNECT and tunnels.
class TestProxy {
 public:
  /// `answer` is its status line's code and text.
  explicit TestProxy(std::string answer = "200 Connection established");
  int port() const { return acceptor_.port(); }
  /// The heads of the requests seen.
  std::vector<std::string> heads() const;

 private:
  class Tunnel;

  const std::string answer_;
  mutable Mutex mutex_;
  std::vector<std::string> heads_ LPP_GUARDED_BY(mutex_);
  Acceptor acceptor_;  // last: its threads use the others
};

}  // namespace lpp::testing
