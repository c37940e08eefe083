// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/devcluster/registry_test_support.h"

namespace lpp::devcluster::registry_write {
namespace {

using test::at;
using test::bad_field;
using test::Json;

const std::string kNs = "default";

}  // namespace

TEST_CASE("create fills in what the server owns") {
  Registry registry;
  Json sent = test::pod("web");
  sent["metadata"]["uid"] = "mine";
  sent["status"] = {{"phase", "Running"}};
  const auto reply = registry.create("pods", kNs, sent);
  REQUIRE(reply.code == 201);
  CHECK(at(reply, "apiVersion") == "v1");
  CHECK(at(reply, "kind") == "Pod");
  CHECK(at(reply, "metadata.namespace") == kNs);
  CHECK(at(reply, "metadata.uid") != "mine");
  CHECK(at(reply, "metadata.uid").get<std::string>().size() == 36);
  CHECK(at(reply, "metadata.generation") == 1);
  CHECK(at(reply, "metadata.creationTimestamp").get<std::string>().size() == 20);
  CHECK(at(reply, "metadata.resourceVersion") == std::to_string(registry.resource_version()));
  CHECK(at(reply, "status.phase") == "Pending");
  CHECK(at(reply, "status.qosClass") == "BestEffort");
  CHECK(at(reply, "spec.restartPolicy") == "Always");
  CHECK(at(reply, "spec.terminationGracePeriodSeconds") == 30);
  CHECK(*registry.find("pods", kNs, "web") == *reply.body);
  CHECK(at(registry.create("pods", kNs, test::pod("web")), "details.name") == "web");
}

TEST_CASE("create is refused with the reason that a real server gives") {
  Registry registry;
  SUBCASE("unknown namespace") {
    const auto reply = registry.create("pods", "nowhere", test::pod("a"));
    CHECK(reply.code == 404);
    CHECK(reply.message() == "namespaces \"nowhere\" not found");
  }
  SUBCASE("unknown resource") {
    CHECK(registry.create("gadgets", kNs, test::pod("a")).code == 404);
  }
  SUBCASE("another namespace inside") {
    Json object = test::pod("a");
    object["metadata"]["namespace"] = "other";
    CHECK(registry.create("pods", kNs, object).code == 400);
  }
  SUBCASE("another kind inside") {
    Json object = test::pod("a");
    object["kind"] = "ConfigMap";
    CHECK(registry.create("pods", kNs, object).code == 400);
  }
  SUBCASE("a resourceVersion") {
    Json object = test::config_map("a");
    object["metadata"]["resourceVersion"] = "5";
    CHECK(registry.create("configmaps", kNs, object).code == 500);
  }
  SUBCASE("no object, or members of the wrong type") {
    CHECK(registry.create("pods", kNs, Json::array()).code == 400);
    CHECK(registry.create("pods", kNs, {{"metadata", 5}}).code == 400);
    CHECK(registry.create("pods", kNs, {{"metadata", {{"labels", {{"a", 1}}}}}}).code == 400);
    CHECK(registry.create("pods", kNs, {{"spec", {{"containers", "x"}}}}).code == 400);
    CHECK(registry.create("pods", kNs, {{"spec", {{"containers", {1}}}}}).code == 400);
  }
  SUBCASE("no name") {
    CHECK(bad_field(registry.create("configmaps", kNs, Json::object())) == "metadata.name");
  }
  SUBCASE("a namespace that enforces Pod Security") {
    Json object = {
        {"metadata",
         {{"name", "strict"}, {"labels", {{"pod-security.kubernetes.io/enforce", "baseline"}}}}}};
    REQUIRE(registry.create("namespaces", "", object).ok());
    Json bad = test::pod("a");
    bad["spec"]["volumes"] = {{{"name", "v"}, {"hostPath", {{"path", "/x"}}}}};
    const auto reply = registry.create("pods", "strict", bad);
    CHECK(reply.code == 403);
    CHECK(reply.message().find("violates PodSecurity \"baseline:latest\": hostPath volumes") !=
          std::string::npos);
    CHECK(registry.create("pods", "strict", test::pod("a")).ok());
    CHECK(registry.create("pods", kNs, bad).ok());
  }
  CHECK(registry.all("configmaps").empty());
}

TEST_CASE("claims and volumes get their protection finalizers and first phase") {
  Registry registry;
  const auto claim = registry.create("persistentvolumeclaims", kNs, test::claim("c"));
  CHECK(at(claim, "metadata.finalizers") == Json::array({"kubernetes.io/pvc-protection"}));
  CHECK(at(claim, "status.phase") == "Pending");
  CHECK(at(claim, "spec.volumeMode") == "Filesystem");
  const auto volume = registry.create("persistentvolumes", "", test::volume("v"));
  CHECK(at(volume, "metadata.finalizers") == Json::array({"kubernetes.io/pv-protection"}));
  CHECK(at(volume, "status.phase") == "Pending");
  CHECK(at(volume, "spec.persistentVolumeReclaimPolicy") == "Retain");
}

TEST_CASE("a claim without a class gets the default class, an empty class stays") {
  Registry registry;
  Json object = test::storage_class("fast");
  object["metadata"]["annotations"] = {{"storageclass.kubernetes.io/is-default-class", "true"}};
  const auto fast = registry.create("storageclasses", "", object);
  CHECK(at(fast, "reclaimPolicy") == "Delete");
  CHECK(at(fast, "volumeBindingMode") == "Immediate");
  Json claim = test::claim("c");
  claim["spec"].erase("storageClassName");
  CHECK(at(registry.create("persistentvolumeclaims", kNs, claim), "spec.storageClassName") ==
        "fast");
  claim["metadata"]["name"] = "d";
  claim["spec"]["storageClassName"] = "";
  CHECK(at(registry.create("persistentvolumeclaims", kNs, claim), "spec.storageClassName") == "");
}

TEST_CASE("update refuses another name, a missing object and a missing required version") {
  Registry registry;
  CHECK(registry.update({"configmaps", kNs, "a"}, test::config_map("a")).code == 404);
  REQUIRE(registry.create("configmaps", kNs, test::config_map("a")).ok());
  CHECK(registry.update({"configmaps", kNs, "a"}, test::config_map("b")).code == 400);
  REQUIRE(registry.create("leases", kNs, {{"metadata", {{"name", "l"}}}}).ok());
  CHECK(bad_field(registry.update({"leases", kNs, "l"}, {{"metadata", {{"name", "l"}}}})) ==
        "metadata.resourceVersion");
}

TEST_CASE("status is written through the subresource only, metadata through both") {
  Registry registry;
  REQUIRE(registry.create("persistentvolumeclaims", kNs, test::claim("c")).ok());
  const ObjectRef ref{"persistentvolumeclaims", kNs, "c"};
  Json next = *registry.find("persistentvolumeclaims", kNs, "c");
  next["status"] = {{"phase", "Bound"}};
  next["metadata"]["labels"] = {{"a", "main"}};
  REQUIRE(registry.update(ref, next).ok());
  auto now = registry.find("persistentvolumeclaims", kNs, "c");
  CHECK(at(now, "status.phase") == "Pending");
  CHECK(at(now, "metadata.labels.a") == "main");

  next = *now;
  next["status"] = {{"phase", "Bound"}};
  next["spec"]["volumeName"] = "ignored";
  next["metadata"]["annotations"] = {{"b", "status"}};
  REQUIRE(registry.update(ref, next, {.subresource = "status"}).ok());
  now = registry.find("persistentvolumeclaims", kNs, "c");
  CHECK(at(now, "status.phase") == "Bound");
  CHECK(at(now, "spec.volumeName").is_null());
  CHECK(at(now, "metadata.annotations.b") == "status");

  next["metadata"].erase("resourceVersion");
  CHECK(bad_field(registry.update(ref, next, {.subresource = "status"})) ==
        "metadata.resourceVersion");
}

TEST_CASE("generation counts changes of spec, not of metadata or status") {
  Registry registry;
  REQUIRE(registry.create("pods", kNs, test::pod("a")).ok());
  const ObjectRef ref{"pods", kNs, "a"};
  REQUIRE(registry.patch(ref, PatchType::kMerge, {{"metadata", {{"labels", {{"x", "y"}}}}}}).ok());
  REQUIRE(registry
              .patch(ref, PatchType::kMerge, {{"status", {{"phase", "Running"}}}},
                     {.subresource = "status"})
              .ok());
  CHECK(at(registry.find("pods", kNs, "a"), "metadata.generation") == 1);
  REQUIRE(registry.patch(ref, PatchType::kMerge, {{"spec", {{"activeDeadlineSeconds", 9}}}}).ok());
  CHECK(at(registry.find("pods", kNs, "a"), "metadata.generation") == 2);
}

TEST_CASE("what must not change is refused with 422") {
  Registry registry;
  REQUIRE(registry.create("pods", kNs, test::pod("p")).ok());
  REQUIRE(registry.create("persistentvolumes", "", test::volume("v")).ok());
  REQUIRE(registry.create("persistentvolumeclaims", kNs, test::claim("c")).ok());
  REQUIRE(registry.create("storageclasses", "", test::storage_class("s")).ok());
  const auto patch = [&](const ObjectRef& ref, const Json& change) {
    return registry.patch(ref, PatchType::kMerge, change);
  };
  const ObjectRef claim{"persistentvolumeclaims", kNs, "c"};
  CHECK(bad_field(patch({"pods", kNs, "p"}, {{"spec", {{"restartPolicy", "Never"}}}})) == "spec");
  CHECK(bad_field(patch({"persistentvolumes", "", "v"},
                        {{"spec", {{"hostPath", {{"path", "/other"}}}}}})) ==
        "spec.persistentvolumesource");
  CHECK(bad_field(patch(claim, {{"spec", {{"accessModes", {"ReadWriteMany"}}}}})) == "spec");
  CHECK(bad_field(patch(
            claim, {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}})) == "spec");
  CHECK(bad_field(patch({"storageclasses", "", "s"}, {{"parameters", {{"a", "b"}}}})) ==
        "parameters");

