// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "devcluster/apiserver/http_server.h"

/// Text of HTTP/1.1 messages. Pure functions.
namespace lpp::devcluster {

/// Request line and headers, without the empty line at the end. Empty for anything malformed.
std::optional<HttpRequest> parse_request_head(std::string_view head);

std::string response_head(int code, const HttpHeaders& headers);

}  // namespace lpp::devcluster
