// SPDX-License-Identifier: Apache-2.0
#include "base/http_head.h"

#include <algorithm>

#include "base/strings.h"
#include "base/whole_number.h"

namespace lpp {

namespace {

Error refused(int status, std::string message) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .http_status = status};
}

Result<std::size_t> length_of(std::string_view value) {
  const auto length = whole_number<std::size_t>(value);
  if (!length) return refused(400, "Content-Length is not a number");
  return *length;
}

Result<void> read_field(std::string_view line, HttpHead& head) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || line.front() == ' ' ||
      line.front() == '\t' || line[colon - 1] == ' ') {
    return refused(400, "a header line is malformed");
  }
  const std::string name = to_lower(line.substr(0, colon));
  const std::string_view value = trim(line.substr(colon + 1));
  if (name == "content-length") {
    if (head.has_body) return refused(400, "Content-Length is given twice");
    LPP_ASSIGN_OR_RETURN(head.body, length_of(value), "header");
    head.has_body = true;
  } else if (name == "transfer-encoding") {
    return refused(411, "Transfer-Encoding is not taken: send a Content-Length");
  } else if (name == "connection") {
    if (to_lower(value).find("close") != std::string::npos) head.keep_alive = false;
  } else if (name == "authorization") {
    constexpr std::string_view kBearer = "bearer ";
    if (to_lower(value.substr(0, kBearer.size())) == kBearer) {
      head.token = trim(value.substr(kBearer.size()));
    }
  }
  return {};
}

}  // namespace

Result<std::optional<HttpHead>> parse_http_head(std::string_view text) {
  const auto end = text.substr(0, kMaxHttpHead).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (text.size() >= kMaxHttpHead) return refused(431, "the request's head is too large");
    return std::optional<HttpHead>{};
  }
  HttpHead head{.size = end + 4};
  auto lines = text.substr(0, end);
  if (std::any_of(lines.begin(), lines.end(), [](char c) { return c == '\0'; })) {
    return refused(400, "the request's head holds a NUL");
  }
  const auto next_line = [&lines] {
    const auto stop = lines.find("\r\n");
    const std::string_view line = lines.substr(0, stop);
    lines = stop == std::string_view::npos ? std::string_view() : lines.substr(stop + 2);
    return line;
  };
  const auto parts = split(next_line(), ' ');
  if (parts.size() != 3 || !parts[2].starts_with("HTTP/1.")) {
    return refused(400, "this is not HTTP/1.1");
  }
  if (parts[2] != "HTTP/1.1") head.keep_alive = false;
  head.method = parts[0];
  head.target = parts[1];
  while (!lines.empty()) LPP_RETURN_IF_ERROR(read_field(next_line(), head), "request");
  return std::optional(std::move(head));
}

std::string_view http_reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Error";
  }
}

}  // namespace lpp
