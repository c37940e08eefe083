// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

struct ssl_st;      // SSL of OpenSSL
struct ssl_ctx_st;  // SSL_CTX

namespace lpp::agent {

/// The server's side of TLS ≥ 1.2 with that certificate and its chain (PEM): no tickets, no
/// sessions, no renegotiation, and no buffers while nothing is sent. kInvalid says what is wrong.
Result<std::shared_ptr<ssl_ctx_st>> make_server_tls(const std::string& certificate,
                                                    const std::string& key);

/// A connection that never blocks; owns its socket. Not thread-safe.
class TlsSocket {
 public:
  TlsSocket(UniqueFd fd, const std::shared_ptr<ssl_ctx_st>& context);
  ~TlsSocket();
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  enum class Step {
    kDone,       // something was done: bytes may be left
    kWantRead,   // go on when the socket can be read
    kWantWrite,  // … or written
    kClosed,     // the other side has closed it, or it is broken
  };
  Step accept();
  /// Appends what has come, at most `most` bytes.
  Step read(std::string& to, std::size_t most);
  /// Takes what could be written off the front.
  Step write(std::string_view& from);
  /// Says that nothing follows; what still comes is not read any more.
  void close_writing();
  /// Throws away what still comes; kClosed when nothing does.
  Step discard();

  int fd() const { return fd_.get(); }

 private:
  Step step_of(int result);

  UniqueFd fd_;
  ssl_st* const ssl_;
};

}  // namespace lpp::agent
