// SPDX-License-Identifier: Apache-2.0
#include "k8s/json_reader.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lpp::k8s {

using nlohmann::json;

TEST_CASE("read_json gives what a JSON parser gives, without the fields of field managers") {
  for (const std::string text :
       {R"({})", R"([])", R"({"a":[1,-2,3.5,true,false,null,"x",[],{}],"b":{"c":{"d":[[1],[2]]}}})",
        R"("text")", R"(12)", R"({"items":[1,{"a":2}]})", R"({"a":1,"a":2})",
        R"({"metadata":{"name":"n","annotations":{"managedFields":"mine"}}})",
        R"({"metadata":"text","managedFields":{"a":[1]}})", R"(["managedFields",[1]])",
        R"({"text":"\"managedFields\":[1,2]","x\"managedFields":[1],"managedFields":3,"[":[]})",
        R"({"data":{"metadata":"managedFields"}})", R"(":[")"}) {
    CAPTURE(text);
    CHECK(read_json(text) == json::parse(text));
  }
  CHECK(
      read_json(R"({"metadata":{"managedFields":[{"a":{"metadata":{}}}],"name":"n"},"spec":1})") ==
      json::parse(R"({"metadata":{"name":"n"},"spec":1})"));
  CHECK(read_json(R"({"managedFields":[1]})") == json::parse("{}"));
  CHECK(read_json(R"({"a":1,"managedFields":[["]\\\"]",[]],{"managedFields":[2]}]})") ==
        json::parse(R"({"a":1})"));
  CHECK(read_json(
            R"({"a":[1],"managedFields":[1],"managedFields":[2],"b":[3],"managedFields":[]})") ==
        json::parse(R"({"a":[1],"b":[3]})"));
  // The object within a watch frame has metadata of its own.
  CHECK(read_json(R"({"type":"ADDED","object":{"metadata":{"managedFields":[1],"uid":"u"}}})") ==
        json::parse(R"({"type":"ADDED","object":{"metadata":{"uid":"u"}}})"));
}

