// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// The API server's rules for labels and annotation keys, checked before anything is sent.
/// Pure functions.
namespace lpp::k8s {

/// Key of a label or annotation: [prefix/]name, the prefix a DNS subdomain.
bool is_qualified_name(std::string_view text);

/// Empty, or at most 63 of [A-Za-z0-9._-] with alphanumeric ends.
bool is_label_value(std::string_view text);

}  // namespace lpp::k8s
