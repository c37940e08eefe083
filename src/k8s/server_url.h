// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lpp::k8s {

/// The parts of a URL that matter here; query and fragment are dropped.
struct ServerUrl {
  std::string scheme{};     // lower case, "" when the text has none
  std::string user_info{};  // "user:password" as written, "" = none
  std::string host{};       // without brackets, also for IPv6
  std::optional<int> port{};
  std::string path{};  // "" or "/prefix" without a trailing slash
};

/// kInvalid says what is wrong with the text (which is not repeated: it may hold a password).
Result<ServerUrl> parse_url(std::string_view text);

}  // namespace lpp::k8s
