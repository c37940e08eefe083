// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "k8s/api_client.h"
#include "k8s/object_reader.h"

namespace lpp::k8s {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxMessage = 2048;
constexpr std::size_t kMaxForeignMessage = 300;

/// What a Status body says; all empty when the body is something else.
struct Status {
  bool found = false;
  std::string message;
  std::string reason;
  std::optional<std::chrono::seconds> retry_after;
  bool resource_version_too_large = false;
};

std::string string_or_empty(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Status parse_status(const std::string& body) {
  Status status;
  ValueTree tree;
  const json object = to_json(read_object(body, status_fields(), tree));
  if (!object.is_object() || string_or_empty(object, "kind") != "Status") return status;
  status.found = true;
  status.message = string_or_empty(object, "message");
  status.reason = string_or_empty(object, "reason");
  const auto details = object.find("details");
  if (details == object.end() || !details->is_object()) return status;
  const auto after = details->find("retryAfterSeconds");
  if (after != details->end() && after->is_number_integer()) {
    const auto seconds = after->get<std::int64_t>();
    if (seconds > 0)
      status.retry_after = std::chrono::seconds(std::min<std::int64_t>(seconds, 86400));
  }
  const auto causes = details->find("causes");
  if (causes == details->end() || !causes->is_array()) return status;
  for (const auto& cause : *causes) {
    if (cause.is_object() && string_or_empty(cause, "reason") == "ResourceVersionTooLarge") {
      status.resource_version_too_large = true;
    }
  }
  return status;
}

ErrorCode code_of(int http_status, const Status& status) {
  switch (http_status) {
    case 400:
    case 413:
    case 415:
    case 422: return ErrorCode::kInvalid;
    case 401: return ErrorCode::kUnauthorized;
    case 403: return ErrorCode::kForbidden;
    case 404: return ErrorCode::kNotFound;
    case 408: return ErrorCode::kUnavailable;
    case 409:
      return status.reason == "AlreadyExists" ? ErrorCode::kAlreadyExists : ErrorCode::kConflict;
    case 410: return ErrorCode::kExpired;
    case 429: return ErrorCode::kTooManyRequests;
    case 504:
      // The server is behind the version that was asked for (rule C3.4): like an expired one, it
      // is cured by a list without a version only.
      return status.resource_version_too_large ? ErrorCode::kExpired : ErrorCode::kTimeout;
    default: return http_status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInternal;
  }
}

/// Readable text of a body that is not a Status: without HTML tags and runs of white space.
std::string plain_text(std::string_view body) {
  // Enough of a page to find its words in.
  body = body.substr(0, std::size_t{16} << 10U);
  std::string text;
  while (!body.empty() && text.size() <= kMaxForeignMessage) {
    const char c = body.front();
    if (c == '<') {
      const auto lower = to_lower(body.substr(0, 8));
      const bool skip_content = lower.starts_with("<style") || lower.starts_with("<script");
      std::size_t end = body.find('>');
      if (skip_content) {
        const auto close =
            to_lower(body).find(lower.starts_with("<style") ? "</style" : "</script");
        end = close == std::string::npos ? close : body.find('>', close);
      }
      if (end == std::string_view::npos) break;
      body.remove_prefix(end + 1);
      if (!text.empty() && text.back() != ' ') text += ' ';
      continue;
    }
    const bool space = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!space) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
    body.remove_prefix(1);
  }
  return std::string(trim(truncate_utf8(text, kMaxForeignMessage)));
}

std::string message_of(const Response& response, const Status& status) {
  if (!status.message.empty()) return std::string(truncate_utf8(status.message, kMaxMessage));
  std::string message = "HTTP " + std::to_string(response.status);
  if (status.found) {
    if (!status.reason.empty()) message += " " + status.reason;
    return message;
  }
  if (response.status >= 300 && response.status < 400) {
    return message + ": a redirect is not an answer of an API server (is the server URL right?)";
  }
  const std::string text = plain_text(response.body);
  return text.empty() ? message : message + ": " + text;
}

}  // namespace

Error error_from_response(const Response& response) {
  const Status status = parse_status(response.body);
  Error error{
      .code = code_of(response.status, status),
      .message = message_of(response, status),
      .http_status = response.status,
      .reason = status.resource_version_too_large ? "ResourceVersionTooLarge" : status.reason,
      .retry_after = response.retry_after ? response.retry_after : status.retry_after};
  return error;
}

}  // namespace lpp::k8s
