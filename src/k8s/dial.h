// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "k8s/call_guard.h"
#include "k8s/resolver.h"

namespace lpp::k8s {

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

/// A connected TCP socket: the addresses of the host are tried side by side, each begun a quarter
/// of a second after the one before it or when that has failed, each for at most 3 s; the first
/// that answers wins. No delay of small writes (Nagle), an end of silent peers (probes 30/10/3; 30
/// s without acknowledgement), closed on exec. Errors say what was tried. Blocks until the call
/// ends at the latest. Thread-safe.
Result<UniqueFd> dial(const DialTarget& target, Resolver& resolver, const Clock& clock,
                      const CallGuard::Call& call);

}  // namespace lpp::k8s
