// SPDX-License-Identifier: Apache-2.0
#include "harness/tcp_relay.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <utility>

#include "base/strings.h"
#include "harness/loopback.h"
#include "harness/pass_bytes.h"

namespace lpp::testing {

namespace {

void set_option(int fd, int level, int name, int value) {
  static_cast<void>(::setsockopt(fd, level, name, &value, sizeof value));
}

/// With a reset instead of an orderly end.
void reset(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
  ::close(fd);
}

}  // namespace

struct TcpRelay::Line {
  int client = -1;
  int server = -1;

  void cut() const {
    reset(client);
    reset(server);
  }
};

Result<std::unique_ptr<TcpRelay>> TcpRelay::start(int target_port) {
  LPP_ASSIGN_OR_RETURN(Listener listener, listen_on(), "relay");
  ::fcntl(listener.socket.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<TcpRelay>(new TcpRelay(target_port, std::move(listener)));
}

TcpRelay::TcpRelay(int target_port, Listener listener)
    : target_port_(target_port),
      listener_(std::move(listener)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this](const std::stop_token& stop) {
        set_thread_name("relay");
        run(stop);
      }) {}

TcpRelay::~TcpRelay() {
  thread_.request_stop();
  wake();
  thread_.join();
}

void TcpRelay::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

void TcpRelay::cut() {
  cut_ = true;
  wake();
}

void TcpRelay::hold(bool hold) {
  holding_ = hold;
  wake();
}

void TcpRelay::accept_one(std::vector<Line>& lines) const {
  Line line{.client = ::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (line.client < 0) return;
  if (refusing_) return reset(line.client);
  line.server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(target_port_);
  if (::connect(line.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return line.cut();
  }
  for (const int fd : {line.client, line.server}) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    // A side that does not read must not stop the others for long.
    const timeval most{.tv_sec = 1, .tv_usec = 0};
    static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most));
  }
  lines.push_back(line);
}

void TcpRelay::run(const std::stop_token& stop) {
  std::vector<Line> lines;
  while (!stop.stop_requested()) {
    std::vector<pollfd> watched = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = listener_.socket.get(), .events = POLLIN, .revents = 0}};
    if (!holding_) {
      for (const Line& line : lines) {
        watched.push_back({.fd = line.client, .events = POLLIN, .revents = 0});
        watched.push_back({.fd = line.server, .events = POLLIN, .revents = 0});
      }
    }
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    std::uint64_t ignored = 0;
    static_cast<void>(!::read(wake_.get(), &ignored, sizeof ignored));
    if (cut_.exchange(false)) {
      for (const Line& line : lines) line.cut();
      lines.clear();
    } else if (!holding_ && watched.size() > 2) {  // it may hold since the wait began
      std::vector<Line> left;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const Line& line = lines[i];
        const bool stands =
            (watched[2 + 2 * i].revents == 0 || pass_bytes(line.client, line.server)) &&
            (watched[3 + 2 * i].revents == 0 || pass_bytes(line.server, line.client));
        if (stands) {
          left.push_back(line);
        } else {
          ::close(line.client);
          ::close(line.server);
        }
      }
      lines = std::move(left);
    }
    if (watched[1].revents != 0) accept_one(lines);
  }
  for (const Line& line : lines) line.cut();
}

}  // namespace lpp::testing
