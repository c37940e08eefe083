// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>

#include <array>
#include <string_view>

namespace lpp::k8s {

/// A connection as httplib reads and writes it. The library asks for headers and chunk sizes byte
/// by byte, each of which would be a call into TLS and a poll: bytes are taken from the connection
/// as they come and handed out from here. It blocks; whoever has had enough shuts the socket down
/// (CallGuard). For one request and its answer, on one thread; owns nothing.
class WireStream final : public httplib::Stream {
 public:
  /// `ssl` is null for a connection without TLS.
  WireStream(int socket, SSL* ssl) : socket_(socket), ssl_(ssl) {}

  /// Nothing is held that was not asked for, here or in TLS.
  bool is_drained() const;

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  /// How many bytes were read; 0 at the end of the stream, -1 on failure.
  ssize_t read(char* data, size_t size) override;
  /// All of them, or -1.
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return socket_; }

 private:
  ssize_t read_some(char* data, size_t size);

  const int socket_;
  SSL* const ssl_;
  std::string_view unread_;  // of the buffer
  std::array<char, 4096> buffer_;
};

}  // namespace lpp::k8s
