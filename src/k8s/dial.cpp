#include "k8s/dial.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/log.h"
#include "base/strings.h"
#include "k8s/transport.h"

namespace lpp::k8s {

namespace {

constexpr std::chrono::seconds kConnectLimit{3};  // per address
constexpr std::chrono::seconds kProxyAnswerLimit{5};
constexpr std::chrono::milliseconds kSlice{10};  // how often a wait looks whether the call ended
constexpr std::size_t kMaxProxyAnswer = 16384;

std::string errno_text(int error) { return std::generic_category().message(error); }

Error failed(std::string message) {
  return Error{.code = ErrorCode::kUnavailable,
               .message = std::move(message),
               .reason = std::string(kConnectFailed)};
}

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

void set_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // The farewell of a TLS connection is written outside any guarded call.
  const timeval send_limit{.tv_sec = 5, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &send_limit, sizeof send_limit);
}

/// Waits for an event on fd; false when the limit passed or the call ended first.
bool wait_for(int fd, short events, TimePoint limit, const Clock& clock,
              const CallGuard::Call& call) {
  while (call.ended() == CallGuard::Ended::kNo && clock.now() < limit) {
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(kSlice.count())) > 0) return true;
  }
  return false;
}

Result<UniqueFd> connect_to(const addrinfo& address, const Clock& clock,
                            const CallGuard::Call& call) {
  UniqueFd fd(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                       address.ai_protocol));
  if (fd.get() < 0) return failed(errno_text(errno));
  set_options(fd.get());
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return failed(errno_text(errno));
    if (!wait_for(fd.get(), POLLOUT, clock.now() + kConnectLimit, clock, call)) {
      return failed("no answer");
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return failed(errno_text(error));
  }
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

Result<UniqueFd> connect_to(const std::string& host, int port, const Clock& clock,
                            const CallGuard::Call& call) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string where = host_and_port(host, port);
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    return failed(fmt::format("cannot resolve {}: {}", host, ::gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  Error last = failed("no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    auto fd = connect_to(*address, clock, call);
    if (fd.ok()) return fd;
    last = std::move(fd).error();
    if (call.ended() != CallGuard::Ended::kNo) break;
  }
  return std::move(last).wrap("cannot connect to " + where);
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
    return failed("cannot send the CONNECT request").wrap(context);
  }
  const TimePoint limit = clock.now() + kProxyAnswerLimit;
  std::string answer;
  // Byte by byte: what follows the head belongs to the tunnel.
  while (!answer.ends_with("\r\n\r\n")) {
    if (answer.size() > kMaxProxyAnswer) return failed("the answer is too long").wrap(context);
    if (!wait_for(fd, POLLIN, limit, clock, call)) return failed("no answer").wrap(context);
    char byte = 0;
    if (::recv(fd, &byte, 1, 0) != 1) {
      return failed("closed the connection instead of answering").wrap(context);
    }
    answer += byte;
  }
  const auto line = std::string_view(answer).substr(0, answer.find("\r\n"));
  const auto parts = split(line, ' ');
  if (!line.starts_with("HTTP/1.") || parts.size() < 2 || parts[1].size() != 3 ||
      parts[1][0] != '2') {
    return failed(fmt::format("refused a tunnel to {}: {}", where,
                              log::quoted(truncate_utf8(line, 100))))
        .wrap(context);
  }
  return {};
}

}  // namespace

void UniqueFd::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old >= 0) ::close(old);
}

std::string host_and_port(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(ipv6 ? "[{}]:{}" : "{}:{}"), host, port);
}

Result<UniqueFd> dial(const DialTarget& target, Clock& clock, const CallGuard::Call& call) {
  if (target.proxy_host.empty()) return connect_to(target.host, target.port, clock, call);
  LPP_ASSIGN_OR_RETURN(UniqueFd fd, connect_to(target.proxy_host, target.proxy_port, clock, call),
                       "proxy");
  if (auto opened = open_tunnel(fd.get(), target, clock, call); !opened.ok()) {
    return std::move(opened).error();
  }
  return fd;
}

}  // namespace lpp::k8s
