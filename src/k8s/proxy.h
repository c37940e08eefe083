// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace lpp::k8s {

/// An HTTP proxy that connections are tunnelled through (CONNECT).
struct ProxyUrl {
  std::string host{};  // without brackets, also for IPv6
  int port = 80;
  std::string authorization{};  // value of Proxy-Authorization, "" = none
};

/// "http://[user:password@]host[:port]"; kInvalid for other schemes (https, socks5), which are not
/// supported. The error never shows the password.
Result<ProxyUrl> parse_proxy_url(const std::string& url);

using GetEnv = std::function<std::optional<std::string>(const std::string&)>;

/// The proxy that HTTPS_PROXY or HTTP_PROXY and NO_PROXY (or their lower-case forms) ask for, as a
/// URL; "" = none. The rules are Go's (golang.org/x/net/http/httpproxy): loopback is never proxied;
/// NO_PROXY holds host names, domain suffixes, IP addresses, CIDRs or "*", with optional ports.
std::string proxy_from_environment(bool https, const std::string& host, int port,
                                   const GetEnv& getenv);

}  // namespace lpp::k8s
