// SPDX-License-Identifier: Apache-2.0
#include "k8s/dial.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/errno_text.h"
#include "base/log.h"
#include "base/strings.h"
#include "k8s/transport.h"

namespace lpp::k8s {

namespace {

constexpr std::chrono::seconds kConnectLimit{3};        // per address
constexpr std::chrono::milliseconds kNextAddress{250};  // RFC 8305
constexpr std::chrono::seconds kProxyAnswerLimit{5};
constexpr std::size_t kMaxProxyAnswer = 16384;

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

void set_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // What is not acknowledged would else be sent again for a quarter of an hour; a watch whose
  // request is lost must not wait that long.
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
  // The farewell of a TLS connection is written outside any guarded call.
  const timeval send_limit{.tv_sec = 5, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &send_limit, sizeof send_limit);
}

/// Waits for an event on fd; false when the limit passed or the call ended first.
bool wait_for(int fd, short events, TimePoint limit, const Clock& clock,
              const CallGuard::Call& call) {
  while (call.ended() == CallGuard::Ended::kNo && clock.now() < limit) {
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(kLookAtCall.count())) > 0) return true;
  }
  return false;
}

/// A connection that is being made.
struct Trial {
  UniqueFd fd;
  TimePoint limit;
};

Result<UniqueFd> begin_connect(Address address, int port) {
  const auto wire_port = htons(static_cast<std::uint16_t>(port));
  if (address.storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = wire_port;
  } else {
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = wire_port;
  }
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return not_connected(errno_text(errno));
  set_options(fd.get());
  const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::connect(fd.get(), to, address.size) != 0 && errno != EINPROGRESS) {
    return not_connected(errno_text(errno));
  }
  return fd;
}

/// Why a connection that is being made has failed; 0 when it stands.
int connect_failure(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

Result<UniqueFd> connect_to_any(const std::vector<Address>& addresses, int port, const Clock& clock,
                                const CallGuard::Call& call) {
  std::vector<Trial> trials;
  auto next = addresses.begin();
  TimePoint next_start = clock.now();
  Error last = not_connected("no answer");
  while (call.ended() == CallGuard::Ended::kNo) {
    const TimePoint now = clock.now();
    if (next != addresses.end() && (trials.empty() || now >= next_start)) {
      next_start = now + kNextAddress;
      auto begun = begin_connect(*next++, port);
      if (begun.ok()) {
        trials.push_back({std::move(begun).value(), now + kConnectLimit});
      } else {
        last = std::move(begun).error();
      }
      continue;
    }
    if (trials.empty()) return last;
    std::vector<pollfd> entries;
    entries.reserve(trials.size());
    for (const Trial& trial : trials) {
      entries.push_back({.fd = trial.fd.get(), .events = POLLOUT, .revents = 0});
    }
    ::poll(entries.data(), entries.size(), static_cast<int>(kLookAtCall.count()));
    for (std::size_t i = trials.size(); i-- > 0;) {
      const bool decided = entries[i].revents != 0;
      if (!decided && now < trials[i].limit) continue;
      const int error = decided ? connect_failure(trials[i].fd.get()) : 0;
      if (decided && error == 0) {
        UniqueFd fd = std::move(trials[i].fd);
        ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
        return fd;
      }
      last = not_connected(decided ? errno_text(error) : "no answer");
      trials.erase(trials.begin() + static_cast<std::ptrdiff_t>(i));
      next_start = now;
    }
  }
  return last;
}

Result<UniqueFd> connect_to(const std::string& host, int port, Resolver& resolver,
                            const Clock& clock, const CallGuard::Call& call) {
  LPP_ASSIGN_OR_RETURN(const auto addresses, resolver.resolve(host, call), "connect");
  auto fd = connect_to_any(addresses, port, clock, call);
  if (fd.ok()) return fd;
  return std::move(fd).error().wrap("cannot connect to " + host_and_port(host, port));
}

/// Asks the proxy at the other end of fd for a tunnel.
Result<void> open_tunnel(int fd, const DialTarget& target, const Clock& clock,
                         const CallGuard::Call& call) {
  const std::string where = host_and_port(target.host, target.port);
  const std::string context =
      fmt::format("proxy {}", host_and_port(target.proxy_host, target.proxy_port));
  std::string request = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", where);
  if (!target.proxy_authorization.empty()) {
    request += "Proxy-Authorization: " + target.proxy_authorization + "\r\n";
  }
  request += "\r\n";
  // A few hundred bytes fit into the buffer of a fresh socket.
  const auto sent = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(request.size())) {
    return not_connected("cannot send the CONNECT request").wrap(context);
  }
  const TimePoint limit = clock.now() + kProxyAnswerLimit;
  std::string answer;
  // Byte by byte: what follows the head belongs to the tunnel.
  while (!answer.ends_with("\r\n\r\n")) {
    if (answer.size() > kMaxProxyAnswer)
      return not_connected("the answer is too long").wrap(context);
    if (!wait_for(fd, POLLIN, limit, clock, call)) return not_connected("no answer").wrap(context);
    char byte = 0;
    if (::recv(fd, &byte, 1, 0) != 1) {
      return not_connected("closed the connection instead of answering").wrap(context);
    }
    answer += byte;
  }
  const auto line = std::string_view(answer).substr(0, answer.find("\r\n"));
  const auto parts = split(line, ' ');
  if (!line.starts_with("HTTP/1.") || parts.size() < 2 || parts[1].size() != 3 ||
      parts[1][0] != '2') {
    return not_connected(fmt::format("refused a tunnel to {}: {}", where,
                                     log::quoted(truncate_utf8(line, 100))))
        .wrap(context);
  }
  return {};
}

}  // namespace

std::string host_and_port(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(ipv6 ? "[{}]:{}" : "{}:{}"), host, port);
}

Result<UniqueFd> dial(const DialTarget& target, Resolver& resolver, const Clock& clock,
                      const CallGuard::Call& call) {
  if (target.proxy_host.empty()) {
    return connect_to(target.host, target.port, resolver, clock, call);
  }
  LPP_ASSIGN_OR_RETURN(UniqueFd fd,
                       connect_to(target.proxy_host, target.proxy_port, resolver, clock, call),
                       "proxy");
  if (auto opened = open_tunnel(fd.get(), target, clock, call); !opened.ok()) {
    return std::move(opened).error();
  }
  return fd;
}

}  // namespace lpp::k8s