  SUBCASE("but a claim may be bound once and, once bound, grow") {
    CHECK(patch(claim, {{"spec", {{"volumeName", "v"}}}}).ok());
    CHECK(bad_field(patch(claim, {{"spec", {{"volumeName", "w"}}}})) == "spec");
    REQUIRE(registry
                .patch(claim, PatchType::kMerge, {{"status", {{"phase", "Bound"}}}},
                       {.subresource = "status"})
                .ok());
    const Json grown = {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}};
    CHECK_FALSE(patch(claim, grown).ok());  // its class does not allow it
    Json storage_class = test::storage_class("local-path");
    storage_class["allowVolumeExpansion"] = true;
    REQUIRE(registry.create("storageclasses", "", storage_class).ok());
    CHECK(patch(claim, grown).ok());
  }
  SUBCASE("and a volume may change capacity, policy and claimRef") {
    CHECK(patch({"persistentvolumes", "", "v"},
                {{"spec",
                  {{"capacity", {{"storage", "2Gi"}}},
                   {"persistentVolumeReclaimPolicy", "Delete"},
                   {"claimRef", {{"name", "c"}, {"namespace", kNs}}}}}})
              .ok());
  }
}

TEST_CASE("before 1.32 a claim's status keeps no marks of growing and its request never shrinks") {
  for (const bool recovers : {true, false}) {
    CAPTURE(recovers);
    Registry registry({.recovers_expansion = recovers});
    Json storage_class = test::storage_class("local-path");
    storage_class["allowVolumeExpansion"] = true;
    REQUIRE(registry.create("storageclasses", "", storage_class).ok());
    const ObjectRef claim{"persistentvolumeclaims", kNs, "c"};
    REQUIRE(registry.create(claim.resource, kNs, test::claim("c")).ok());
    const auto answer = registry.patch(
        claim, PatchType::kStrategicMerge,
        {{"status",
          {{"phase", "Bound"},
           {"capacity", {{"storage", "1Gi"}}},
           {"allocatedResources", {{"storage", "3Gi"}}},
           {"allocatedResourceStatuses", {{"storage", "ControllerResizeInProgress"}}}}}},
        {.subresource = "status"});
    REQUIRE(answer.ok());
    CHECK(answer.body->at("status").contains("capacity"));
    CHECK(answer.body->at("status").contains("allocatedResources") == recovers);
    CHECK(answer.body->at("status").contains("allocatedResourceStatuses") == recovers);
    const auto ask = [&](const char* size) {
      return registry.patch(claim, PatchType::kMerge,
                            {{"spec", {{"resources", {{"requests", {{"storage", size}}}}}}}});
    };
    CHECK(ask("3Gi").ok());
    CHECK(ask("2Gi").ok() == recovers);
    CHECK(ask("4Gi").ok());
  }
}

