// SPDX-License-Identifier: Apache-2.0
// Operations as helper pods record them.

#include "operation/record.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fakes/operations.h"
#include "unit/helperpod/manifest_fixture.h"

namespace lpp::helperpod {
namespace {

using nlohmann::json;
using operation::decode_operation;
using operation::encode_operation;
using operation::Kind;
using operation::Operation;
using operation::Shape;
using namespace manifest_fixture;

TEST_CASE("an operation comes back from the pod as it went in") {
  Operation operation = create();
  operation.path = "/opt/lp/\"quoted\" $(X) ü";
  SUBCASE("on a node") {}
  SUBCASE("on a shared filesystem") { operation.shared = true; }
  SUBCASE("a removal") { operation.kind = Kind::kRemove; }
  SUBCASE("a resize") { operation.kind = Kind::kResize; }
  SUBCASE("a removal of a volume named after its owner") {
    operation.kind = Kind::kRemove;
    operation.volume_name = "pvc-" + operation.owner_uid;
  }
  SUBCASE("a take-back of a volume of any name, if it is empty") {
    operation.kind = Kind::kTakeBack;
    operation.only_if_empty = true;
  }
  SUBCASE("with the shape of its volume") {
    operation.shape = Shape{.source = k8s::VolumeSource::kLocal,
                            .affinity_key = "example.com/host",
                            .affinity_value = "x",
                            .mount_options = {"noatime", "ro"},
                            .reclaim_policy = "Retain"};
  }
  SUBCASE("with an empty value of the node's label") {
    operation.shape = Shape{.affinity_key = "example.com/host"};
  }
  SUBCASE("with a shape without affinity") { operation.shape = Shape{.has_affinity = false}; }
  SUBCASE("with limits") {
    operation.limits = {.hard = true, .inodes = 9, .reserve = "10%", .overcommit = false};
  }
  SUBCASE("with a base path that must be mounted") { operation.require_mount = true; }
  SUBCASE("on a disk that is known") { operation.disk = "disk-a"; }
  SUBCASE("with one of them") { operation.limits.overcommit = false; }
  const json pod = build(load(kSimple), operation, settings());
  k8s::Pod read;
  read.meta.name = "p";
  for (const auto& [key, value] : pod["metadata"]["annotations"].items()) {
    read.meta.annotations[key] = value.get<std::string>();
  }
  const auto back = operation_of(read);
  REQUIRE(back.ok());
  CHECK(testing::same(*back, operation));
}

TEST_CASE("annotations edited by hand are errors that name the member") {
  struct Case {
    const char* text;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{", "not a JSON object"},
      {"null", "not a JSON object"},
      {R"({})", "action is missing"},
      {R"({"action":"shrink","volume":"v","ownerUid":"u","path":"/a/b"})", "action must be"},
      {R"({"action":1,"volume":"v","ownerUid":"u","path":"/a/b"})", "action must be a string"},
      {R"({"action":"create","ownerUid":"u","path":"/a/b"})", "volume is missing"},
      {R"({"action":"create","volume":"","ownerUid":"u","path":"/a/b"})", "volume must not"},
      {R"({"action":"create","volume":"v","path":"/a/b"})", "ownerUid is missing"},
      {R"({"action":"create","volume":"v","ownerUid":"u"})", "path is missing"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"a/b"})", "path must be"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/"})", "path must be"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/../b"})", "path must be"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a//b"})", "path must be"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b/"})", "path must be"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/\u0000"})", "path must be"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","sizeBytes":"1"})",
       "sizeBytes must be an integer"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","sizeBytes":-1})",
       "sizeBytes is out of range"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b",
           "sizeBytes":18446744073709551615})",
       "sizeBytes is out of range"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","attempt":0})",
       "attempt is out of range"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","attempt":4294967297})",
       "attempt is out of range"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","node":null})",
       "node must be a string"},
      {R"({"action":"delete","volume":"v","ownerUid":"u","path":"/a/b","kind":"takeaway"})",
       "kind must be takeBack or remove"},
      {R"({"action":"delete","volume":"v","ownerUid":"u","path":"/a/b","kind":null})",
       "kind must be a string"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","onlyIfEmpty":"yes"})",
       "onlyIfEmpty must be true or false"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","shape":1})",
       "shape must be a JSON object"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b","shape":{}})",
       "volumeType is missing"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b",
           "shape":{"volumeType":"nfs","reclaimPolicy":"Delete"}})",
       "volumeType must be local or hostPath"},
      {R"({"action":"create","volume":"v","ownerUid":"u","path":"/a/b",
           "shape":{"volumeType":"local","reclaimPolicy":"Delete","mountOptions":["a",1]}})",
       "mountOptions must be an array of strings"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    k8s::Pod pod;
    pod.meta.ns = "ns";
    pod.meta.name = "p";
    pod.meta.annotations["local.path.provisioner/operation"] = c.text;
    const auto operation = operation_of(pod);
    REQUIRE_FALSE(operation.ok());
    CHECK(operation.error().is(ErrorCode::kInvalid));
    CHECK_MESSAGE(operation.error().message.find(c.says) != std::string::npos,
                  operation.error().message);
    CHECK(operation.error().message.find("ns/p") != std::string::npos);
  }
  const auto none = operation_of(k8s::Pod{});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().is(ErrorCode::kInvalid));
}

TEST_CASE("a record of a later version is read as far as it is known") {
  k8s::Pod pod;
  pod.meta.annotations["local.path.provisioner/operation"] =
      R"({"action":"delete","volume":"v","ownerUid":"u","path":"/a/b","quota":{"x":1}})";
  const auto operation = operation_of(pod);
  REQUIRE(operation.ok());
  CHECK(operation->kind == Kind::kRemove);
  CHECK(operation->attempt == 1);
  CHECK(operation->volume_mode == "Filesystem");
}

TEST_CASE("records of versions that wrote down less are understood") {
  const auto read = [](const std::string& members) {
    k8s::Pod pod;
    pod.meta.annotations["local.path.provisioner/operation"] = R"({"path":"/a/b",)" + members + "}";
    const auto operation = operation_of(pod);
    REQUIRE_MESSAGE(operation.ok(), (operation.ok() ? "" : operation.error().message));
    return *operation;
  };
  const Operation made = read(R"("action":"create","volume":"pvc-u","ownerUid":"u")");
  CHECK(made.kind == Kind::kMake);
  CHECK_FALSE(made.shape);
  CHECK_FALSE(made.only_if_empty);
  // Of the claim that the volume was to be for, or of a volume that was there.
  CHECK(read(R"("action":"delete","volume":"pvc-u","ownerUid":"u")").kind == Kind::kTakeBack);
  CHECK(read(R"("action":"delete","volume":"pvc-u","ownerUid":"w")").kind == Kind::kRemove);
  CHECK(read(R"("action":"delete","volume":"pvc-u","ownerUid":"u","kind":"remove")").kind ==
        Kind::kRemove);
}

}  // namespace
}  // namespace lpp::helperpod
