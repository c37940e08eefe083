// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "devcluster/apiserver/patch.h"
#include "unit/devcluster/registry_test_support.h"

namespace lpp::devcluster {
namespace {

using test::at;
using test::bad_field;
using test::Json;

Json merged(const char* current, const char* patch) {
  return strategic_merge(Json::parse(current), Json::parse(patch));
}

}  // namespace

TEST_CASE("a strategic patch merges lists of objects by their key") {
  CHECK(merged(R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]})",
               R"({"containers":[{"name":"b","image":"2"},{"name":"c","image":"3"}]})") ==
        Json::parse(R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"},
                       {"name":"c","image":"3"}]})"));
  CHECK(merged(R"({"volumeMounts":[{"mountPath":"/a","name":"x"}]})",
               R"({"volumeMounts":[{"mountPath":"/a","name":"y"}]})") ==
        Json::parse(R"({"volumeMounts":[{"mountPath":"/a","name":"y"}]})"));
  CHECK(merged(R"({"conditions":[{"type":"Ready","status":"False"},{"type":"X","status":"True"}]})",
               R"({"conditions":[{"type":"Ready","status":"True"}]})")["conditions"]
            .size() == 2);
  CHECK(merged(R"({"ownerReferences":[{"uid":"1"}]})",
               R"({"ownerReferences":[{"uid":"2"}]})")["ownerReferences"]
            .size() == 2);
  CHECK(merged(R"({"ports":[{"containerPort":80,"name":"a"}]})",
               R"({"ports":[{"containerPort":80,"name":"b"}]})")["ports"]
            .size() == 1);
}

TEST_CASE("a strategic patch replaces lists without a key as a whole") {
  CHECK(merged(R"({"tolerations":[{"key":"a"},{"key":"b"}]})",
               R"({"tolerations":[{"key":"c"}]})")["tolerations"]
            .size() == 1);
  CHECK(merged(R"({"args":["a","b"]})", R"({"args":["c"]})")["args"] == Json::array({"c"}));
}

TEST_CASE("finalizers are merged as a set and deleted by directive") {
  CHECK(merged(R"({"finalizers":["a","b"]})", R"({"finalizers":["b","c"]})")["finalizers"] ==
        Json::array({"a", "b", "c"}));
  CHECK(merged(R"({"finalizers":["a","b"]})", R"({"$deleteFromPrimitiveList/finalizers":["a"]})") ==
        Json::parse(R"({"finalizers":["b"]})"));
}

TEST_CASE("directives of a strategic patch") {
  CHECK(merged(R"({"containers":[{"name":"a"},{"name":"b"}]})",
               R"({"containers":[{"name":"a","$patch":"delete"}]})") ==
        Json::parse(R"({"containers":[{"name":"b"}]})"));
  CHECK(merged(R"({"containers":[{"name":"a"},{"name":"b"}]})",
               R"({"containers":[{"$patch":"replace"},{"name":"c"}]})") ==
        Json::parse(R"({"containers":[{"name":"c"}]})"));
  CHECK(merged(R"({"m":{"a":1,"b":2}})", R"({"m":{"$patch":"replace","c":3}})") ==
        Json::parse(R"({"m":{"c":3}})"));
  CHECK(merged(R"({"m":{"a":1},"n":1})", R"({"m":{"$patch":"delete"}})") ==
        Json::parse(R"({"n":1})"));
  CHECK(merged(R"({"strategy":{"type":"A","rolling":{}}})",
               R"({"strategy":{"$retainKeys":["type"],"type":"B"}})") ==
        Json::parse(R"({"strategy":{"type":"B"}})"));
  CHECK(merged(R"({"env":[{"name":"a","value":"1"}]})",
               R"({"$setElementOrder/env":[{"name":"b"},{"name":"a"}],
                   "env":[{"name":"b","value":"2"}]})")["env"] ==
        Json::parse(R"([{"name":"b","value":"2"},{"name":"a","value":"1"}])"));
  CHECK(merged(R"({"a":{"b":1,"c":2}})", R"({"a":{"b":null}})") == Json::parse(R"({"a":{"c":2}})"));
}

