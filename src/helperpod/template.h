// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::helperpod {

/// helperPod.yaml after validation: a Pod as JSON. Immutable once published.
struct Template {
  nlohmann::json pod;
  std::vector<std::string> warnings{};  // accepted, but worth a log line
};

/// Parses and checks a helper pod template. Without `allow_unsafe` only fields on an allow-list are
/// accepted (rule B6.8); the messages name the field and the flag that would allow it.
/// `name` (file or ConfigMap) begins each message. Pure; never throws.
Result<Template> parse_template(std::string_view yaml, std::string_view name, bool allow_unsafe);

/// The same for a report: every message by itself, without a name in front.
struct TemplateInspection {
  std::vector<std::string> errors{};
  std::vector<std::string> warnings{};
};
TemplateInspection inspect_template(std::string_view yaml, bool allow_unsafe);

}  // namespace lpp::helperpod