TEST_CASE("read_json refuses what is not JSON, cut short, or nested without end") {
  for (const std::string text :
       {"", "{", "[1,", R"({"a":)", R"({"a":1}})", "nul", R"({"metadata":{"managedFields":[)",
        R"({"managedFields":["])", R"({"managedFields":["\)", R"("managedFields":[1])", R"(":[)",
        R"("managedFields":[])", "\x01", R"({"a":"\ud800"})", R"({"a":1e999})"}) {
    CAPTURE(text);
    CHECK(read_json(text).is_discarded());
  }
  CHECK(read_json(std::string(100'000, '[')).is_discarded());
  std::string deep = R"({"metadata":{"managedFields":)" + std::string(100'000, '[');
  CHECK(read_json(deep).is_discarded());
}

TEST_CASE("with a projection, what is not in it is left out") {
  static constexpr ReadField kMeta[] = {{"name"}, {"labels"}};
  static constexpr ReadField kStates[] = {{"state"}};
  static constexpr ReadField kStatus[] = {{"phase"}, {"states", 0, FieldType::kObject, kStates}};
  static constexpr ReadField kFields[] = {{"metadata", 0, FieldType::kObject, kMeta},
                                          {"status", 0, FieldType::kObject, kStatus}};
  struct Row {
    const char* text;
    const char* left;
  };
  for (
      const Row& row : std::initializer_list<Row>{
          {R"({"kind":"Pod","metadata":{"uid":"u","name":"n","labels":{"a":"b"}},"spec":{"c":[{}]}})",
           R"({"metadata":{"name":"n","labels":{"a":"b"}}})"},
          {R"({"status":{"states":[{"state":{"a":[1]},"x":1},{"y":2},null,3,[{"z":1}]],"b":"}]"}})",
           R"({"status":{"states":[{"state":{"a":[1]}},{},null,3,[{"z":1}]]}})"},
          {R"({"a":"\"},{","b":"\\","status":{"phase":"x"},"c":-1.5e3,"d":true})",
           R"({"status":{"phase":"x"}})"},
          {" {\n\"a\" : [ 1 , 2 ] ,\t\"metadata\" : { \"name\" : \"n\" , \"x\" : 1 } } \n",
           R"({"metadata":{"name":"n"}})"},
          {R"({"metadata":"text","status":null})", R"({"metadata":"text","status":null})"},
          {R"({"metadata":[{"name":"n","uid":"u"}]})", R"({"metadata":[{"name":"n"}]})"},
          {R"({"metadata":{"name":"1"},"metadata":{"name":"2"}})", R"({"metadata":{"name":"2"}})"},
          {R"({"st\u0061tus":{"phase":"x","y":1}})", R"({"status":{"phase":"x","y":1}})"},
          {R"({"metadata":{"managedFields":[1]}})", R"({"metadata":{}})"},
          {R"({})", R"({})"},
          {R"([])", R"([])"},
          {R"("text")", R"("text")"}}) {
    CAPTURE(row.text);
    CHECK(read_json(row.text, kFields) == json::parse(row.left));
    const std::string frame = R"({"type":"ADDED","more":1,"object":)" + std::string(row.text) + "}";
    CHECK(read_json_frame(frame, kFields) ==
          json{{"type", "ADDED"}, {"object", json::parse(row.left)}});
  }
}

TEST_CASE("with a projection, what is read must still be JSON") {
  static constexpr ReadField kFields[] = {{"name"}};
  for (const std::string text : {"",
                                 " ",
                                 "{",
                                 "}",
                                 R"({"name)",
                                 R"({"name")",
                                 R"({"name":)",
                                 R"({"name":"n")",
                                 R"({"name":"n"}})",
                                 R"({"name":"n",})",
                                 R"({"name":"n" "a":1})",
                                 R"({"name" "n"})",
                                 R"({"a":[})",
                                 R"({"a":[1,"name":2})",
                                 R"({"a":"})",
                                 R"({"name":nul})",
                                 R"([{"name":1},])",
                                 R"([{"name":1})",
                                 R"([{"name":1}}])",
                                 R"({name:1})",
                                 R"({"a":{"b":[}]}})"}) {
    CAPTURE(text);
    CHECK(read_json(text, kFields).is_discarded());
  }
  CHECK(
      read_json(R"({"a":)" + std::string(100'000, '[') + R"(,"name":1})", kFields).is_discarded());
  CHECK(read_json(R"({"name":)" + std::string(100'000, '[') + "}", kFields).is_discarded());
}

TEST_CASE("in JSON, what is beyond the bounds of a field is left out, and said to be") {
  static constexpr std::string_view kKeys[] = {"z/kept"};
  static constexpr ReadField kInside[] = {{"name"}};
  static constexpr ReadField kFields[] = {
      {"name"},
      {.name = "labels", .type = FieldType::kTextMap, .most = 20 + 2 * kEntryCost, .keys = kKeys},
      {.name = "texts", .type = FieldType::kTexts, .most = 8 + kEntryCost},
      {.name = "owners", .type = FieldType::kObjects, .inside = kInside, .most = 30 + kEntryCost},
      {.name = "one", .type = FieldType::kObject, .inside = kInside, .most = 20}};
  struct Row {
    const char* text;
    const char* left;
  };
  for (const Row& row : std::vector<Row>{
           {R"({"name":"n","labels":{"a":"1","b":"2"}})",
            R"({"name":"n","labels":{"a":"1","b":"2"}})"},
           {R"({"labels":{"a":"1","b":"a longer text","c":"3","z/kept":"4"},"name":"n"})",
            R"({"labels":{"a":"1","z/kept":"4"},"name":"n","~leftOut":true})"},
           {R"({"texts":["abc"]})", R"({"texts":["abc"]})"},
           {R"({"texts":["abc","def","g"]})", R"({"texts":["abc"],"~leftOut":true})"},
           {R"({"owners":[{"name":"a","uid":1},{"name":"bbbbbbbbb"}]})",
            R"({"owners":[{"name":"a"}],"~leftOut":true})"},
           {R"({"one":{"name":"a"}})", R"({"one":{"name":"a"}})"},
           {R"({"one":{"name":"aaaaaaaaaaaaaaaaaaa"}})", R"({"~leftOut":true})"},
           {R"({"one":{"uid":"aaaaaaaaaaaaaaaaaaa"},"name":"n"})",
            R"({"name":"n","~leftOut":true})"},
           {R"({"labels":null,"texts":null,"name":"n"})",
            R"({"labels":null,"texts":null,"name":"n"})"},
           {R"({"~leftOut":true,"name":"n"})", R"({"name":"n"})"}}) {
    CAPTURE(row.text);
    CHECK(read_json(row.text, kFields) == json::parse(row.left));
  }
  CHECK(read_json(R"({"labels":{"z/kept":")" + std::string(300, 'x') + "\"}}", kFields) ==
        json{{"labels", json::object()}, {kLeftOut, true}});
  for (const std::string text :
       {R"({"labels":{"a":"1")", R"({"labels":{"a":"1",}})", R"({"labels":{"a" "1"}})",
        R"({"labels":{a:1}})", R"({"texts":["abc","def")", R"({"texts":["abc",]})"}) {
    CAPTURE(text);
    CHECK(read_json(text, kFields).is_discarded());
  }
}

}  // namespace lpp::k8s
