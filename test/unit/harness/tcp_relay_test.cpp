// SPDX-License-Identifier: Apache-2.0
#include "harness/tcp_relay.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "harness/acceptor.h"
#include "harness/loopback.h"

namespace lpp::testing {
namespace {

/// What can be read within the limit: a text, "end", "reset", or "nothing".
std::string read_from(int fd, int limit_ms) {
  pollfd watched{.fd = fd, .events = POLLIN, .revents = 0};
  if (::poll(&watched, 1, limit_ms) <= 0) return "nothing";
  char buffer[64];
  const auto size = ::recv(fd, buffer, sizeof buffer, 0);
  if (size < 0) return "reset";
  return size == 0 ? "end" : std::string(buffer, static_cast<std::size_t>(size));
}

struct Ends {
  Ends() { relay = TcpRelay::start(listening.port).value(); }
  ~Ends() {
    for (const int fd : {client, server}) {
      if (fd >= 0) ::close(fd);
    }
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  bool try_connect() {
    client = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(relay->port());
    return ::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  void connect() { REQUIRE(try_connect()); }
  void accept() { server = ::accept(listening.socket.get(), nullptr, nullptr); }

  const Listener listening = listen_on().value();
  std::unique_ptr<TcpRelay> relay;
  int client = -1;
  int server = -1;
};

void say(int fd, const std::string& text) {
  REQUIRE(::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

TEST_CASE("a relay passes on both ways, holds back unseen, and ends with its ends") {
  Ends ends;
  ends.connect();
  ends.accept();
  say(ends.client, "there");
  CHECK(read_from(ends.server, 60000) == "there");
  say(ends.server, "back");
  CHECK(read_from(ends.client, 60000) == "back");

  ends.relay->hold(true);
  say(ends.client, "later");
  CHECK(read_from(ends.server, 100) == "nothing");
  ends.relay->hold(false);
  CHECK(read_from(ends.server, 60000) == "later");

  ::shutdown(ends.server, SHUT_RDWR);
  CHECK(read_from(ends.client, 60000) == "end");
}

TEST_CASE("a relay cuts what stands and refuses what comes") {
  Ends ends;
  ends.connect();
  ends.accept();
  ends.relay->cut();
  CHECK(read_from(ends.client, 60000) == "reset");
  CHECK(read_from(ends.server, 60000) == "reset");

  ends.relay->refuse(true);
  ::close(ends.client);
  if (ends.try_connect()) {
    CHECK(read_from(ends.client, 60000) == "reset");
  } else {
    CHECK(errno == ECONNRESET);  // so soon that it is what connect() says
  }
}

}  // namespace
}  // namespace lpp::testing
