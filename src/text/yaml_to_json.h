// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::text {

struct YamlDocument {
  nlohmann::json value;
  std::vector<std::string> warnings{};  // e.g. keys given twice
};

/// The first document of a YAML (or JSON) text as JSON, with scalars typed as Kubernetes types them
/// (YAML 1.1: yes, on, 0x10 and 010 are not strings unless quoted). Merge keys are resolved. Size,
/// depth and the number of nodes that aliases multiply to are bounded. Errors name the line. Pure;
/// never throws.
Result<YamlDocument> yaml_to_json(std::string_view text);

}  // namespace lpp::text