TEST_CASE("no directive survives where nothing was before") {
  CHECK(merged(R"({})", R"({"m":{"$patch":"replace","a":null,"b":1},
                            "containers":[{"name":"x","$patch":"delete"},{"name":"y"}]})") ==
        Json::parse(R"({"m":{"b":1},"containers":[{"name":"y"}]})"));
}

TEST_CASE("patches through the registry") {
  Registry registry;
  REQUIRE(registry.create("persistentvolumeclaims", "default", test::claim("c")).ok());
  const ObjectRef ref{"persistentvolumeclaims", "default", "c"};

  SUBCASE("a merge patch replaces lists, so finalizers vanish") {
    REQUIRE(
        registry.patch(ref, PatchType::kMerge, {{"metadata", {{"finalizers", {"a.b/c"}}}}}).ok());
    CHECK(at(registry.find("persistentvolumeclaims", "default", "c"), "metadata.finalizers") ==
          Json::array({"a.b/c"}));
  }
  SUBCASE("a strategic patch adds to them") {
    REQUIRE(
        registry.patch(ref, PatchType::kStrategicMerge, {{"metadata", {{"finalizers", {"a.b/c"}}}}})
            .ok());
    CHECK(
        at(registry.find("persistentvolumeclaims", "default", "c"), "metadata.finalizers").size() ==
        2);
  }
  SUBCASE("a JSON patch applies, and a failed test is a 422") {
    CHECK(registry
              .patch(ref, PatchType::kJson,
                     Json::parse(R"([{"op":"test","path":"/spec/volumeMode","value":"Filesystem"},
                                         {"op":"add","path":"/metadata/labels","value":{"a":"b"}}])"))
              .ok());
    CHECK(registry
              .patch(ref, PatchType::kJson,
                     Json::parse(R"([{"op":"test","path":"/spec/volumeMode","value":"Block"}])"))
              .code == 422);
    CHECK(
        registry.patch(ref, PatchType::kJson, Json::parse(R"([{"op":"remove","path":"/no/such"}])"))
            .code == 422);
    CHECK(registry.patch(ref, PatchType::kJson, Json::parse(R"([{"op":"jump"}])")).code == 400);
    CHECK(registry.patch(ref, PatchType::kJson, Json::object()).code == 400);
    CHECK(
        registry
            .patch(ref, PatchType::kJson, Json::parse(R"([{"op":"replace","path":"","value":5}])"))
            .code == 400);
  }
  SUBCASE("a resourceVersion in the patch is an optimistic lock") {
    const auto version =
        at(registry.find("persistentvolumeclaims", "default", "c"), "metadata.resourceVersion");
    const auto change = [&](const std::string& value) {
      return registry.patch(
          ref, PatchType::kMerge,
          {{"metadata", {{"resourceVersion", version}, {"annotations", {{"a", value}}}}}});
    };
    CHECK(change("1").ok());
    CHECK(change("2").reason() == "Conflict");
  }
  SUBCASE("what comes out is validated and may not be renamed") {
    CHECK(bad_field(registry.patch(ref, PatchType::kMerge,
                                   {{"metadata", {{"labels", {{"a", "-bad-"}}}}}})) ==
          "metadata.labels");
    CHECK(registry.patch(ref, PatchType::kMerge, {{"metadata", {{"name", "d"}}}}).code == 400);
    CHECK(registry.patch(ref, PatchType::kMerge, {{"metadata", "text"}}).code == 400);
    CHECK(registry.patch(ref, PatchType::kMerge, 5).code == 400);
    CHECK(registry.patch({"pods", "default", "x"}, PatchType::kMerge, Json::object()).code == 404);
  }
  SUBCASE("apply creates what is missing and merges into what is there") {
    const ObjectRef other{"configmaps", "default", "m"};
    CHECK(registry.patch(other, PatchType::kApply, {{"data", {{"a", "1"}}}}).code == 201);
    CHECK(registry.patch(other, PatchType::kApply, {{"data", {{"b", "2"}}}}).code == 200);
    CHECK(at(registry.find("configmaps", "default", "m"), "data").size() == 2);
    CHECK(registry.patch({"configmaps", "nowhere", "m"}, PatchType::kApply, Json::object()).code ==
          404);
  }
}

}  // namespace lpp::devcluster
