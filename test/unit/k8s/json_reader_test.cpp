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
  result.rest = read_list(text, [&](const json& item) { result.items.push_back(item); });
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

TEST_CASE("what a pod is made of is skipped when nobody looks at it") {
  const std::string pod =
      R"({"metadata":{"name":"p","labels":{"volumes":"v"}},"spec":{"nodeName":"n","volumes":[{}],"containers":[{"volumes":1}],)"
      R"("tolerations":[],"initContainers":null},"status":{"phase":"Failed"}})";
  const auto expected = json::parse(
      R"({"metadata":{"name":"p","labels":{"volumes":"v"}},"spec":{"nodeName":"n","initContainers":null},"status":{"phase":"Failed"}})");
  CHECK(read_json(pod) == json::parse(pod));
  CHECK(read_json(pod, Detail::kNoContainers) == expected);
  CHECK(read_json(R"({"object":)" + pod + "}", Detail::kNoContainers)["object"] == expected);
}

TEST_CASE("read_list hands over each item and keeps the rest of the list") {
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

TEST_CASE("read_list leaves alone what is called items and is not the list") {
  CHECK(read(R"({"items":{"a":1}})").rest == json::parse(R"({"items":{"a":1}})"));
  CHECK(read(R"({"items":null})").rest == json::parse(R"({"items":null})"));
  const auto inner = read(R"({"metadata":{"items":[1]},"other":[2],"items":[]})");
  CHECK(inner.rest == json::parse(R"({"metadata":{"items":[1]},"other":[2],"items":[]})"));
  CHECK(inner.items.empty());
  CHECK(read(R"([{"items":[1]}])").items.empty());
}

TEST_CASE("read_list says that a list is cut short, whatever it delivered before") {
  const auto cut = read(R"({"items":[{"a":1},{"b":)");
  CHECK(cut.rest.is_discarded());
  CHECK(cut.items.size() == 1);
}

}  // namespace lpp::k8s
