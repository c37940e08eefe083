// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lpp {

/// The head of a request to one of our own servers.
struct HttpHead {
  std::string method{};
  std::string target{};    // path and query, as they were sent
  std::string token{};     // of "Authorization: Bearer"; "" = none
  std::size_t body = 0;    // its Content-Length
  bool has_body = false;   // it has one, if of 0
  bool keep_alive = true;  // another request may follow
  std::size_t size = 0;    // bytes of the head itself
};

/// HTTP/1.1 as far as probes, monitoring and agents need it, and nothing else: no chunks, no folded
/// lines. Nothing while the head is not complete. An Error's http_status is what to answer before
/// the connection is closed. Pure.
Result<std::optional<HttpHead>> parse_http_head(std::string_view text);

/// Of a head.
inline constexpr std::size_t kMaxHttpHead = 8192;

/// "Not Found" for 404.
std::string_view http_reason(int status);

}  // namespace lpp
