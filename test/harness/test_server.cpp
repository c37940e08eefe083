// SPDX-License-Identifier: Apache-2.0
#include "harness/test_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "base/strings.h"
#include "harness/loopback.h"
#include "harness/pass_bytes.h"

namespace lpp::testing {

TestServer::TestServer(HttpServer::Options options, HttpServer::Handler handler)
    : http_(std::move(options), [this, handler = std::move(handler)](Exchange& exchange) {
        {
          const MutexLock lock(mutex_);
          requests_.push_back(exchange.request());
        }
        return handler(exchange);
      }) {
  static_cast<void>(http_.start());
}

std::vector<HttpRequest> TestServer::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

HttpRequest TestServer::last_request() const {
  const MutexLock lock(mutex_);
  return requests_.back();
}

void TestServer::set_certificate(const TestCertificate& certificate) {
  static_cast<void>(http_.set_certificate(certificate));
}

class TestProxy::Tunnel final : public Served {
 public:
  Tunnel(TestProxy& proxy, UniqueFd client) : proxy_(proxy), client_(std::move(client)) {}

  void run() override {
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n") && ::recv(client_.get(), &byte, 1, 0) == 1) head += byte;
    {
      const MutexLock lock(proxy_.mutex_);
      proxy_.heads_.push_back(head);
    }
    const std::string line = "HTTP/1.1 " + proxy_.answer_ + "\r\nX-Proxy: test\r\n\r\n";
    ::send(client_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (proxy_.answer_.starts_with("2")) pass_on(std::string(split(head, ' ')[1]));
    end();
  }

  void end() override { ::shutdown(client_.get(), SHUT_RDWR); }

 private:
  /// Both ways, until one side ends. Whatever the host of the target, its port is on loopback.
  void pass_on(const std::string& target) const {
    const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(std::stoi(target.substr(target.rfind(':') + 1)));
    bool open =
        ::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    std::array<pollfd, 2> ends{{{.fd = client_.get(), .events = POLLIN, .revents = 0},
                                {.fd = server.get(), .events = POLLIN, .revents = 0}}};
    while (open && ::poll(ends.data(), ends.size(), -1) > 0) {
      for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i].revents != 0) open = open && pass_bytes(ends[i].fd, ends[1 - i].fd);
      }
    }
  }

  TestProxy& proxy_;
  const UniqueFd client_;
};

TestProxy::TestProxy(std::string answer)
    : answer_(std::move(answer)), acceptor_("tunnel", listen_on().value(), [this](UniqueFd client) {
        return std::make_unique<Tunnel>(*this, std::move(client));
      }) {}

std::vector<std::string> TestProxy::heads() const {
  const MutexLock lock(mutex_);
  return heads_;
}

}  // namespace lpp::testing
