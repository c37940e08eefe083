// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace lpp::testing {

/// That port of 127.0.0.1.
inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A socket that listens on a free port of loopback; fd -1 if that cannot be had.
struct Listener {
  int fd = -1;
  int port = 0;
};
inline Listener listen_on_loopback(bool ipv6 = false) {
  sockaddr_in v4 = loopback(0);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  auto* address = ipv6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = ipv6 ? sizeof v6 : sizeof v4;
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  if (::bind(fd, address, size) != 0 || ::listen(fd, 256) != 0 ||
      ::getsockname(fd, address, &size) != 0) {
    ::close(fd);
    return {};
  }
  return {.fd = fd, .port = ntohs(ipv6 ? v6.sin6_port : v4.sin_port)};
}

}  // namespace lpp::testing
