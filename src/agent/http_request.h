// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lpp::agent {

/// The head of a request as agents make them: a POST with a body of a known length.
struct RequestHead {
  std::string target{};
  std::string token{};     // of "Authorization: Bearer"; "" = none
  std::size_t body = 0;    // bytes
  bool keep_alive = true;  // another request may follow
  std::size_t size = 0;    // bytes of the head itself
};

/// HTTP/1.1 as far as agents need it, and nothing else: no chunks, no other methods. Nothing while
/// the head is not complete. An Error's http_status is what to answer before the connection is
/// closed. Pure.
Result<std::optional<RequestHead>> parse_head(std::string_view text);

/// Of a head.
inline constexpr std::size_t kMaxHead = 8192;

/// An answer, with its head. `close`: no other follows.
std::string answer_text(int status, std::string_view body, bool close);

}  // namespace lpp::agent
