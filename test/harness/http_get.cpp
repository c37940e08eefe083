// SPDX-License-Identifier: Apache-2.0
#include "harness/http_get.h"

#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <random>

#include "base/unique_fd.h"
#include "harness/loopback.h"

namespace lpp::testing {

Result<HttpAnswer> http_get(int port, const std::string& path, std::chrono::milliseconds timeout) {
  httplib::Client client("127.0.0.1", port);
  client.set_connection_timeout(timeout);
  client.set_read_timeout(timeout);
  client.set_write_timeout(timeout);
  auto answer = client.Get(path);
  if (!answer) {
    return Error{.code = ErrorCode::kUnavailable, .message = httplib::to_string(answer.error())};
  }
  return HttpAnswer{.status = answer->status, .body = std::move(answer->body)};
}

int free_port() {
  // Below the ports that the kernel gives to whoever asks for none, so that nobody gets it
  // meanwhile.
  constexpr int kFirst = 20000;
  constexpr int kLast = 32000;
  constexpr int kTries = 100;
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirst, kLast);
  for (int i = 0; i < kTries; ++i) {
    const int port = any(random);
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    const auto* const any_address = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: C
    if (::bind(listener.get(), any_address, sizeof address) == 0) return port;
  }
  return 0;
}

}  // namespace lpp::testing
