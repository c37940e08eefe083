// SPDX-License-Identifier: Apache-2.0
#include "harness/api_request.h"

#include <vector>

#include "base/strings.h"

namespace lpp::testing {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        plain += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    plain += text[i] == '+' ? ' ' : text[i];
  }
  return plain;
}

std::string verb_of(const ApiRequest& request) {
  const std::string watch = query_value(request.target, "watch");
  if (request.method == "GET" || request.method == "HEAD") {
    if (watch == "true" || watch == "1") return "watch";
    return request.name.empty() ? "list" : "get";
  }
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "patch";
  if (request.method == "DELETE") return request.name.empty() ? "deletecollection" : "delete";
  return to_lower(request.method);
}

}  // namespace

std::string query_value(std::string_view target, std::string_view key) {
  const auto question = target.find('?');
  if (question == std::string_view::npos) return {};
  for (const auto part : split(target.substr(question + 1), '&')) {
    const auto equals = part.find('=');
    if (part.substr(0, equals) != key) continue;
    return equals == std::string_view::npos ? std::string() : decode(part.substr(equals + 1));
  }
  return {};
}

void parse_target(ApiRequest& request) {
  const std::string_view path =
      std::string_view(request.target)
          .substr(0, std::min(request.target.find('?'), request.target.size()));
  std::vector<std::string_view> parts;
  for (const auto part : split(path, '/')) {
    if (!part.empty()) parts.push_back(part);
  }
  std::size_t next = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    next = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    request.group = parts[1];
    next = 3;
  } else {
    request.verb = to_lower(request.method);
    return;
  }
  // "namespaces/a/status" is a subresource of the namespace itself; nothing here needs it.
  if (parts[next] == "namespaces" && parts.size() >= next + 3) {
    request.ns = decode(parts[next + 1]);
    next += 2;
  }
  request.resource = parts[next];
  if (parts.size() > next + 1) request.name = decode(parts[next + 1]);
  if (parts.size() > next + 2) request.subresource = parts[next + 2];
  request.verb = verb_of(request);
}

bool ApiRequest::is(std::string_view wanted_verb, std::string_view wanted_resource) const {
  if (!wanted_verb.empty() && verb != wanted_verb) return false;
  if (wanted_resource.empty()) return true;
  const auto slash = wanted_resource.find('/');
  if (resource != wanted_resource.substr(0, slash)) return false;
  return slash == std::string_view::npos ? subresource.empty()
                                         : subresource == wanted_resource.substr(slash + 1);
}

std::string ApiRequest::kind() const {
  if (resource.empty()) return method;
  return verb + " " + resource + (subresource.empty() ? "" : "/" + subresource);
}

std::string ApiRequest::to_string() const {
  if (resource.empty()) return method + " " + target;
  if (ns.empty() && name.empty()) return kind();
  return kind() + " " + (ns.empty() ? "" : ns + "/") + name;
}

}  // namespace lpp::testing
