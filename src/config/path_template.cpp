// SPDX-License-Identifier: Apache-2.0
#include "config/path_template.h"

#include <algorithm>

#include "config/pattern_eval.h"
#include "config/pattern_failure.h"
#include "config/pattern_parser.h"

namespace lpp::config {

namespace {

/// A pattern is a line or two; what is longer is a mistake.
constexpr std::size_t kMaxPattern = 64UL * 1024;

Error error_at(const std::string& name, std::string_view text, const pattern::Failure& failure) {
  const std::string_view before = text.substr(0, std::min(failure.position, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return invalid(name + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " +
                 failure.message);
}

}  // namespace

Result<PathTemplate> PathTemplate::parse(std::string_view text, std::string_view name) {
  const std::string label(name);
  if (text.size() > kMaxPattern) return invalid(label + ": the pattern is longer than 64 KiB");
  try {
    return PathTemplate(
        std::make_shared<const pattern::Tree>(pattern::parse(label, std::string(text))));
  } catch (const pattern::Failure& failure) {
    return error_at(label, text, failure);
  }
}

Result<std::string> PathTemplate::render(std::string_view pv_name,
                                         const k8s::ObjectMeta& claim) const {
  try {
    return pattern::evaluate(*tree_, pv_name, claim);
  } catch (const pattern::Failure& failure) {
    return error_at(tree_->name, tree_->text, failure);
  }
}

}  // namespace lpp::config
