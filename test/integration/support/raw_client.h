// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace lpp::testing {

/// A connection to 127.0.0.1 with TLS that says whatever the test wants, at the pace it wants, and
/// takes any certificate. One thread.
class RawClient {
 public:
  explicit RawClient(int port, bool handshake = true) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!handshake) return;
    ssl_ = SSL_new(context());
    SSL_set_fd(ssl_, fd_);
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~RawClient() {
    SSL_free(ssl_);
    if (fd_ >= 0) ::close(fd_);
  }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        ssl_(std::exchange(other.ssl_, nullptr)),
        connected_(other.connected_) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  /// Of the server's certificate.
  std::string serial() const {
    X509* const certificate = SSL_get1_peer_certificate(ssl_);
    const std::string text =
        certificate == nullptr
            ? ""
            : std::to_string(ASN1_INTEGER_get(X509_get0_serialNumber(certificate)));
    X509_free(certificate);
    return text;
  }
  bool send(std::string_view bytes) {
    return SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }
  bool post(const std::string& target, const std::string& token, const std::string& body,
            const std::string& more = "") {
    return send("POST " + target + " HTTP/1.1\r\nHost: x\r\n" +
                (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n") + more +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  struct Answer {
    int status = 0;  // 0: there is none, the connection has ended
    std::string body{};
  };
  Answer answer() {
    std::size_t head = 0;
    while ((head = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!read()) return {};
    }
    Answer answer;
    std::from_chars(in_.data() + 9, in_.data() + 12, answer.status);
    constexpr std::string_view kLength = "Content-Length: ";
    const auto at = in_.find(kLength) + kLength.size();
    std::size_t length = 0;
    std::from_chars(in_.data() + at, in_.data() + in_.find('\r', at), length);
    while (in_.size() < head + 4 + length) {
      if (!read()) return {};
    }
    answer.body = in_.substr(head + 4, length);
    in_.erase(0, head + 4 + length);
    return answer;
  }
  Answer ask(const std::string& target, const std::string& token, const std::string& body) {
    return post(target, token, body) ? answer() : Answer{};
  }
  /// Waits until the other side has closed the connection.
  bool ended() {
    while (read()) {
    }
    return SSL_get_shutdown(ssl_) != 0 || errno != EAGAIN;
  }
  /// Goes away without a word.
  void cut() {
    ::shutdown(fd_, SHUT_RDWR);
    ::close(std::exchange(fd_, -1));
  }

 private:
  bool read() {
    std::array<char, 16384> piece{};
    const int got = SSL_read(ssl_, piece.data(), static_cast<int>(piece.size()));
    if (got > 0) in_.append(piece.data(), static_cast<std::size_t>(got));
    return got > 0;
  }
  static SSL_CTX* context() {
    static SSL_CTX* const shared = [] {
      SSL_CTX* const made = SSL_CTX_new(TLS_client_method());
      SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS);
      SSL_CTX_set_options(made, SSL_OP_IGNORE_UNEXPECTED_EOF);
      return made;
    }();
    return shared;
  }

  int fd_ = -1;
  SSL* ssl_ = nullptr;
  bool connected_ = false;
  std::string in_;
};

}  // namespace lpp::testing
