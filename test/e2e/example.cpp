#include "example.h"

#include <doctest/doctest.h>

#include "harness/must.h"
#include "harness/yaml_objects.h"

namespace lpp::testing {

using nlohmann::json;

std::string Example::folder() { return std::string(LPP_SOURCE_DIR) + "/examples"; }

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

json Example::config() const {
  return json::parse(data_["config.json"].get_ref<const std::string&>());
}

json Example::other_data() const {
  json other = data_;
  other.erase("config.json");
  return other;
}

}  // namespace lpp::testing
