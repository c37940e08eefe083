// SPDX-License-Identifier: Apache-2.0
#include "harness/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <csignal>
#include <utility>

#include "base/strings.h"
#include "harness/http_wire.h"

namespace lpp::testing {

namespace {

/// With a client that says nothing, or that does not read.
constexpr timeval kPatience{.tv_sec = 90, .tv_usec = 0};

}  // namespace

class HttpServer::Connection final : public Served, public Exchange {
 public:
  Connection(HttpServer& server, UniqueFd socket, SSL_CTX* context, int number)
      : server_(server), number_(number), stream_(std::move(socket), context) {
    ::setsockopt(stream_.fd(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    ::setsockopt(stream_.fd(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  }

  void run() override {
    serve();
    if (resetting_) {
      stream_.reset();
    } else {
      stream_.shut_down_socket();
    }
    over_ = true;
  }

  void end() override { stream_.shut_down_socket(); }

  void reset_soon() {
    resetting_ = true;
    stream_.shut_down_socket();
  }

  /// Waits until it is over, and the other side's kernel knows it.
  void close() {
    stream_.shut_down_socket(SHUT_RD);  // which its thread takes for the client's end
    tcp_info info{};
    do {
      ::poll(nullptr, 0, 1);
      socklen_t size = sizeof info;
      if (::getsockopt(stream_.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    } while (!over_ || info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_FIN_WAIT1);
  }

  const HttpRequest& request() const override { return request_; }
  bool send(std::string_view bytes) override { return stream_.write(bytes).ok(); }
  void cut() override { stream_.reset(); }
  bool gone() const override { return server_.stopping_ || stream_.peer_gone(); }
  void wait_for_close() const override {
    while (!gone()) stream_.peer_gone(std::chrono::hours(1));
  }
  bool pause(std::chrono::milliseconds time) const override {
    return !stream_.peer_gone(time) && !server_.stopping_;
  }

 private:
  void serve() {
    if (server_.options_.greeting) {
      send(*server_.options_.greeting);
      return wait_for_close();
    }
    if (!stream_.accept().ok()) {
      // Closed at once, with what the client has sent on unread, it would lose the alert.
      pause(std::chrono::seconds(10));
      return;
    }
    while (!server_.stopping_) {
      if (!read_request()) break;
      if (!server_.handler_(*this)) return;
      if (request_.body_too_large || to_lower(request_.header("connection")) == "close") break;
    }
    stream_.say_goodbye();
  }

  bool read_request() {
    const auto head = reader_.read_head();
    if (!head.ok() || !*head) return false;
    auto request = HttpRequest::parse(**head);
    if (!request) {
      request_ = {};
      respond(400, "malformed request", {{"Connection", "close"}});
      return false;
    }
    request_ = *std::move(request);
    request_.connection = number_;
    request_.client_name = stream_.peer_name();
    request_.sni = stream_.server_name();
    if (to_lower(request_.header("expect")) == "100-continue") {
      send("HTTP/1.1 100 Continue\r\n\r\n");
    }
    reader_.begin_body(**head, false);
    const std::size_t limit = server_.options_.body_limit;
    request_.body_too_large = (*head)->content_length().value_or(0) > limit;
    while (!request_.body_too_large) {
      const auto piece = reader_.next_piece();
      if (!piece.ok()) return false;
      if (piece->empty()) break;
      request_.body += *piece;
      request_.body_too_large = request_.body.size() > limit;
    }
    return true;
  }

  HttpServer& server_;
  const int number_;
  TlsStream stream_;
  HttpReader reader_{stream_};
  HttpRequest request_;
  std::atomic<bool> resetting_ = false;
  std::atomic<bool> over_ = false;
};

HttpServer::HttpServer(Options options, Handler handler)
    : options_(std::move(options)), handler_(std::move(handler)) {}

Result<void> HttpServer::start() {
  // Writing to a connection that the other side has closed must be an error, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  if (options_.tls) LPP_RETURN_IF_ERROR(set_certificate(options_.certificate), "TLS");
  LPP_ASSIGN_OR_RETURN(auto listener, listen_on(options_.address, options_.port), "server");
  acceptor_.emplace("http", std::move(listener),
                    [this](UniqueFd socket) { return serve(std::move(socket)); });
  return {};
}

void HttpServer::stop() {
  refuse_more();
  if (acceptor_) acceptor_->stop();
}

Result<void> HttpServer::set_certificate(const TestCertificate& certificate) {
  LPP_ASSIGN_OR_RETURN(SslContext context, server_context(certificate, options_.client_ca), "new");
  const MutexLock lock(mutex_);
  context_ = std::move(context);
  return {};
}

void HttpServer::cut_all() {
  if (!acceptor_) return;
  acceptor_->for_each([](Served& one) { static_cast<Connection&>(one).reset_soon(); });
}

void HttpServer::close_all() {
  if (!acceptor_) return;
  acceptor_->for_each([](Served& one) { static_cast<Connection&>(one).close(); });
}

std::unique_ptr<Served> HttpServer::serve(UniqueFd socket) {
  const MutexLock lock(mutex_);
  SSL_CTX* const context = options_.greeting ? nullptr : context_.get();
  return std::make_unique<Connection>(*this, std::move(socket), context, ++accepted_);
}

}  // namespace lpp::testing
