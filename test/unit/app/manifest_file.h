// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "places/places.h"

namespace lpp::testing {

/// deploy/local-path-storage.yaml of the source tree.
class ManifestFile {
 public:
  ManifestFile() { objects_ = YAML::LoadAll(repository_text("deploy/local-path-storage.yaml")); }

  const std::vector<YAML::Node>& objects() const { return objects_; }

  YAML::Node object(const std::string& kind) const {
    for (const YAML::Node& object : objects_) {
      if (object["kind"].as<std::string>() == kind) return object;
    }
    throw std::runtime_error("the manifest has no " + kind);
  }

  /// A text of the ConfigMap.
  std::string data(const std::string& key) const {
    return object("ConfigMap")["data"][key].as<std::string>();
  }

 private:
  std::vector<YAML::Node> objects_;
};

}  // namespace lpp::testing
