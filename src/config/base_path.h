// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lpp::config {

/// A path without empty, "." and ".." components, as Go's path.Clean makes it. "" becomes ".".
std::string clean_path(std::string_view path);

enum class PathVerdict { kGood, kRisky, kRefused };

struct PathCheck {
  PathVerdict verdict = PathVerdict::kGood;
  std::string reason{};  // what to say, e.g. "must be an absolute path"
  std::string clean{};
};

/// Whether volumes may be put below this folder. Refused: what could never work (relative, too
/// long) and what belongs to the system (/, /etc, /var/lib/kubelet ...). Risky: what is unlikely to
/// be meant. Pure.
PathCheck check_base_path(std::string_view path);

}  // namespace lpp::config
