// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lpp::testing {

/// One HTTP request as the API server understands it (after k8s.io/apiserver's RequestInfo): the
/// target "/api/v1/namespaces/a/pods/p/log?x=y" taken apart. A plain value.
struct ApiRequest {
  std::uint64_t sequence = 0;  // 1, 2, … in the order of arrival
  std::string method{};
  std::string target{};  // path and query as sent
  std::string body{};
  std::string content_type{};
  std::string accept{};

  /// get, list, watch, create, update, patch, delete, deletecollection; for a path that is not of
  /// the API: the method in lower case, and `resource` is empty.
  std::string verb{};
  std::string group{};  // "" = core
  std::string resource{};
  std::string ns{};
  std::string name{};  // percent-decoded
  std::string subresource{};

  bool is_watch() const { return verb == "watch"; }
  /// A request that may change something.
  bool is_write() const { return method != "GET" && method != "HEAD"; }
  /// True for this verb and resource, the subresource written as "pods/status"; "" matches any.
  bool is(std::string_view wanted_verb, std::string_view wanted_resource) const;
  /// "create pods" or "patch pods/status".
  std::string kind() const;
  /// "create pods a/p" and so on: for messages.
  std::string to_string() const;
};

/// Fills verb, group, resource, ns, name and subresource from method and target.
void parse_target(ApiRequest& request);

/// Value of a query parameter, decoded; "" if absent.
std::string query_value(std::string_view target, std::string_view key);

}  // namespace lpp::testing
