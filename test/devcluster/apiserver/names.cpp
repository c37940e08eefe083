// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/names.h"

#include <algorithm>

namespace lpp::devcluster {
namespace {

bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool alnum(char c) { return lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

bool is_dns_label(std::string_view name) {
  return !name.empty() && lower_alnum(name.front()) && lower_alnum(name.back()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return lower_alnum(c) || c == '-'; });
}

bool is_qualified_part(std::string_view name) {
  return !name.empty() && alnum(name.front()) && alnum(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

std::string dns_label_problem(std::string_view name) {
  if (name.size() > 63) return "must be no more than 63 characters";
  if (is_dns_label(name)) return {};
  return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
         "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
         "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
}

std::string dns_subdomain_problem(std::string_view name) {
  if (name.size() > 253) return "must be no more than 253 characters";
  bool good = !name.empty();
  std::size_t start = 0;
  while (good && start <= name.size()) {
    const auto dot = std::min(name.find('.', start), name.size());
    good = is_dns_label(name.substr(start, dot - start));
    start = dot + 1;
  }
  if (good) return {};
  return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
         "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
         "regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
}

std::string label_value_problem(std::string_view value) {
  if (value.size() > 63) return "must be no more than 63 characters";
  if (value.empty() || is_qualified_part(value)) return {};
  return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
         "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
         "'my_value',  or '12345', regex used for validation is "
         "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

std::string qualified_name_problem(std::string_view name) {
  const auto slash = name.find('/');
  auto part = name;
  if (slash != std::string_view::npos) {
    const auto prefix = name.substr(0, slash);
    part = name.substr(slash + 1);
    if (prefix.empty()) return "prefix part must be non-empty";
    if (const auto why = dns_subdomain_problem(prefix); !why.empty()) return "prefix part " + why;
  }
  if (part.empty()) return "name part must be non-empty";
  if (part.size() > 63) return "name part must be no more than 63 characters";
  if (is_qualified_part(part)) return {};
  return "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
         "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
         "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
}

std::string path_segment_problem(std::string_view name) {
  if (name == ".") return "may not be '.'";
  if (name == "..") return "may not be '..'";
  if (name.find('/') != std::string_view::npos) return "may not contain '/'";
  if (name.find('%') != std::string_view::npos) return "may not contain '%'";
  return {};
}

}  // namespace lpp::devcluster
