// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "harness/api_path.h"
#include "harness/http_wire.h"

namespace lpp::testing {

namespace {

std::string head_of(int code, const HttpHeaders& headers) {
  const std::string_view reason = status_reason(code);
  std::string out = "HTTP/1.1 " + std::to_string(code) + " ";
  out.append(reason.empty() ? "OK" : reason).append("\r\n");
  for (const auto& [name, value] : headers) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  return out;
}

}  // namespace

std::optional<HttpRequest> HttpRequest::parse(const MessageHead& head) {
  const auto words = split(head.first_line, ' ');
  if (words.size() != 3 || !words[1].starts_with('/') || !words[2].starts_with("HTTP/1.")) {
    return std::nullopt;
  }
  const auto mark = words[1].find('?');
  HttpRequest request{.method = std::string(words[0]),
                      .target = std::string(words[1]),
                      .path = std::string(words[1].substr(0, mark))};
  for (const auto& [name, value] : head.headers) request.headers.emplace(to_lower(name), value);
  if (mark == std::string_view::npos) return request;
  for (const auto pair : split(words[1].substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    request.query.emplace_back(
        percent_decode(pair.substr(0, equals), true),
        percent_decode(pair.substr(std::min(equals + 1, pair.size())), true));
  }
  return request;
}

std::string HttpRequest::header(const std::string& lower_case_name) const {
  const auto it = headers.find(lower_case_name);
  return it == headers.end() ? std::string() : it->second;
}

std::string HttpRequest::param(std::string_view name) const {
  const auto it = std::ranges::find_if(query, [&](const auto& pair) { return pair.first == name; });
  return it == query.end() ? std::string() : it->second;
}

bool HttpRequest::has_param(std::string_view name) const {
  return std::ranges::any_of(query, [&](const auto& pair) { return pair.first == name; });
}

bool Exchange::respond(int code, std::string_view body, const HttpHeaders& headers) {
  std::string text = head_of(code, headers);
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  if (request().method != "HEAD") text += body;
  return send(text);
}

bool Exchange::begin_chunks(int code, const HttpHeaders& headers) {
  return send(head_of(code, headers) + "Transfer-Encoding: chunked\r\n\r\n");
}

bool Exchange::chunk(std::string_view data) {
  if (data.empty()) return true;  // else it would be the end
  return send(fmt::format("{:x}\r\n{}\r\n", data.size(), data));
}

}  // namespace lpp::testing
