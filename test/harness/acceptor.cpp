// SPDX-License-Identifier: Apache-2.0
#include "harness/acceptor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/strings.h"

namespace lpp::testing {

Result<Listener> listen_on(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return invalid("not an IP address: " + address);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> place(found, ::freeaddrinfo);
  UniqueFd socket(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::bind(socket.get(), place->ai_addr, place->ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "listen on " + address + ", port " + std::to_string(port) + ": " +
                            std::generic_category().message(errno)};
  }
  const int got = bound.ss_family == AF_INET6
                      ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                      : reinterpret_cast<const sockaddr_in&>(bound).sin_port;
  return Listener{.socket = std::move(socket), .port = ntohs(static_cast<std::uint16_t>(got))};
}

Acceptor::Acceptor(std::string name, Listener listener, Make make)
    : name_(std::move(name)),
      listener_(std::move(listener)),
      port_(listener_.port),
      make_(std::move(make)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { accept_all(); }) {}

void Acceptor::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

void Acceptor::accept_all() {
  set_thread_name(name_ + "-accept");
  std::array<pollfd, 2> watched{{{.fd = listener_.socket.get(), .events = POLLIN, .revents = 0},
                                 {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
  while (true) {
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (stopping_) return;
    std::uint64_t ignored = 0;
    if (watched[1].revents != 0) static_cast<void>(!::read(wake_.get(), &ignored, sizeof ignored));
    reap();
    if (watched[0].revents == 0) continue;
    UniqueFd socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.valid()) {
      start(make_(std::move(socket)));
    } else if (errno == EMFILE || errno == ENFILE) {
      ::poll(nullptr, 0, 10);  // out of descriptors: let some connections end
    }
  }
}

void Acceptor::start(std::unique_ptr<Served> connection) {
  if (connection == nullptr) return;
  const MutexLock lock(mutex_);
  Running& running = running_.emplace_back(std::move(connection));
  running.thread = std::jthread([this, &running] {
    set_thread_name(name_ + "-conn");
    running.connection->run();
    running.over = true;
    wake();
  });
}

void Acceptor::reap() {
  std::list<Running> over;  // goes without the lock
  const MutexLock lock(mutex_);
  for (auto it = running_.begin(); it != running_.end();) {
    const auto next = std::next(it);
    if (it->over) over.splice(over.end(), running_, it);
    it = next;
  }
}

std::size_t Acceptor::count() const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(running_, [](const Running& one) { return !one.over; }));
}

void Acceptor::for_each(const std::function<void(Served&)>& visit) const {
  const MutexLock lock(mutex_);
  for (const Running& one : running_) {
    if (!one.over) visit(*one.connection);
  }
}

void Acceptor::stop() {
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
  listener_.socket.reset();
  for_each([](Served& one) { one.end(); });
  std::list<Running> all;
  const MutexLock lock(mutex_);
  all.swap(running_);
}

}  // namespace lpp::testing
