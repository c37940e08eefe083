// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/http_head.h"
#include "base/result.h"

namespace lpp::agent {

/// The head of a request as agents make them: a POST with a body of a known length. As
/// parse_http_head().
Result<std::optional<HttpHead>> parse_head(std::string_view text);

/// An answer, with its head. `close`: no other follows.
std::string answer_text(int status, std::string_view body, bool close);

}  // namespace lpp::agent
