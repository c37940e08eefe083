// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "harness/http_wire.h"
#include "harness/tls.h"

namespace lpp::testing {

/// An HTTPS server for tests of the proxy: the handler gets each request and writes the whole
/// answer itself. Connections are kept until the client or the server goes.
class FakeUpstream {
 public:
  using Handler =
      std::function<void(const HttpHead& head, const std::string& body, TlsStream& stream)>;

  explicit FakeUpstream(Handler handler) : handler_(std::move(handler)) {
    auto made = make_test_pki();
    pki_ = std::move(made).value();
    context_ = std::move(server_context(pki_)).value();
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_, generic, size) == 0);
    ::listen(listener_, 64);
    ::getsockname(listener_, generic, &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { accept_loop(); });
  }
  ~FakeUpstream() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (auto& connection : connections_) connection.stream->shut_down_socket();
    connections_.clear();
    ::close(listener_);
  }

  int port() const { return port_; }
  const std::string& ca_pem() const { return pki_.ca_pem; }
  int connections() const { return accepted_; }

  static std::string plain(int status, const std::string& body) {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  struct Connection {
    std::unique_ptr<TlsStream> stream;
    std::jthread thread;
  };

  void accept_loop() {
    while (!stopping_) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++accepted_;
      auto& connection = connections_.emplace_back();
      connection.stream = std::make_unique<TlsStream>(fd, *context_);
      connection.thread = std::jthread([this, &stream = *connection.stream] { serve(stream); });
    }
  }
  void serve(TlsStream& stream) {
    if (!stream.accept().ok()) return;
    HttpReader reader(stream);
    while (true) {
      auto head = reader.read_head();
      if (!head.ok() || !head->has_value()) return;
      reader.begin_body(**head, false);
      auto body = reader.read_body();
      if (!body.ok()) return;
      handler_(**head, *body, stream);
    }
  }

  const Handler handler_;
  TestPki pki_;
  SslContext context_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> accepted_ = 0;
  std::list<Connection> connections_;  // used by the accepting thread until it has ended
  std::jthread thread_;
};

}  // namespace lpp::testing