TEST_CASE("a dry run answers like the real write and stores nothing") {
  Registry registry;
  const auto before = registry.resource_version();
  CHECK(registry.create("pods", kNs, test::pod("a"), {.dry_run = true}).code == 201);
  CHECK(registry.create("pods", kNs, test::pod("A"), {.dry_run = true}).code == 422);
  CHECK(registry.resource_version() == before);
  REQUIRE(registry.create("configmaps", kNs, test::config_map("a", "1")).ok());
  const auto patched = registry.patch({"configmaps", kNs, "a"}, PatchType::kMerge,
                                      {{"data", {{"key", "2"}}}}, {.dry_run = true});
  CHECK(at(patched, "data.key") == "2");
  CHECK(at(registry.find("configmaps", kNs, "a"), "data.key") == "1");
  CHECK(registry.remove({"configmaps", kNs, "a"}, {.dry_run = true}).ok());
  CHECK(registry.find("configmaps", kNs, "a") != nullptr);
}

TEST_CASE("bind_pod gives a pod to a node exactly once") {
  Registry registry;
  REQUIRE(registry.create("pods", kNs, test::pod("a")).ok());
  CHECK(registry.bind_pod(kNs, "b", "n1").code == 404);
  REQUIRE(registry.bind_pod(kNs, "a", "n1").code == 201);
  const auto pod = registry.find("pods", kNs, "a");
  CHECK(at(pod, "spec.nodeName") == "n1");
  CHECK(at(pod, "status.conditions")[0]["type"] == "PodScheduled");
  CHECK(registry.bind_pod(kNs, "a", "n2").code == 409);
}

TEST_CASE("modify repeats itself after a conflict and leaves alone what needs no change") {
  Registry registry;
  REQUIRE(registry.create("configmaps", kNs, test::config_map("a", "0")).ok());
  const ObjectRef ref{"configmaps", kNs, "a"};
  int calls = 0;
  const auto reply = registry.modify(ref, [&](Json& object) {
    if (++calls == 1) {  // somebody else is faster
      CHECK(registry.patch(ref, PatchType::kMerge, {{"data", {{"other", "x"}}}}).ok());
    }
    object["data"]["key"] = "1";
    return true;
  });
  CHECK(reply.ok());
  CHECK(calls == 2);
  CHECK(at(registry.find("configmaps", kNs, "a"), "data.key") == "1");
  CHECK(at(registry.find("configmaps", kNs, "a"), "data.other") == "x");
  const auto before = registry.resource_version();
  CHECK(registry.modify(ref, [](Json&) { return false; }).ok());
  CHECK(registry.resource_version() == before);
  CHECK(registry.modify({"configmaps", kNs, "b"}, [](Json&) { return true; }).not_found());
}

}  // namespace lpp::devcluster::registry_write
