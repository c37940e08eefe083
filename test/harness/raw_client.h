// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "harness/http_wire.h"

namespace lpp::testing {

/// A connection to 127.0.0.1 with TLS that says whatever the test wants, at the pace it wants, and
/// waits for 20 s at most. One thread.
class RawClient {
 public:
  /// Trusts that authority only; "" = takes any certificate. Without a handshake it is silent.
  explicit RawClient(int port, const std::string& ca_pem = "", bool handshake = true);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  /// Of the server's certificate.
  std::string serial() const;

  /// Bytes as they are; false when the connection has ended.
  bool send(std::string_view bytes);
  /// A whole request; `more_headers` end their lines.
  bool request(const std::string& method, const std::string& target,
               const std::string& more_headers, const std::string& body);
  bool post(const std::string& target, const std::string& token, const std::string& body,
            const std::string& more_headers = "");

  struct Answer {
    int status = 0;  // 0: there is no whole one, the connection has ended
    MessageHead head{};
    std::string body{};
  };
  Answer answer();
  Answer ask(const std::string& target, const std::string& token, const std::string& body) {
    return post(target, token, body) ? answer() : Answer{};
  }
  /// An answer bit by bit: its head, then pieces of its body as they come, "" at its end.
  Result<MessageHead> head();
  Result<std::string> piece();

  /// Waits until the other side has closed the connection.
  bool ended();
  /// Goes away without a word.
  void cut();

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
  bool connected_ = false;
};

}  // namespace lpp::testing
