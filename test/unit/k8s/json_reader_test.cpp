#include "k8s/json_reader.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lpp::k8s {

using nlohmann::json;

namespace {

struct Read {
  json rest;
  std::vector<json> items;
};

Read read(const std::string& text) {
  Read result;
  result.rest = read_json_list(text, [&](const json& item) { result.items.push_back(item); });
  return result;
}

}  // namespace

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
    std::vector<json> items;
    const json rest = read_json_list(R"({"kind":"L","metadata":{"continue":"c"},"items":[)" +
                                         std::string(row.text) + "," + row.text + "]}",
                                     [&](const json& item) { items.push_back(item); }, kFields);
    CHECK(rest == json{{"metadata", {{"continue", "c"}}}, {"items", json::array()}});
    if (row.text[0] != '[') {
      CHECK(items == std::vector<json>{json::parse(row.left), json::parse(row.left)});
    }
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

TEST_CASE("read_json_list hands over each item and keeps the rest of the list") {
  const auto list = read(
      R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t"},"items":[)"
      R"({"metadata":{"name":"a","managedFields":[{}]},"spec":{"items":[1,2]}},{"metadata":{"name":"b"}},3,[4]]})");
  CHECK(list.rest ==
        json::parse(
            R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t"},"items":[]})"));
  REQUIRE(list.items.size() == 4);
  CHECK(list.items[0] == json::parse(R"({"metadata":{"name":"a"},"spec":{"items":[1,2]}})"));
  CHECK(list.items[1] == json::parse(R"({"metadata":{"name":"b"}})"));
  CHECK(list.items[2] == 3);
  CHECK(list.items[3] == json::parse("[4]"));
}

TEST_CASE("read_json_list leaves alone what is called items and is not the list") {
  CHECK(read(R"({"items":{"a":1}})").rest == json::parse(R"({"items":{"a":1}})"));
  CHECK(read(R"({"items":null})").rest == json::parse(R"({"items":null})"));
  const auto inner = read(R"({"metadata":{"items":[1]},"other":[2],"items":[]})");
  CHECK(inner.rest == json::parse(R"({"metadata":{"items":[1]},"other":[2],"items":[]})"));
  CHECK(inner.items.empty());
  CHECK(read(R"([{"items":[1]}])").items.empty());
}

TEST_CASE("read_json_list says that a list is cut short, whatever it delivered before") {
  const auto cut = read(R"({"items":[{"a":1},{"b":)");
  CHECK(cut.rest.is_discarded());
  CHECK(cut.items.size() == 1);
}

}  // namespace lpp::k8s
