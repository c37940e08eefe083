// SPDX-License-Identifier: Apache-2.0
#include "example.h"

#include <doctest/doctest.h>

#include "harness/must.h"
#include "harness/yaml_objects.h"
#include "places/places.h"

namespace lpp::testing {

using nlohmann::json;

std::string Example::folder() { return repository("examples"); }

Example::Example(const std::string& name) {
  const auto objects = LPP_MUST(read_yaml_objects(folder() + "/" + name + "/config.yaml"));
  REQUIRE(objects.size() == 1);
  REQUIRE(objects[0]["metadata"]["name"] == "local-path-config");
  data_ = objects[0]["data"];
}

void Example::put(const std::string& path, const std::string& instead) {
  std::string text = data_["config.json"];
  const auto at = text.find("\"" + path + "\"");
  REQUIRE(at != std::string::npos);
  text.replace(at + 1, path.size(), instead);
  data_["config.json"] = text;
}

void Example::put_image(const std::string& image) {
  std::string text = data_["helperPod.yaml"];
  const auto at = text.find("image: ");
  REQUIRE(at != std::string::npos);
  const auto end = text.find('\n', at);
  data_["helperPod.yaml"] = text.replace(at, end - at, "image: " + image);
}

void Example::put_tools(const std::string& functions) {
  for (const char* script : {"setup", "teardown"}) {
    std::string text = data_[script];
    const auto end_of_first_line = text.find('\n');
    REQUIRE(end_of_first_line != std::string::npos);
    data_[script] = text.insert(end_of_first_line + 1, functions);
  }
}

json Example::config() const {
  return json::parse(data_["config.json"].get_ref<const std::string&>());
}

json Example::other_data() const {
  json other = data_;
  other.erase("config.json");
  return other;
}

}  // namespace lpp::testing
