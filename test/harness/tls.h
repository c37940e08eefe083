// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "harness/test_ca.h"

namespace lpp::testing {

struct OpenSslDelete {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslContext = std::unique_ptr<SSL_CTX, OpenSslDelete>;

/// Server side of TLS with that certificate, for HTTP/1.1 only, whatever the client offers first.
/// With an authority, clients need a certificate of it.
Result<SslContext> server_context(const TestCertificate& own, const std::string& client_ca = "");

/// Client side: trusts `ca_pem` only; "" trusts everybody.
Result<SslContext> client_context(const std::string& ca_pem);

/// One TLS connection, or without a context the bare bytes. One thread uses it; shut_down_socket()
/// is safe from any thread and ends what blocks. SIGPIPE must be ignored by the process.
class TlsStream {
 public:
  TlsStream(UniqueFd socket, SSL_CTX* context);

  /// Connects to 127.0.0.1 or another address given by numbers; no TLS yet.
  static Result<UniqueFd> dial(const std::string& host, int port);

  Result<void> accept();
  Result<void> connect(const std::string& server_name);

  /// Bytes read into `buffer` (of `size`), 0 at the end of the stream.
  Result<std::size_t> read(char* buffer, std::size_t size);
  Result<void> write(std::string_view data);

  /// True when bytes can be read without asking the socket.
  bool has_pending() const;
  /// True when the other side has closed the connection or it is broken, now or within that time.
  bool peer_gone(std::chrono::milliseconds wait = {}) const;
  int fd() const { return socket_.get(); }
  /// Of the other side's certificate, the common name of its subject; "" = it has none.
  std::string peer_serial() const;
  std::string peer_name() const;
  /// Whom a client has asked for (SNI); "" = it did not say.
  std::string server_name() const;

  void shut_down_socket(int how = SHUT_RDWR);
  /// Ends the connection at once with a TCP reset; only by the thread that uses it.
  void reset();
  /// An orderly end of the TLS stream.
  void say_goodbye();

 private:
  const UniqueFd socket_;
  std::unique_ptr<SSL, OpenSslDelete> ssl_;
};

}  // namespace lpp::testing
