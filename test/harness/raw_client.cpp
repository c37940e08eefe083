// SPDX-License-Identifier: Apache-2.0
#include "harness/raw_client.h"

#include <sys/socket.h>

#include <array>
#include <csignal>
#include <utility>

#include "harness/tls.h"

namespace lpp::testing {

struct RawClient::Connection {
  Connection(SslContext made, UniqueFd socket)
      : context(std::move(made)), stream(std::move(socket), context.get()) {
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(stream.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  SslContext context;
  TlsStream stream;
  HttpReader reader{stream};
};

RawClient::RawClient(int port, const std::string& ca_pem, bool handshake) {
  ::signal(SIGPIPE, SIG_IGN);
  auto context = client_context(ca_pem);
  auto socket = TlsStream::dial("127.0.0.1", port);
  if (!context.ok() || !socket.ok()) return;
  connection_ = std::make_unique<Connection>(std::move(context).value(), *std::move(socket));
  connected_ = handshake && connection_->stream.connect("127.0.0.1").ok();
}

RawClient::~RawClient() = default;
RawClient::RawClient(RawClient&& other) noexcept = default;

std::string RawClient::serial() const {
  return connected_ ? connection_->stream.peer_serial() : std::string();
}

bool RawClient::send(std::string_view bytes) {
  return connected_ && connection_->stream.write(bytes).ok();
}

bool RawClient::request(const std::string& method, const std::string& target,
                        const std::string& more_headers, const std::string& body) {
  return send(method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + more_headers +
              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

bool RawClient::post(const std::string& target, const std::string& token, const std::string& body,
                     const std::string& more_headers) {
  return request("POST", target,
                 (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n") + more_headers,
                 body);
}

RawClient::Answer RawClient::answer() {
  auto begun = head();
  if (!begun.ok()) return {};
  auto body = connection_->reader.read_body();
  if (!body.ok()) return {};
  const int status = begun->status();
  return {.status = status, .head = std::move(begun).value(), .body = std::move(body).value()};
}

Result<MessageHead> RawClient::head() {
  constexpr auto kEnded = "the connection has ended";
  if (!connected_) return Error{.code = ErrorCode::kUnavailable, .message = kEnded};
  LPP_ASSIGN_OR_RETURN(auto head, connection_->reader.read_head(), "head");
  if (!head) return Error{.code = ErrorCode::kUnavailable, .message = kEnded};
  connection_->reader.begin_body(*head, false);
  return *std::move(head);
}

Result<std::string> RawClient::piece() { return connection_->reader.next_piece(); }

bool RawClient::ended() {
  if (!connected_) return true;
  std::array<char, 16'384> piece{};
  while (true) {
    const auto size = connection_->stream.read(piece.data(), piece.size());
    if (!size.ok()) return connection_->stream.peer_gone();  // else patience has ended
    if (*size == 0) return true;
  }
}

void RawClient::cut() {
  if (connection_ != nullptr) connection_->stream.shut_down_socket();
  connected_ = false;
}

}  // namespace lpp::testing
