// SPDX-License-Identifier: Apache-2.0
#include "harness/http_get.h"

#include <httplib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <deque>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace lpp::testing {

namespace {

/// A name that only one has at a time, in this process or another, and that goes with it; invalid:
/// somebody has it.
UniqueFd claim_on(int port) {
  const std::string name = "lpp-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());  // behind a 0: a name without a file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd claim(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto* const any_address = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(claim.get(), any_address, size) == 0 ? std::move(claim) : UniqueFd();
}

/// Keeps others from the ports that were given last: those who asked may not listen there yet, or
/// not for the moment in which a story restarts them. Of agents alone a story may take a hundred.
void keep(UniqueFd claim) {
  static std::mutex mutex;
  static std::deque<UniqueFd> kept;
  constexpr std::size_t kMost = 400;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(claim));
  if (kept.size() > kMost) kept.pop_front();
}

}  // namespace

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

bool can_listen(int port) {
  // Nothing listens to find out: a process that another thread forks meanwhile would do so, too,
  // until it becomes another program.
  constexpr const char* kListens = "0A";
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);  // the heading
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number;
      std::string local;
      std::string remote;
      std::string state;
      words >> number >> local >> remote >> state;
      const std::string there = local.substr(local.find(':') + 1);
      if (state == kListens && std::stoi(there, nullptr, 16) == port) return false;
    }
  }
  return true;
}

int free_port() {
  // Above the ports of the clusters in test/e2e, which may start meanwhile, and below those that
  // the kernel gives to whoever asks for none.
  constexpr int kFirst = 24000;
  constexpr int kLast = 32000;
  constexpr int kTries = 100;
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirst, kLast);
  for (int i = 0; i < kTries; ++i) {
    const int port = any(random);
    UniqueFd claim = claim_on(port);
    if (!claim.valid() || !can_listen(port)) continue;
    keep(std::move(claim));
    return port;
  }
  return 0;
}

}  // namespace lpp::testing
