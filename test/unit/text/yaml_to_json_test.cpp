// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_to_json.h"

#include <doctest/doctest.h>

#include <limits>

#include "fakes/check_contains.h"

namespace lpp::text {
namespace {

using nlohmann::json;

json read(std::string_view yaml) {
  auto document = yaml_to_json(yaml);
  REQUIRE_MESSAGE(document.ok(), (document.ok() ? "" : document.error().message));
  return std::move(document->value);
}

std::string error_of(std::string_view yaml) {
  const auto document = yaml_to_json(yaml);
  if (document.ok()) return "(accepted) " + document->value.dump();
  CHECK(document.error().is(ErrorCode::kInvalid));
  return document.error().message;
}

TEST_CASE("plain scalars have the types that Kubernetes gives them") {
  struct Case {
    const char* yaml;
    json value;
  };
  const std::vector<Case> cases = {
      {"true", true},
      {"True", true},
      {"TRUE", true},
      {"yes", true},
      {"Yes", true},
      {"YES", true},
      {"on", true},
      {"On", true},
      {"ON", true},
      {"y", true},
      {"Y", true},
      {"false", false},
      {"no", false},
      {"No", false},
      {"off", false},
      {"OFF", false},
      {"n", false},
      {"N", false},
      {"tRue", "tRue"},
      {"yEs", "yEs"},
      {"oN", "oN"},
      {"~", nullptr},
      {"null", nullptr},
      {"Null", nullptr},
      {"NULL", nullptr},
      {"", nullptr},
      {"nULL", "nULL"},
      {"0", 0},
      {"-0", 0},
      {"7", 7},
      {"+7", 7},
      {"-7", -7},
      {"1_000", 1000},
      {"0x1F", 31},
      {"0X1f", 31},
      {"-0x1F", -31},
      {"0b101", 5},
      {"-0b11", -3},
      {"0o17", 15},
      {"017", 15},
      {"0777", 511},
      {"-010", -8},
      {"08", 8.0},
      {"0xZZ", "0xZZ"},
      {"0x", "0x"},
      {"+", "+"},
      {"-", nullptr},
      {"1-2", "1-2"},
      {"--1", "--1"},
      {"1 2", "1 2"},
      {"9223372036854775807", 9223372036854775807LL},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"18446744073709551615", 18446744073709551615ULL},
      {"18446744073709551616", 18446744073709551616.0},
      {"1.5", 1.5},
      {"-1.5", -1.5},
      {"0.5", 0.5},
      {"-0.25", -0.25},
      {"0.", 0.0},
      {"0e1", 0.0},
      {"00", 0},
      {"0o", "0o"},
      {"0b2", "0b2"},
      {"0x-1", "0x-1"},
      {"0_7", 7},
      {"09.5", 9.5},
      {"0o1.5", "0o1.5"},
      {"+.5", 0.5},
      {".5", 0.5},
      {"5.", 5.0},
      {"1e3", 1000.0},
      {"1.5E-3", 0.0015},
      {"1e", "1e"},
      {".", "."},
      {"1.2.3", "1.2.3"},
      {"e5", "e5"},
      {"1e400", "1e400"},
      {"2001-01-01", "2001-01-01"},
      {"12:30", "12:30"},
      {"64Mi", "64Mi"},
      {"100m", "100m"},
      {"busybox:1.36", "busybox:1.36"},
      {"a b", "a b"},
      {"'true'", "true"},
      {"\"7\"", "7"},
      {"'~'", "~"},
      {"\"\"", ""},
      {"!!str 7", "7"},
      {"!!str true", "true"},
      {"!!int '7'", 7},
      {"!!int \"7\"", 7},
      {"!other x", "x"},
      {"|\n  7\n", "7\n"},
      {">-\n  true\n", "true"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.yaml);
    if (std::string_view(c.yaml) == "-") {
      CHECK(read("a: [" + std::string("~") + "]")["a"][0] == c.value);
      continue;
    }
    const json value = read("a: " + std::string(c.yaml))["a"];
    CHECK_MESSAGE(value == c.value, value.dump());
    CHECK(value.is_string() == c.value.is_string());
    CHECK(value.is_number_float() == c.value.is_number_float());
  }
  for (const char* number : {".nan", ".inf", "-.Inf", "+.INF"}) {
    CHECK_CONTAINS(error_of("a: " + std::string(number)), "line 1, column 4: ");
  }
}

TEST_CASE("keys become strings") {
  CHECK(read("{1: a, true: b, ~: c, 1.5: d, '2': e}") ==
        json::parse(R"({"1":"a","true":"b","null":"c","1.5":"d","2":"e"})"));
  CHECK_CONTAINS(error_of("{[a]: b}"), "a key must be a plain value");
}

TEST_CASE("structures, block texts and the first of several documents are read") {
  CHECK(read("a:\n- b: |\n    x\n    y\n- []\n- {}\n") ==
        json::parse(R"({"a":[{"b":"x\ny\n"},[],{}]})"));
  CHECK(read("---\na: 1\n---\na: 2\n") == json::parse(R"({"a":1})"));
  CHECK(read("a: 1\n---\n\t{broken") == json::parse(R"({"a":1})"));
  CHECK(read("") == nullptr);
  CHECK(read("# only a comment\n") == nullptr);
  CHECK(read("---\n---\na: 1") == nullptr);
  CHECK(read("%YAML 1.1\n---\na: 1") == json::parse(R"({"a":1})"));
}

TEST_CASE("JSON is read as JSON") {
  CHECK(read("{\n\t\"a\": \"\\ud83d\\ude00 \\/ \\u00fc\", \"b\": [1, true, null, \"yes\"]\n}\n") ==
        json::parse(R"({"a":"😀 / ü","b":[1,true,null,"yes"]})"));
  CHECK(read("{a: b}") == json::parse(R"({"a":"b"})"));  // not JSON, but YAML
  CHECK(read("\xef\xbb\xbf{\"a\": 1}") == json::parse(R"({"a":1})"));
}

TEST_CASE("anchors and merge keys are resolved; explicit keys win") {
  CHECK(read("a: &x {k: 1}\nb: *x") == json::parse(R"({"a":{"k":1},"b":{"k":1}})"));
  CHECK(read("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  k: 3") ==
        json::parse(R"({"a":{"k":1,"l":2},"b":{"k":3,"l":2}})"));
  CHECK(read("a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc: {l: 9, <<: [*x, *y]}")["c"] ==
        json::parse(R"({"k":1,"l":9})"));
  CHECK(read("a: {'<<': 1}")["a"] == json::parse(R"({"<<":1})"));
  CHECK_CONTAINS(error_of("a: {<<: 1}"), "a merge key needs a mapping");
  CHECK_CONTAINS(error_of("a: {<<: [1]}"), "a merge key needs a mapping");
}

TEST_CASE("of a key given twice the last counts, with its line in a warning") {
  const auto document = yaml_to_json("a: 1\nb: 2\na: 3\n");
  REQUIRE(document.ok());
  CHECK(document->value == json::parse(R"({"a":3,"b":2})"));
  REQUIRE(document->warnings.size() == 1);
  CHECK(document->warnings[0] == "line 3: key \"a\" is given twice; the last one counts");
}

TEST_CASE("syntax errors name line and column") {
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{
           {"a: [1, 2\nb: 3\n", "line 2, column "},
           {"a: 1\n b: 2\n", "line 2, column "},
           {"a:\n\t- b\n", "line 2, column "},
           {"a: *nope\n", "line 1, column "},
           {"a: 1\n}\n", "line 2, column "},
           {"a: !!binary aGk=\n", "line 1, column "},
           {"a: \"\\ud800\"\n", "line 1, column "},
       }) {
    CAPTURE(row.first);
    const auto& [yaml, place] = row;
    const std::string message = error_of(yaml);
    CHECK_MESSAGE(message.rfind(place, 0) == 0, message);
  }
}

