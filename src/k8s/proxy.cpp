// SPDX-License-Identifier: Apache-2.0
#include "k8s/proxy.h"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "base/strings.h"
#include "base/whole_number.h"
#include "k8s/base64.h"
#include "k8s/server_url.h"

namespace lpp::k8s {

namespace {

/// An address in IPv6 form (IPv4 mapped), so that both kinds compare alike.
using Ip = std::array<unsigned char, 16>;

std::optional<Ip> parse_ip(const std::string& text) {
  Ip ip{};
  if (::inet_pton(AF_INET6, text.c_str(), ip.data()) == 1) return ip;
  std::array<unsigned char, 4> v4{};
  if (::inet_pton(AF_INET, text.c_str(), v4.data()) != 1) return std::nullopt;
  ip[10] = 0xff;
  ip[11] = 0xff;
  std::memcpy(&ip[12], v4.data(), v4.size());
  return ip;
}

bool is_v4(const Ip& ip) {
  constexpr Ip kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(ip.data(), kPrefix.data(), 12) == 0;
}

bool is_loopback(const Ip& ip) {
  constexpr Ip kV6{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return ip == kV6 || (is_v4(ip) && ip[12] == 127);
}

bool same_prefix(const Ip& a, const Ip& b, unsigned bits) {
  for (unsigned bit = 0; bit < bits; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if ((a[bit / 8] & mask) != (b[bit / 8] & mask)) return false;
  }
  return true;
}

/// True when the entry is a CIDR; `matches` is then whether the address lies in it.
bool match_cidr(const std::string& entry, const std::optional<Ip>& ip, bool& matches) {
  const auto slash = entry.find('/');
  if (slash == std::string::npos) return false;
  const auto network = parse_ip(entry.substr(0, slash));
  if (!network) return false;
  const auto bits = whole_number<unsigned>(std::string_view(entry).substr(slash + 1));
  const bool v4 = entry.find(':') == std::string::npos;
  if (!bits || *bits > (v4 ? 32U : 128U)) return false;
  matches =
      ip.has_value() && is_v4(*ip) == v4 && same_prefix(*ip, *network, *bits + (v4 ? 96U : 0U));
  return true;
}

/// Does this entry of NO_PROXY name the host?
bool entry_matches(std::string entry, const std::string& host, const std::optional<Ip>& ip,
                   const std::string& port) {
  if (entry == "*") return true;
  bool matches = false;
  if (match_cidr(entry, ip, matches)) return matches;
  std::string entry_port;
  if (!parse_ip(entry)) {
    const auto colon = entry.rfind(':');
    if (colon != std::string::npos) {
      entry_port = entry.substr(colon + 1);
      entry.resize(colon);
    }
    if (entry.size() > 2 && entry.front() == '[' && entry.back() == ']') {
      entry = entry.substr(1, entry.size() - 2);
    }
  }
  if (entry.empty() || (!entry_port.empty() && entry_port != port)) return false;
  if (const auto entry_ip = parse_ip(entry)) return ip == entry_ip;
  if (entry.starts_with("*.")) entry.erase(0, 1);
  if (entry.front() == '.') return host.ends_with(entry);
  return host == entry || host.ends_with("." + entry);
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* begin = text.data() + i + 1;
      const auto [end, error] = std::from_chars(begin, begin + 2, byte, 16);
      if (error == std::errc() && end == begin + 2) {
        decoded += static_cast<char>(byte);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

}  // namespace

Result<ProxyUrl> parse_proxy_url(const std::string& url) {
  LPP_ASSIGN_OR_RETURN(const ServerUrl parsed, parse_url(url), "proxy URL");
  if (!parsed.scheme.empty() && parsed.scheme != "http") {
    return invalid("proxy URL: only http:// proxies are supported, this is " + parsed.scheme +
                   "://");
  }
  ProxyUrl proxy{.host = parsed.host, .port = parsed.port.value_or(80)};
  if (!parsed.user_info.empty()) {
    const auto colon = parsed.user_info.find(':');
    const std::string user = percent_decode(std::string_view(parsed.user_info).substr(0, colon));
    const std::string password =
        colon == std::string::npos
            ? std::string()
            : percent_decode(std::string_view(parsed.user_info).substr(colon + 1));
    proxy.authorization = "Basic " + base64_encode(user + ":" + password);
  }
  return proxy;
}

std::string proxy_from_environment(bool https, const std::string& host, int port,
                                   const GetEnv& getenv) {
  const auto any_of = [&](const char* upper, const char* lower) {
    for (const char* name : {upper, lower}) {
      if (auto value = getenv(name); value && !value->empty()) return *value;
    }
    return std::string();
  };
  std::string proxy =
      https ? any_of("HTTPS_PROXY", "https_proxy") : any_of("HTTP_PROXY", "http_proxy");
  if (proxy.empty()) return {};
  const std::string name = to_lower(host);
  const auto ip = parse_ip(name);
  if (name == "localhost" || (ip && is_loopback(*ip))) return {};
  const std::string no_proxy = any_of("NO_PROXY", "no_proxy");
  for (const auto entry : split(no_proxy, ',')) {
    const std::string wanted = to_lower(trim(entry));
    if (!wanted.empty() && entry_matches(wanted, name, ip, std::to_string(port))) return {};
  }
  return proxy;
}

}  // namespace lpp::k8s
