// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "base/sync.h"
#include "devcluster/apiserver/http_server.h"

namespace lpp::devcluster {

/// One accepted connection: handshake, requests one after the other, answers. run() by its own
/// thread; shut_down() and cut_soon() by any.
class HttpConnection final : public HttpExchange {
 public:
  HttpConnection(int fd, SSL_CTX* context, const HttpServer::Options& options,
                 const HttpServer::Handler& handler, const std::atomic<bool>& stopping);
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void run();
  /// Wakes the thread out of any read or write.
  void shut_down();
  /// The same, and the peer sees a reset.
  void cut_soon();
  bool done() const { return done_; }

  bool send(int code, const HttpHeaders& headers, std::string_view body) override;
  bool begin_chunks(int code, const HttpHeaders& headers) override;
  bool write_chunk(std::string_view data) override;
  bool end_chunks() override;
  void cut() override;
  bool gone() const override;
  bool stopping() const override { return stopping_; }

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  void serve();
  bool serve_one();
  bool wait_readable();
  bool fill();
  bool read_body(HttpRequest& request);
  bool read_exactly(std::size_t size, std::string& out);
  bool read_chunks(HttpRequest& request);
  bool read_line(std::string& line);
  bool write_all(std::string_view data);
  void set_linger_reset();

  Mutex mutex_;
  bool closed_ LPP_GUARDED_BY(mutex_) = false;  ///< the number may belong to another socket now
  const int fd_;
  const HttpServer::Options& options_;
  const HttpServer::Handler& handler_;
  const std::atomic<bool>& stopping_;
  std::atomic<bool> done_ = false;
  std::atomic<bool> broken_ = false;
  // Used by run()'s thread only.
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string buffer_;
  bool answered_ = false;
  bool head_only_ = false;
  bool chunked_ = false;
};

}  // namespace lpp::devcluster
