// SPDX-License-Identifier: Apache-2.0
#include "k8s/json_writer.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

using lpp::k8s::write_json;
using nlohmann::json;

namespace {

std::string of_the_library(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

TEST_CASE("JSON is written as the library writes it") {
  const json value = {{"text", "a \"b\" \\ /"},
                      {"\"\\", "\\\"\\"},
                      {"control", "\n\t\x01\x7f"},
                      {"zero", std::string("a\0b", 3)},
                      {"utf-8", "gr\xc3\xbcn"},
                      {"bad", "\xff\"\xc3"},
                      {"b\xc3", "\xf0\x9f"},
                      {"", ""},
                      {"number", -17},
                      {"large", std::numeric_limits<std::uint64_t>::max()},
                      {"fraction", 0.5},
                      {"flags", {true, false, nullptr}},
                      {"none", {json::array(), json::object()}},
                      {"deep", {{{"a", {1, {{"b", {"c"}}}}}}}}};
  CHECK(write_json(value) == of_the_library(value));
  for (const json& one : value) CHECK(write_json(one) == of_the_library(one));
  CHECK(write_json(json()) == "null");
}

TEST_CASE("any bytes are written as the library writes them") {
  std::mt19937 random(11);
  const std::string_view some = "ab\"\\\n\x7f\xc3\xbc\xff";
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    for (auto left = random() % 12; left > 0; --left) text += some[random() % some.size()];
    const json value = {{text, text}};
    REQUIRE(write_json(value) == of_the_library(value));
  }
}
