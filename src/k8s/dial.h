#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "k8s/call_guard.h"

namespace lpp::k8s {

/// Owns a file descriptor. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Where a connection goes, and the HTTP proxy it is tunnelled through, if any.
struct DialTarget {
  std::string host;  // without brackets, also for IPv6
  int port = 0;
  std::string proxy_host{};  // "" = direct
  int proxy_port = 0;
  std::string proxy_authorization{};  // value of Proxy-Authorization, "" = none
};

/// "host:port", with brackets around an IPv6 address.
std::string host_and_port(const std::string& host, int port);

/// A connected TCP socket: each address of the host is tried for at most 3 s until the call ends;
/// no delay of small writes (Nagle), probes of silent peers (keep-alive 30/10/3), closed on exec.
/// Errors say what was tried. Blocks; name resolution cannot be interrupted.
Result<UniqueFd> dial(const DialTarget& target, Clock& clock, const CallGuard::Call& call);

}  // namespace lpp::k8s
