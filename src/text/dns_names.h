// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// RFC 1123 names as the API server checks them. Pure functions.
namespace lpp::text {

/// At most 63 of [a-z0-9-], alphanumeric at both ends.
bool is_dns_label(std::string_view text);

/// At most 253 bytes; non-empty labels of [a-z0-9-] between dots, alphanumeric at both ends.
bool is_dns_subdomain(std::string_view text);

}  // namespace lpp::text
