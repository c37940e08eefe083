// SPDX-License-Identifier: Apache-2.0
#include "harness/http_get.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "harness/loopback.h"

namespace lpp::testing {

namespace {

Error unavailable(const char* what) {
  return Error{.code = ErrorCode::kUnavailable, .message = what};
}

Result<HttpAnswer> exchange(int fd, int port, const std::string& path) {
  const auto address = loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return unavailable("connect");
  }
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return unavailable("send");
  std::string text;
  std::array<char, 4096> piece{};
  while (true) {
    const auto size = ::recv(fd, piece.data(), piece.size(), 0);
    if (size < 0) return unavailable("receive");
    if (size == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  HttpAnswer answer;
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos || !text.starts_with("HTTP/1.") || text.size() < 12) {
    return unavailable("no HTTP answer");
  }
  std::from_chars(text.data() + 9, text.data() + 12, answer.status);
  answer.body = text.substr(end + 4);
  return answer;
}

}  // namespace

Result<HttpAnswer> http_get(int port, const std::string& path, std::chrono::milliseconds timeout) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return unavailable("socket");
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  const timeval limit{.tv_sec = micros / 1'000'000, .tv_usec = micros % 1'000'000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  auto answer = exchange(fd, port, path);
  ::close(fd);
  return answer;
}

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  static_cast<void>(::bind(fd, generic, size));  // if it fails, so will the use of port 0
  ::getsockname(fd, generic, &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace lpp::testing
