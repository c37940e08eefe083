// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/devcluster/registry_test_support.h"

namespace lpp::devcluster {
namespace {

using test::at;
using test::bad_field;
using test::Json;

const std::string kNs = "default";

}  // namespace

TEST_CASE("an object without finalizers is gone at once") {
  Registry registry;
  const auto created = registry.create("configmaps", kNs, test::config_map("a"));
  const auto removed = registry.remove({"configmaps", kNs, "a"});
  CHECK(removed.code == 200);
  CHECK(at(removed, "kind") == "Status");
  CHECK(at(removed, "details.uid") == at(created, "metadata.uid"));
  CHECK(registry.find("configmaps", kNs, "a") == nullptr);
  CHECK(registry.remove({"configmaps", kNs, "a"}).code == 404);
}

TEST_CASE("finalizers hold an object back until the last one is removed") {
  Registry registry;
  REQUIRE(registry.create("persistentvolumes", "", test::volume("v")).ok());
  const ObjectRef ref{"persistentvolumes", "", "v"};
  REQUIRE(registry
              .patch(ref, PatchType::kStrategicMerge,
                     {{"metadata", {{"finalizers", {"example.com/mine"}}}}})
              .ok());
  const auto removed = registry.remove(ref);
  CHECK(removed.code == 200);
  CHECK(!at(removed, "metadata.deletionTimestamp").is_null());
  CHECK(at(removed, "metadata.deletionGracePeriodSeconds") == 0);
  CHECK(at(removed, "metadata.finalizers").size() == 2);

  SUBCASE("a second delete changes nothing") {
    const auto before = registry.resource_version();
    CHECK(registry.remove(ref).ok());
    CHECK(registry.resource_version() == before);
  }
  SUBCASE("new finalizers are refused") {
    Json next = *registry.find("persistentvolumes", "", "v");
    next["metadata"]["finalizers"].push_back("example.com/late");
    CHECK(bad_field(registry.update(ref, next)) == "metadata.finalizers");
  }
  SUBCASE("the deletion cannot be taken back") {
    Json next = *registry.find("persistentvolumes", "", "v");
    next["metadata"].erase("deletionTimestamp");
    CHECK(registry.update(ref, next).ok());
    CHECK(!at(registry.find("persistentvolumes", "", "v"), "metadata.deletionTimestamp").is_null());
  }
  SUBCASE("removing them one by one ends it") {
    const auto take_one = [&] {
      return registry.modify(ref, [](Json& object) {
        object["metadata"]["finalizers"].erase(0);
        return true;
      });
    };
    CHECK(take_one().ok());
    CHECK(registry.find("persistentvolumes", "", "v") != nullptr);
    CHECK(take_one().ok());
    CHECK(registry.find("persistentvolumes", "", "v") == nullptr);
  }
}

TEST_CASE("a pod on a node ends gracefully, any other pod at once") {
  Registry registry;
  REQUIRE(registry.create("pods", kNs, test::pod("a")).ok());
  const ObjectRef ref{"pods", kNs, "a"};
  SUBCASE("not scheduled") {
    CHECK(registry.remove(ref).ok());
    CHECK(registry.find("pods", kNs, "a") == nullptr);
  }
  SUBCASE("finished") {
    REQUIRE(registry.bind_pod(kNs, "a", "n1").ok());
    REQUIRE(registry
                .patch(ref, PatchType::kMerge, {{"status", {{"phase", "Succeeded"}}}},
                       {.subresource = "status"})
                .ok());
    CHECK(registry.remove(ref).ok());
    CHECK(registry.find("pods", kNs, "a") == nullptr);
  }
  SUBCASE("running") {
    REQUIRE(registry.bind_pod(kNs, "a", "n1").ok());
    CHECK(at(registry.remove(ref), "metadata.deletionGracePeriodSeconds") == 30);
    CHECK(registry.remove(ref).ok());  // only repeats the wish
    REQUIRE(registry.find("pods", kNs, "a") != nullptr);
    CHECK(at(registry.remove(ref, {.grace_period = std::chrono::seconds(5)}),
             "metadata.deletionGracePeriodSeconds") == 5);
    CHECK(at(registry.remove(ref, {.grace_period = std::chrono::seconds(20)}),
             "metadata.deletionGracePeriodSeconds") == 5);
    CHECK(registry.remove(ref, {.grace_period = std::chrono::seconds(0)}).ok());
    CHECK(registry.find("pods", kNs, "a") == nullptr);
  }
  SUBCASE("running with a finalizer") {
    REQUIRE(
        registry.patch(ref, PatchType::kMerge, {{"metadata", {{"finalizers", {"a.b/c"}}}}}).ok());
    REQUIRE(registry.bind_pod(kNs, "a", "n1").ok());
    CHECK(registry.remove(ref, {.grace_period = std::chrono::seconds(0)}).ok());
    REQUIRE(registry.find("pods", kNs, "a") != nullptr);
    CHECK(registry.patch(ref, PatchType::kMerge, {{"metadata", {{"finalizers", nullptr}}}}).ok());
    CHECK(registry.find("pods", kNs, "a") == nullptr);
  }
}

TEST_CASE("remove_collection removes what the selectors choose, in one namespace") {
  Registry registry;
  REQUIRE(registry.create("namespaces", "", {{"metadata", {{"name", "other"}}}}).ok());
  for (const char* name : {"a", "b", "c"}) {
    Json object = test::config_map(name);
    object["metadata"]["labels"] = {{"keep", name == std::string("b") ? "yes" : "no"}};
    REQUIRE(registry.create("configmaps", kNs, object).ok());
    REQUIRE(registry.create("configmaps", "other", object).ok());
  }
  const auto reply =
      registry.remove_collection("configmaps", {.ns = kNs, .label_selector = "keep!=yes"});
  CHECK(reply.ok());
  CHECK(reply.items.size() == 2);
  CHECK(test::names(registry.all("configmaps", kNs)) == std::vector<std::string>{"b"});
  CHECK(registry.all("configmaps", "other").size() == 3);
  CHECK(registry.remove_collection("configmaps", {.label_selector = "=="}).code == 400);
}

TEST_CASE("a namespace goes with everything in it, and waits for what is held back") {
  Registry registry;
  REQUIRE(registry.create("namespaces", "", {{"metadata", {{"name", "app"}}}}).ok());
  REQUIRE(registry.create("configmaps", "app", test::config_map("a")).ok());
  REQUIRE(registry.create("persistentvolumeclaims", "app", test::claim("c")).ok());
  const auto removed = registry.remove({"namespaces", "", "app"});
  CHECK(at(removed, "status.phase") == "Terminating");
  CHECK(registry.find("configmaps", "app", "a") == nullptr);
  REQUIRE(registry.find("namespaces", "", "app") != nullptr);

  const auto refused = registry.create("configmaps", "app", test::config_map("late"));
  CHECK(refused.code == 403);
  CHECK(at(refused, "details.causes")[0]["reason"] == "NamespaceTerminating");

  REQUIRE(registry
              .patch({"persistentvolumeclaims", "app", "c"}, PatchType::kMerge,
                     {{"metadata", {{"finalizers", nullptr}}}})
              .ok());
  CHECK(registry.find("namespaces", "", "app") == nullptr);
  CHECK(registry.create("configmaps", "app", test::config_map("late")).code == 404);
}

TEST_CASE("the standard namespaces cannot be deleted") {
  Registry registry;
  CHECK(registry.remove({"namespaces", "", "default"}).code == 403);
  CHECK(registry.remove({"namespaces", "", "kube-system"}).code == 403);
}

}  // namespace lpp::devcluster
