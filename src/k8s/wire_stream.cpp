// SPDX-License-Identifier: Apache-2.0
#include "k8s/wire_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace lpp::k8s {

namespace {

int clamp(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

bool WireStream::is_drained() const {
  return unread_.empty() && (ssl_ == nullptr || SSL_has_pending(ssl_) == 0);
}

ssize_t WireStream::read(char* data, size_t size) {
  // Nine of ten calls: the library looks for the end of a line.
  if (size == 1 && !unread_.empty()) {
    *data = unread_.front();
    unread_.remove_prefix(1);
    return 1;
  }
  if (unread_.empty()) {
    if (size >= buffer_.size()) return read_some(data, size);
    const ssize_t got = read_some(buffer_.data(), buffer_.size());
    if (got <= 0) return got;
    unread_ = {buffer_.data(), static_cast<size_t>(got)};
  }
  const size_t taken = unread_.copy(data, size);
  unread_.remove_prefix(taken);
  return static_cast<ssize_t>(taken);
}

ssize_t WireStream::read_some(char* data, size_t size) {
  if (ssl_ == nullptr) {
    ssize_t got = 0;
    do got = ::recv(socket_, data, size, 0);
    while (got < 0 && errno == EINTR);
    return got;
  }
  ERR_clear_error();  // what SSL_get_error() looks at
  const int got = SSL_read(ssl_, data, clamp(size));
  if (got > 0) return got;
  return SSL_get_error(ssl_, got) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

ssize_t WireStream::write(const char* data, size_t size) {
  const std::string_view all(data, size);
  for (std::string_view left = all; !left.empty();) {
    ssize_t sent = 0;
    if (ssl_ == nullptr) {
      sent = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
    } else {
      ERR_clear_error();
      sent = SSL_write(ssl_, left.data(), clamp(left.size()));
    }
    if (sent <= 0) return -1;
    left.remove_prefix(static_cast<size_t>(sent));
  }
  return static_cast<ssize_t>(size);
}

}  // namespace lpp::k8s
