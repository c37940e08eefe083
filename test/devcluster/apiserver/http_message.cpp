// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/http_message.h"

#include "base/strings.h"
#include "harness/api_path.h"

namespace lpp::devcluster {
namespace {

std::string_view reason_phrase(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

}  // namespace

std::optional<HttpRequest> parse_request_head(std::string_view head) {
  HttpRequest request;
  bool first = true;
  for (auto line : split(head, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (first) {
      first = false;
      const auto parts = split(line, ' ');
      if (parts.size() != 3 || !parts[2].starts_with("HTTP/1.") || !parts[1].starts_with('/')) {
        return std::nullopt;
      }
      request.method = std::string(parts[0]);
      const auto mark = parts[1].find('?');
      request.path = std::string(parts[1].substr(0, mark));
      if (mark == std::string_view::npos) continue;
      for (const auto pair : split(parts[1].substr(mark + 1), '&')) {
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        request.query.emplace_back(testing::percent_decode(pair.substr(0, equals), true),
                                   equals == std::string_view::npos
                                       ? ""
                                       : testing::percent_decode(pair.substr(equals + 1), true));
      }
      continue;
    }
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    request.headers[to_lower(line.substr(0, colon))] = std::string(trim(line.substr(colon + 1)));
  }
  return request;
}

std::string response_head(int code, const HttpHeaders& headers) {
  std::string out = "HTTP/1.1 " + std::to_string(code) + " ";
  out += reason_phrase(code);
  out += "\r\n";
  for (const auto& [name, value] : headers) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  return out;
}

std::string HttpRequest::header(const std::string& lower_case_name) const {
  const auto it = headers.find(lower_case_name);
  return it == headers.end() ? std::string() : it->second;
}

std::string HttpRequest::param(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

bool HttpRequest::has_param(std::string_view name) const {
  for (const auto& pair : query) {
    if (pair.first == name) return true;
  }
  return false;
}

}  // namespace lpp::devcluster
