// SPDX-License-Identifier: Apache-2.0
#include "agent/http_request.h"

#include <fmt/format.h>

namespace lpp::agent {

namespace {

Error refused(int status, std::string message) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .http_status = status};
}

}  // namespace

Result<std::optional<HttpHead>> parse_head(std::string_view text) {
  auto head = parse_http_head(text);
  if (!head.ok() || !*head) return head;
  if ((*head)->method != "POST") return refused(405, "only POST is taken");
  if (!(*head)->has_body) return refused(411, "Content-Length is missing");
  return head;
}

std::string answer_text(int status, std::string_view body, bool close) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n{}",
                     status, http_reason(status),
                     status == 200 ? "application/json" : "text/plain; charset=utf-8", body.size(),
                     status == 429 ? "Retry-After: 1\r\n" : "",
                     close ? "Connection: close\r\n" : "", body);
}

}  // namespace lpp::agent
