// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace lpp::testing {

/// What has come on one socket goes to the other; false when one of them has ended.
inline bool pass_bytes(int from, int to) {
  std::array<char, 16384> buffer;
  const auto size = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  for (ssize_t sent = 0; sent < size;) {
    const auto more =
        ::send(to, buffer.data() + sent, static_cast<std::size_t>(size - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return size > 0;
}

}  // namespace lpp::testing
