// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lpp::testing {

/// The configuration that a folder of examples/ brings: the ConfigMap in its config.yaml. Problems
/// end the test case.
class Example {
 public:
  /// examples/ itself.
  static std::string folder();

  explicit Example(const std::string& name);

  /// Puts a path of the test in the place of one in the example; it must be there.
  void put(const std::string& path, const std::string& instead);

  /// Gives the helper pod another image.
  void put_image(const std::string& image);
  /// Puts shell functions in front of both scripts.
  void put_tools(const std::string& functions);

  /// The configuration, for the daemon's file.
  nlohmann::json config() const;
  /// What else the ConfigMap holds: scripts and template of the helper pod.
  nlohmann::json other_data() const;

 private:
  nlohmann::json data_;
};

}  // namespace lpp::testing
