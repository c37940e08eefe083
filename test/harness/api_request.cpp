// SPDX-License-Identifier: Apache-2.0
#include "harness/api_request.h"

#include <utility>

#include "base/strings.h"
#include "harness/api_path.h"

namespace lpp::testing {

namespace {

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
    return equals == std::string_view::npos ? std::string()
                                            : percent_decode(part.substr(equals + 1), true);
  }
  return {};
}

void parse_target(ApiRequest& request) {
  ApiPathParts parts =
      split_api_path(std::string_view(request.target).substr(0, request.target.find('?')));
  if (parts.resource.empty()) {
    request.verb = to_lower(request.method);
    return;
  }
  request.group = std::move(parts.group);
  request.resource = std::move(parts.resource);
  request.ns = std::move(parts.ns);
  request.name = std::move(parts.name);
  request.subresource = std::move(parts.subresource);
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
