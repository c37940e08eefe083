// SPDX-License-Identifier: Apache-2.0
#include "harness/api_path.h"

#include "base/strings.h"

namespace lpp::testing {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
               hex_value(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

ApiPathParts split_api_path(std::string_view path) {
  ApiPathParts out;
  std::vector<std::string> parts;
  for (const auto part : split(path, '/')) {
    if (!part.empty()) parts.push_back(percent_decode(part, false));
  }
  out.is_api = !parts.empty() && (parts[0] == "api" || parts[0] == "apis");
  if (!out.is_api) return out;
  std::size_t next = 1;
  if (parts[0] == "apis" && next < parts.size()) out.group = parts[next++];
  if (next < parts.size()) out.version = parts[next++];
  if (next >= parts.size()) return out;
  // /namespaces/<name> and /namespaces/<name>/status are about the namespace itself.
  const bool of_namespace = parts.size() == next + 3 && out.group.empty() &&
                            (parts[next + 2] == "status" || parts[next + 2] == "finalize");
  if (parts[next] == "namespaces" && parts.size() >= next + 3 && !of_namespace) {
    out.ns = parts[next + 1];
    next += 2;
  }
  for (std::string* const slot : {&out.resource, &out.name, &out.subresource}) {
    if (next < parts.size()) *slot = parts[next++];
  }
  for (; next < parts.size(); ++next) out.rest.push_back(parts[next]);
  return out;
}

std::string_view status_reason(int http_status) {
  switch (http_status) {
    case 400: return "BadRequest";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "NotFound";
    case 405: return "MethodNotAllowed";
    case 406: return "NotAcceptable";
    case 409: return "Conflict";
    case 410: return "Expired";
    case 413: return "RequestEntityTooLarge";
    case 415: return "UnsupportedMediaType";
    case 422: return "Invalid";
    case 429: return "TooManyRequests";
    case 500: return "InternalError";
    case 503: return "ServiceUnavailable";
    case 504: return "Timeout";
    default: return "";
  }
}

}  // namespace lpp::testing
