// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lpp::k8s {

/// Standard alphabet with padding, on one line. Both functions are pure.
std::string base64_encode(std::string_view bytes);

/// Standard alphabet with padding; white space is skipped. Nothing when it is not base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace lpp::k8s
