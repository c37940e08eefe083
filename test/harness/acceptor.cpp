// SPDX-License-Identifier: Apache-2.0
#include "harness/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/listener.h"
#include "base/strings.h"

namespace lpp::testing {

Result<Listener> listen_on(const std::string& address, int port) {
  if (!is_address(address)) return invalid("not an IP address: " + address);
  UniqueFd socket(lpp::listen_on(port, SOMAXCONN, address));
  if (!socket.valid()) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "listen on " + address + ", port " + std::to_string(port) + ": " +
                            std::generic_category().message(errno)};
  }
  const int got = port_of(socket.get());
  return Listener{.socket = std::move(socket), .port = got};
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
