// SPDX-License-Identifier: Apache-2.0
#include "harness/yaml_objects.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace lpp::testing {
namespace {

using nlohmann::json;

TEST_CASE("documents become objects with kubectl's types") {
  const auto objects = parse_yaml_objects(R"(
kind: A
quoted: "5"
single: 'true'
number: 5
float: 0.5
hex: 0x10
octal: 010
is_on: on
yes: true
nothing:
tilde: ~
text: 1Gi
time: 12:30
block: |
  line
  next
list: [1, a, {b: c}]
---
# only a comment
---
kind: List
items: [{kind: B}, {kind: C}]
)",
                                          "f.yaml");
  REQUIRE(objects.ok());
  REQUIRE(objects->size() == 3);
  CHECK((*objects)[0] == json({{"kind", "A"},
                               {"quoted", "5"},
                               {"single", "true"},
                               {"number", 5},
                               {"float", 0.5},
                               {"hex", 16},
                               {"octal", 8},
                               {"is_on", true},
                               {"true", true},
                               {"nothing", nullptr},
                               {"tilde", nullptr},
                               {"text", "1Gi"},
                               {"time", "12:30"},
                               {"block", "line\nnext\n"},
                               {"list", {1, "a", {{"b", "c"}}}}}));
  CHECK((*objects)[1]["kind"] == "B");
  CHECK((*objects)[2]["kind"] == "C");
}

TEST_CASE("a bad document is an error that names file and line") {
  for (const char* yaml : {"a: 1\nb: [", "a: 1\na: 2", "- x\n"}) {
    CAPTURE(yaml);
    const auto objects = parse_yaml_objects(yaml, "f.yaml");
    REQUIRE_FALSE(objects.ok());
    CHECK(objects.error().code == ErrorCode::kInvalid);
    CHECK(objects.error().message.starts_with("f.yaml:"));
  }
  CHECK(read_yaml_objects("/nowhere/f.yaml").error().code == ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lpp::testing
