// SPDX-License-Identifier: Apache-2.0
#include "k8s/server_url.h"

#include <algorithm>

#include "base/strings.h"
#include "base/whole_number.h"

namespace lpp::k8s {

namespace {

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

Result<int> parse_port(std::string_view text) {
  const int port = whole_number<int>(text).value_or(0);
  if (port < 1 || port > 65535) return invalid("the port must be a number from 1 to 65535");
  return port;
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

Result<void> parse_authority(std::string_view authority, ServerUrl& url) {
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    url.user_info = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  std::string_view rest;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return invalid("there is no ] after the IPv6 address");
    url.host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
    const bool plausible =
        url.host.find(':') != std::string::npos &&
        url.host.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
    if (!plausible) return invalid("the text in brackets is not an IPv6 address");
    if (!rest.empty() && rest.front() != ':') return invalid("only a port may follow the ]");
  } else {
    const auto colon = authority.find(':');
    url.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) rest = authority.substr(colon);
    if (rest.size() > 1 && rest.find(':', 1) != std::string_view::npos) {
      return invalid("an IPv6 address must stand in brackets");
    }
    if (!std::all_of(url.host.begin(), url.host.end(), is_host_char)) {
      return invalid("the host name holds characters that no host name has");
    }
  }
  if (url.host.empty()) return invalid("there is no host in it");
  if (rest.size() > 1) {
    LPP_ASSIGN_OR_RETURN(url.port, parse_port(rest.substr(1)), "URL");
  }
  return {};
}

}  // namespace

Result<ServerUrl> parse_url(std::string_view text) {
  text = trim(text);
  if (text.empty()) return invalid("it is empty");
  if (!is_visible(text)) return invalid("there are spaces, control or non-ASCII characters in it");
  ServerUrl url;
  if (const auto end = text.find("://"); end != std::string_view::npos) {
    url.scheme = to_lower(text.substr(0, end));
    text.remove_prefix(end + 3);
  } else if (const auto lower = to_lower(text.substr(0, 7));
             lower.starts_with("http:/") || lower.starts_with("https:/")) {
    return invalid("two slashes must follow the scheme");
  }
  text = text.substr(0, text.find_first_of("?#"));
  const auto slash = text.find('/');
  if (slash != std::string_view::npos) url.path = text.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (auto parsed = parse_authority(text.substr(0, slash), url); !parsed.ok()) {
    return std::move(parsed).error();
  }
  return url;
}

}  // namespace lpp::k8s
