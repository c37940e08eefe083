// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Words of the API in HTTP, for whatever reads or plays an API server. Pure functions.
namespace lpp::testing {

/// What a path names (after k8s.io/apiserver's RequestInfo), percent-decoded.
struct ApiPathParts {
  bool is_api = false;  ///< below /api or /apis
  std::string group{};  ///< "" = core
  std::string version{};
  std::string resource{};  ///< "" for a path that names none
  std::string ns{};
  std::string name{};
  std::string subresource{};
  std::vector<std::string> rest{};  ///< what comes behind it
};
ApiPathParts split_api_path(std::string_view path);

/// "%41+b" -> "A+b" or, with plus_is_space, "A b". Bad escapes are kept as they are.
std::string percent_decode(std::string_view text, bool plus_is_space);

/// The reason that a Status of this HTTP status usually has; "" for one that has none.
std::string_view status_reason(int http_status);

}  // namespace lpp::testing
