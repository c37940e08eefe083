// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// Rules for names, labels and annotations. Each function gives "" for a good value, otherwise the
/// explanation that the API server puts into the field's error. Stateless.
namespace lpp::devcluster {

std::string dns_label_problem(std::string_view name);
std::string dns_subdomain_problem(std::string_view name);
std::string label_value_problem(std::string_view value);
/// "name" or "prefix/name", as for label and annotation keys and finalizers.
std::string qualified_name_problem(std::string_view name);
/// Names that are path segments (RBAC).
std::string path_segment_problem(std::string_view name);

}  // namespace lpp::devcluster
