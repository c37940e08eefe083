// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/sync.h"
#include "harness/acceptor.h"
#include "harness/exchange.h"
#include "harness/test_ca.h"
#include "harness/tls.h"

namespace lpp::testing {

/// An HTTP/1.1 server for tests and for the embedded cluster: one thread for each connection, so
/// that watches never starve other requests, and full control over the connection, so that tests
/// can cut it at any byte. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;  ///< 0: any free one
    bool tls = true;
    TestCertificate certificate{};
    std::string client_ca{};  ///< PEM; set = a client certificate is demanded
    std::size_t body_limit = std::size_t{3} * 1024 * 1024;
    /// Set: it is sent at once, without TLS, and nothing else is ever said.
    std::optional<std::string> greeting{};
  };
  /// Handles a request, on many threads at once; false closes the connection at once, without the
  /// farewell of TLS.
  using Handler = std::function<bool(Exchange&)>;

  HttpServer(Options options, Handler handler);
  ~HttpServer() { stop(); }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Serves when it returns. The whole process ignores SIGPIPE from then on.
  Result<void> start();
  int port() const { return acceptor_ ? acceptor_->port() : 0; }  // 0 = not started
  /// From now on Exchange::gone() is true everywhere: no new requests are served. Then comes
  /// stop().
  void refuse_more() { stopping_ = true; }
  /// Ends all connections and joins all threads. Handlers that wait must look at gone().
  /// Repeatable.
  void stop();

  /// For new connections; one that cannot be used changes nothing.
  Result<void> set_certificate(const TestCertificate& certificate);
  /// Resets all connections, as a network failure would; new ones are served.
  void cut_all();
  /// Closes all connections in an orderly way, what a server does to idle ones, and returns when
  /// the other sides know it.
  void close_all();
  /// Those that are open, and all that ever came.
  std::size_t connections() const { return acceptor_ ? acceptor_->count() : 0; }
  int accepted() const { return accepted_; }

 private:
  class Connection;
  std::unique_ptr<Served> serve(UniqueFd socket);

  const Options options_;
  const Handler handler_;
  std::atomic<int> accepted_ = 0;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  SslContext context_ LPP_GUARDED_BY(mutex_);
  std::optional<Acceptor> acceptor_;  // last: its threads use the others
};

}  // namespace lpp::testing
