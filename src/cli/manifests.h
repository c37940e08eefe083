// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::cli {

/// One object of a manifest, and where it stands: "deploy.yaml:12".
struct ManifestObject {
  nlohmann::json object{};
  std::string place{};
  std::vector<std::string> warnings{};  // of the reader, e.g. keys given twice
};

/// Every object of a file of YAML or JSON documents; the items of a List one by one. Empty
/// documents are left out. Errors name file and line. Pure.
Result<std::vector<ManifestObject>> read_manifest(std::string_view text, const std::string& name);

/// "ConfigMap local-path-storage/local-path-config".
std::string kind_and_name(const nlohmann::json& object);

}  // namespace lpp::cli
