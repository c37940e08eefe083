// SPDX-License-Identifier: Apache-2.0
#include "k8s/value_tree.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using nlohmann::json;
using namespace lpp::k8s;

TEST_CASE("a tree gives the JSON back that it was made of") {
  const json value = json::parse(R"({
    "text": "a\"b", "empty": "", "none": null, "yes": true, "no": false, "number": -17,
    "large": 18446744073709551615, "fraction": 0.5, "list": [1, "two", [], {}, null],
    "object": {"inside": {"deep": ["x"]}}})");
  ValueTree tree;
  CHECK(to_json(tree.assign(value)) == value);
  CHECK(to_json(tree.root()) == value);
  for (const json& one : value) CHECK(to_json(tree.assign(one)) == one);
}

TEST_CASE("what is not there is null, however deep one looks") {
  ValueTree tree;
  CHECK(tree.root().is_null());
  CHECK(Value().find("a").find("b").is_null());
  const Value root = tree.assign({{"text", "t"}, {"list", {"x"}}, {"number", 1}});
  CHECK(root.find("absent").find("b").is_null());
  CHECK(root.find("text").find("t").is_null());
  CHECK(root.find("list").find("x").is_null());
  CHECK(root.text().empty());
  CHECK(root.find("number").text().empty());
  CHECK(root.find("number").spelling() == "1");
  Value().each([](Value) { FAIL("there is nothing in it"); });
  root.find("text").each([](Value) { FAIL("there is nothing in it"); });
}

TEST_CASE("fields and items come in their order") {
  ValueTree tree;
  const auto object = tree.add(0, {}, Value::Type::kObject);
  const auto list = tree.reopen(object, "list", Value::Type::kList);
  tree.add(list, {}, Value::Type::kText, "a");
  tree.add(object, "between", Value::Type::kNull);
  CHECK(tree.reopen(object, "list", Value::Type::kList) == list);
  tree.add(list, {}, Value::Type::kText, "b");
  std::vector<std::string> seen;
  tree.root().each([&](Value field) { seen.emplace_back(field.name()); });
  tree.root().find("list").each([&](Value item) { seen.emplace_back(item.text()); });
  CHECK(seen == std::vector<std::string>{"list", "between", "a", "b"});
}

TEST_CASE("of a field that is set twice the last one counts") {
  ValueTree tree;
  const auto root = tree.add(0, {}, Value::Type::kObject);
  const auto first = tree.put(root, "a", Value::Type::kObject);
  tree.add(first, "old", Value::Type::kText, "x");
  CHECK(tree.put(root, "a", Value::Type::kObject) == first);
  tree.add(first, "new", Value::Type::kText, "y");
  CHECK(to_json(tree.root()) == json{{"a", {{"new", "y"}}}});
  // As a map of protobuf has it.
  tree.add(first, "new", Value::Type::kText, "z");
  CHECK(tree.root().find("a").find("new").text() == "z");
  CHECK(to_json(tree.root()) == json{{"a", {{"new", "z"}}}});
}

TEST_CASE("a tree can be used again, after something large too") {
  ValueTree tree;
  json large = json::array();
  for (int i = 0; i < 5'000; ++i) large.push_back(std::to_string(i));
  CHECK(to_json(tree.assign(large)) == large);
  tree.clear();
  CHECK(tree.root().is_null());
  std::string text = "short";
  tree.add(0, {}, Value::Type::kText, tree.keep(text));
  text = "other";
  CHECK(tree.root().text() == "short");
}