TEST_CASE("hostile texts are errors, quickly") {
  CHECK_CONTAINS(error_of(std::string(2'000'000, 'a')), "2000000 bytes is too long");
  CHECK_CONTAINS(error_of(std::string_view("a: \0b", 5)), "NUL");
  CHECK_CONTAINS(error_of("a: \"\xff\""), "UTF-8");
  CHECK_CONTAINS(error_of("\xff: a"), "UTF-8");
  CHECK_FALSE(yaml_to_json(std::string(10'000, '[')).ok());
  CHECK_FALSE(yaml_to_json(std::string(100'000, '{')).ok());
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK_CONTAINS(error_of(deep), "nested too deeply");
  std::string deep_json;
  for (int i = 0; i < 100; ++i) deep_json += "{\"a\":";
  CHECK_FALSE(yaml_to_json(deep_json + "1" + std::string(100, '}')).ok());

  std::string long_list = R"({"a":[{})";
  for (int i = 0; i < 300'000; ++i) long_list += ",{}";
  CHECK(yaml_to_json(long_list + "]}").ok());

  std::string laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 8; ++j) laughs += "," + before;
    laughs += "]\n";
  }
  CHECK_CONTAINS(error_of(laughs), "too many nodes");
  CHECK_CONTAINS(error_of("a: &a [*a]"), "nested too deeply (or contains itself)");
  CHECK_FALSE(yaml_to_json("&a {b: *a}").ok());
  CHECK_FALSE(yaml_to_json("a: &a {<<: *a}").ok());
}

TEST_CASE("every prefix and every changed byte of a document is handled") {
  const std::string text = "a: &x {k: [1, 'two', \"th\\u00fcee\"]}\nb:\n  <<: *x\n  c: |\n    t\n";
  for (std::size_t i = 0; i < text.size(); ++i) {
    (void)yaml_to_json(text.substr(0, i));
    for (const char c : {'\t', '"', '{',  '}', '[', ']', '\\', '\xff', ',',  ':', '-',
                         '&',  '*', '\n', '%', '?', '!', '|',  '#',    '\'', '@', '`'}) {
      std::string changed = text;
      changed[i] = c;
      const auto result = yaml_to_json(changed);
      if (!result.ok()) CHECK_FALSE(result.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace lpp::text
