// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "harness/test_ca.h"

/// A small HTTP/1.1 server over TLS for the embedded cluster: one thread per connection, so that
/// watches never starve other requests, and full control over the connection, so that tests can
/// cut it at any byte. For loopback and tests only.
namespace lpp::devcluster {

struct HttpRequest {
  std::string method{};
  std::string path{};  ///< as sent, percent-encoded, without the query
  std::vector<std::pair<std::string, std::string>> query{};  ///< decoded
  std::map<std::string, std::string> headers{};              ///< names in lower case
  std::string body{};
  bool body_too_large = false;

  std::string header(const std::string& lower_case_name) const;
  /// The first value of a query parameter; "" when it is not there.
  std::string param(std::string_view name) const;
  bool has_param(std::string_view name) const;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The answer to one request. Used by the handler's thread only.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  /// A whole answer. False when the connection is gone.
  virtual bool send(int code, const HttpHeaders& headers, std::string_view body) = 0;
  /// Starts an answer in chunks; every write_chunk() is sent at once.
  virtual bool begin_chunks(int code, const HttpHeaders& headers) = 0;
  virtual bool write_chunk(std::string_view data) = 0;
  virtual bool end_chunks() = 0;
  /// Resets the connection; whatever was not sent is lost.
  virtual void cut() = 0;
  /// True when the peer closed the connection or the server is stopping.
  virtual bool gone() const = 0;
  virtual bool stopping() const = 0;
};

class HttpServer {
 public:
  using Handler = std::function<void(const HttpRequest&, HttpExchange&)>;

  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;  ///< 0: any free one
    std::size_t body_limit = std::size_t{3} * 1024 * 1024;
    std::chrono::seconds idle_timeout{90};
  };

  /// The handler is called from many threads at once.
  HttpServer(Options options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds, listens and serves. Ignores SIGPIPE for the whole process from then on.
  Result<void> start(const testing::TestCertificate& certificate);
  int port() const;
  /// From now on gone() is true everywhere: no new requests are served. Then comes stop().
  void refuse_more();
  /// Ends all connections and joins all threads. Handlers that wait must look at gone().
  void stop();
  /// Cuts every connection there is, as a network failure would; new ones are served.
  void cut_all();
  std::size_t connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lpp::devcluster
