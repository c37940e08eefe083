// SPDX-License-Identifier: Apache-2.0
#include "base/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace lpp {

bool is_address(const std::string& text) {
  in6_addr number{};  // room for either
  return inet_pton(AF_INET, text.c_str(), &number) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &number) == 1;
}

int listen_on(int port, int backlog, const std::string& address) {
  const int yes = 1;
  const int no = 0;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_any;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_ANY);
  v4.sin_port = v6.sin6_port;
  const bool on_v6 = address.empty() || inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1;
  const bool on_v4 = address.empty() || inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  const std::pair<const sockaddr*, socklen_t> addresses[] = {
      {reinterpret_cast<const sockaddr*>(&v6), sizeof v6},
      {reinterpret_cast<const sockaddr*>(&v4), sizeof v4}};
  errno = EINVAL;
  for (const auto& [where, size] : addresses) {
    if (!(where->sa_family == AF_INET6 ? on_v6 : on_v4)) continue;
    const int socket = ::socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (where->sa_family == AF_INET6) {
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    }
    if (bind(socket, where, size) == 0 && listen(socket, backlog) == 0) return socket;
    const int why = errno;
    ::close(socket);
    errno = why;
    if (why == EADDRINUSE || why == EACCES) return -1;
  }
  return -1;
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  // The port has the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace lpp
