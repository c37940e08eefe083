// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/sync.h"
#include "harness/test_ca.h"

namespace lpp::testing {

/// What a client asked.
struct SeenRequest {
  std::string method;
  std::string target;
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;
  int connection = 0;       // 1, 2, ... in the order of their arrival
  std::string client_name;  // common name of the client certificate, "" = none
  std::string sni;

  std::string header(const std::string& name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? std::string() : it->second;
  }
};

/// One request in the hands of the handler: writes whatever the test wants, well-formed or not.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const SeenRequest& request() const = 0;
  /// Bytes as they are; false when the peer is gone.
  virtual bool send(std::string_view bytes) = 0;
  /// A complete answer with Content-Length.
  bool respond(int status, const std::string& body, const std::string& more_headers = "");
  /// The head of a chunked answer, one chunk, the end.
  bool begin_chunks(int status = 200);
  bool chunk(const std::string& bytes);
  bool end_chunks();
  /// Waits until the peer closes the connection or the server ends.
  virtual void wait_for_close() = 0;
  /// Waits; false when the server ends meanwhile.
  virtual bool pause(std::chrono::milliseconds time) = 0;
};

struct TestServerOptions {
  bool tls = true;
  TestCertificate certificate{};
  std::string client_ca{};  // PEM; set = a client certificate is demanded
  bool ipv6 = false;
  bool handshake = true;   // false = accepts and stays silent
  std::string greeting{};  // sent at once instead of everything else
};

/// A real server on loopback, one thread per connection, that does what the test's handler does.
class TestServer {
 public:
  /// Handles a request; false closes the connection at once (without the TLS farewell).
  using Handler = std::function<bool(Exchange&)>;

  TestServer(TestServerOptions options, Handler handler);
  ~TestServer();

  int port() const { return port_; }  // 0 = could not listen
  std::vector<SeenRequest> requests() const;
  SeenRequest last_request() const;
  int connections() const { return connections_; }
  /// For new connections.
  void set_certificate(const TestCertificate& certificate);
  /// Closes all open connections properly, what a server does to idle ones, and returns when the
  /// other sides know it.
  void close_connections();

 private:
  class Peer;
  void accept_loop();
  void serve(Peer& peer);

  TestServerOptions options_;
  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  SSL_CTX* context_ LPP_GUARDED_BY(mutex_) = nullptr;
  std::vector<SeenRequest> requests_ LPP_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Peer>> peers_ LPP_GUARDED_BY(mutex_);
  std::thread thread_;
};

/// A proxy on loopback that understands CONNECT and tunnels.
class TestProxy {
 public:
  /// `answer` is its status line's code and text.
  explicit TestProxy(std::string answer = "200 Connection established");
  ~TestProxy();
  int port() const { return port_; }
  /// The heads of the requests seen.
  std::vector<std::string> heads() const;

 private:
  void serve(int client);

  const std::string answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  std::vector<std::string> heads_ LPP_GUARDED_BY(mutex_);
  std::vector<std::thread> tunnels_ LPP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lpp::testing
