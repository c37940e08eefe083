// SPDX-License-Identifier: Apache-2.0
#include "k8s/objects.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fakes/builders.h"
#include "k8s/json_reader.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;
using nlohmann::json;

namespace {

template <typename T>
std::string decode_error(const std::string& text) {
  const auto decoded = decode<T>(json::parse(text));
  if (decoded.ok()) return "no error";
  CHECK(decoded.error().is(ErrorCode::kInvalid));
  return decoded.error().message;
}

/// Every value in the tree, object fields and list elements, by its JSON pointer.
void collect_pointers(const json& value, const json::json_pointer& at,
                      std::vector<json::json_pointer>& all) {
  all.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) collect_pointers(child, at / key, all);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect_pointers(value[i], at / i, all);
  }
}

/// Puts every kind of JSON value in every place: decoding must answer, never throw.
template <typename T>
void decode_with_every_place_damaged(const json& object) {
  std::vector<json::json_pointer> pointers;
  collect_pointers(object, json::json_pointer(), pointers);
  const std::vector<json> damages = {nullptr,
                                     true,
                                     -1,
                                     1e300,
                                     "text",
                                     json::array(),
                                     json::object(),
                                     json::array({1, nullptr, "x"}),
                                     json{{"name", 3}},
                                     json{{"name", json::array()}}};
  std::size_t refused = 0;
  for (const auto& pointer : pointers) {
    for (const json& damage : damages) {
      json damaged = object;
      damaged[pointer] = damage;
      const auto decoded = decode<T>(damaged);
      // What is left out when it arrives is nothing that the decoder looks at.
      const auto arrived = decode<T>(read_json(damaged.dump(), fields_of<T>()));
      CHECK((arrived.ok() ? "" : arrived.error().message) ==
            (decoded.ok() ? "" : decoded.error().message));
      if (decoded.ok()) continue;
      ++refused;
      CHECK(decoded.error().is(ErrorCode::kInvalid));
      CHECK(decoded.error().message.find(": ") != std::string::npos);
    }
  }
  CHECK(refused > pointers.size());
}

}  // namespace

TEST_CASE("a claim is decoded with the fields we use") {
  const auto c = claim("a").ns("team").node("n1").resource_version("17").label("app", "db").build();
  CHECK(c.meta.key() == ObjectKey{"team", "a"});
  CHECK(c.meta.uid == "uid-a");
  CHECK(c.meta.resource_version == "17");
  CHECK(*find(c.meta.labels, "app") == "db");
  CHECK(*find(c.meta.annotations, "volume.kubernetes.io/selected-node") == "n1");
  CHECK(find(c.meta.annotations, "volume.kubernetes.io/other") == nullptr);
  CHECK(c.meta.finalizers == std::vector<std::string>{"kubernetes.io/pvc-protection"});
  CHECK_FALSE(c.meta.deleting());
  CHECK(c.storage_class_name == "local-path");
  CHECK(c.storage_request == "1Gi");
  CHECK(c.access_modes == std::vector<std::string>{"ReadWriteOnce"});
  CHECK(c.volume_mode == "Filesystem");
  CHECK(c.phase == "Pending");
  CHECK_FALSE(c.has_selector);
  CHECK(c.data_source.empty());
  CHECK(claim("a").deleting().build().meta.deleting());
  CHECK(claim("a").volume("pv-1").build().volume_name == "pv-1");
}

TEST_CASE(
    "the beta annotation wins over the claim's class, and an absent class differs from an empty "
    "one") {
  CHECK(claim("a").storage_class("x").build().class_name() == "x");
  CHECK(claim("a")
            .storage_class("x")
            .annotation("volume.beta.kubernetes.io/storage-class", "y")
            .build()
            .class_name() == "y");
  CHECK(claim("a").storage_class("").build().storage_class_name == "");
  const auto none = claim("a").unset("/spec", "storageClassName").build();
  CHECK_FALSE(none.storage_class_name.has_value());
  CHECK(none.class_name().empty());
}

TEST_CASE("a claim's data source is told as kind and name, from either field") {
  CHECK(claim("a").data_source("VolumeSnapshot", "s1").build().data_source == "VolumeSnapshot/s1");
  const auto by_ref =
      claim("a").set("/spec/dataSourceRef", {{"kind", "Populator"}, {"name", "p"}}).build();
  CHECK(by_ref.data_source == "Populator/p");
  CHECK(claim("a").set("/spec/dataSource", nullptr).build().data_source.empty());
  CHECK(claim("a").set("/spec/selector", json::object()).build().has_selector);
}

TEST_CASE("a storage request may be text or a bare number") {
  CHECK(claim("a").set("/spec/resources/requests/storage", 1024).build().storage_request == "1024");
  CHECK(claim("a").set("/spec/resources/requests/storage", nullptr).build().storage_request == "");
  const auto refused = decode<PersistentVolumeClaim>(
      claim("a").set("/spec/resources/requests/storage", true).json());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message == "spec.resources.requests.storage: expected a quantity");
}

TEST_CASE("a claim says what it has, what it grows to, and how that stands") {
  const auto plain = claim("a").build();
  CHECK(plain.capacity.empty());
  CHECK(plain.allocated.empty());
  CHECK(plain.resize_status.empty());
  CHECK(plain.conditions.empty());
  const auto grows =
      claim("a").capacity("1Gi").growing("2Gi", "X").condition("Resizing").condition("Y", "False");
  CHECK(grows.build().capacity == "1Gi");
  CHECK(grows.build().allocated == "2Gi");
  CHECK(grows.build().resize_status == "X");
  REQUIRE(grows.build().conditions.size() == 2);
  CHECK(grows.build().conditions[0].type == "Resizing");
  CHECK(grows.build().conditions[0].status == "True");
  CHECK(grows.build().conditions[1].status == "False");
}

TEST_CASE("a volume is decoded with its source, claim and affinity") {
  const auto v = volume("pv").claim("ns", "c").host_path("/data/x").node("host-1").build();
  CHECK(v.meta.key() == ObjectKey{"", "pv"});
  CHECK(v.claim == ObjectKey{"ns", "c"});
  CHECK(v.claim_uid == "uid-c");
  CHECK(v.capacity == "1Gi");
  CHECK(v.reclaim_policy == "Delete");
  CHECK(v.volume_mode.empty());
  CHECK(volume("pv").set("/spec/volumeMode", "Block").build().volume_mode == "Block");
  CHECK(v.phase == "Bound");
  CHECK(v.source == VolumeSource::kHostPath);
  CHECK(v.path == "/data/x");
  REQUIRE(v.node_affinity.size() == 1);
  REQUIRE(v.node_affinity[0].match_expressions.size() == 1);
  CHECK(v.node_affinity[0].match_expressions[0].key == "kubernetes.io/hostname");
  CHECK(v.node_affinity[0].match_expressions[0].op == "In");
  CHECK(v.node_affinity[0].match_expressions[0].values == std::vector<std::string>{"host-1"});

  const auto local = volume("pv").local("/data/y").node_field("n2").build();
  CHECK(local.source == VolumeSource::kLocal);
  CHECK(local.path == "/data/y");
  REQUIRE(local.node_affinity.size() == 1);
  CHECK(local.node_affinity[0].match_expressions.empty());
  REQUIRE(local.node_affinity[0].match_fields.size() == 1);
  CHECK(local.node_affinity[0].match_fields[0].key == "metadata.name");

  CHECK(volume("pv").unset("/spec", "hostPath").build().source == VolumeSource::kOther);
}

TEST_CASE("a volume's path is kept in one spelling, and as it is where it leads back") {
  for (const auto& row :
       std::initializer_list<std::pair<const char*, const char*>>{{"/base//x/./y/", "/base/x/y"},
                                                                  {"//base/./x//", "/base/x"},
                                                                  {"/./", "/"},
                                                                  {"/", "/"},
                                                                  {"", ""},
                                                                  {"./x/", "x"},
                                                                  {".", ""},
                                                                  {"/a/.../.x", "/a/.../.x"},
                                                                  {"/a/../b//c", "/a/../b//c"},
                                                                  {"/a/..", "/a/.."}}) {
    CAPTURE(row.first);
    const auto& [written, kept] = row;
    CHECK(volume("pv").host_path(written).build().path == kept);
    CHECK(volume("pv").local(written).build().path == kept);
  }
}

TEST_CASE("a claim's generation is a number") {
  CHECK(claim("a").build().meta.generation == 0);
  CHECK(claim("a").set("/metadata/generation", 3).build().meta.generation == 3);
}

TEST_CASE("a class knows whether it waits for the first consumer") {
  const auto c = storage_class().parameter("nodePath", "/p").mount_options({"ro"}).build();
  CHECK(c.waits_for_first_consumer());
  CHECK(c.provisioner == kProvisionerName);
  CHECK(*find(c.parameters, "nodePath") == "/p");
  CHECK(c.mount_options == std::vector<std::string>{"ro"});
  CHECK_FALSE(storage_class().binding_mode("Immediate").build().waits_for_first_consumer());
  CHECK_FALSE(
      storage_class().set("/volumeBindingMode", nullptr).build().waits_for_first_consumer());
}

TEST_CASE("a pod's container states are decoded, init containers first") {
  auto builder = pod("p")
                     .node("n1")
                     .terminated("main", 3, "mkdir: permission denied")
                     .condition("PodScheduled", "False", "Unschedulable", "no nodes");
  builder.set(
      "/status/initContainerStatuses",
      json::array(
          {{{"name", "init"},
            {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "not found"}}}}}}}));
  const auto p = builder.build();
  CHECK(p.node_name == "n1");
  CHECK(p.phase == "Failed");
  REQUIRE(p.containers.size() == 2);
  CHECK(p.containers[0].name == "init");
  CHECK(p.containers[0].waiting_reason == "ErrImagePull");
  CHECK(p.containers[0].waiting_message == "not found");
  CHECK_FALSE(p.containers[0].terminated);
  CHECK(p.containers[1].terminated);
  CHECK(p.containers[1].exit_code == 3);
  CHECK(p.containers[1].terminated_reason == "Error");
  CHECK(p.containers[1].terminated_message == "mkdir: permission denied");
  REQUIRE(p.conditions.size() == 1);
  CHECK(p.conditions[0].reason == "Unschedulable");

  const auto evicted = pod("p").phase("Failed").status("Evicted", "disk pressure").build();
  CHECK(evicted.reason == "Evicted");
  CHECK(evicted.message == "disk pressure");
  CHECK_FALSE(pod("p").running("main").build().containers[0].terminated);
}

TEST_CASE("nodes and config maps are decoded") {
  CHECK(*find(node("n1").build().meta.labels, "kubernetes.io/hostname") == "n1");
  CHECK(*find(config_map("c").data("config.json", "{}").build().data, "config.json") == "{}");
  CHECK(config_map("c").build().data.empty());
}

TEST_CASE("null means absent, in fields, maps and lists") {
  const auto decoded = decode<Pod>(json::parse(R"({
    "metadata": {"name": "p", "uid": null, "labels": null, "annotations": {"a": null, "b": "c"},
                 "finalizers": [null, "f"]},
    "spec": null,
    "status": {"phase": null, "containerStatuses": [null, {"name": "x", "state": null}],
               "conditions": null}})"));
  REQUIRE(decoded.ok());
  CHECK(decoded->meta.annotations == StringMap{{"b", "c"}});
  CHECK(decoded->meta.finalizers == std::vector<std::string>{"f"});
  REQUIRE(decoded->containers.size() == 1);
  CHECK(decoded->containers[0].name == "x");
}

TEST_CASE("a wrong type is refused with its place") {
  CHECK(decode_error<PersistentVolumeClaim>(R"([])") == "object: expected an object");
  CHECK(decode_error<PersistentVolumeClaim>(R"({})") == "metadata.name: required");
  CHECK(decode_error<PersistentVolumeClaim>(R"({"metadata": 1})") ==
        "metadata: expected an object");
  CHECK(decode_error<PersistentVolumeClaim>(R"({"metadata": {"name": 1}})") ==
        "metadata.name: expected a string");
  CHECK(decode_error<PersistentVolumeClaim>(R"({"metadata": {"name": "a", "labels": {"k": 1}}})") ==
        "metadata.labels.k: expected a string");
  CHECK(decode_error<PersistentVolumeClaim>(
            R"({"metadata": {"name": "a"}, "spec": {"accessModes": "ReadWriteOnce"}})") ==
        "spec.accessModes: expected a list");
  CHECK(decode_error<PersistentVolumeClaim>(
            R"({"metadata": {"name": "a"}, "spec": {"accessModes": [1]}})") ==
        "spec.accessModes: expected a list of strings");
  CHECK(decode_error<PersistentVolume>(
            R"({"metadata": {"name": "a"}, "spec": {"nodeAffinity": {"required":
                {"nodeSelectorTerms": [{}, {"matchFields": [{"key": 5}]}]}}}})") ==
        "spec.nodeAffinity.required.nodeSelectorTerms[1].matchFields[0].key: expected a string");
  for (const char* code : {"\"1\"", "1.5", "99999999999", "-99999999999", "18446744073709551615"}) {
    CAPTURE(code);
    CHECK(decode_error<Pod>(R"({"metadata": {"name": "a"}, "status": {"containerStatuses":
              [{"state": {"terminated": {"exitCode": )" +
                            std::string(code) + "}}}]}}") ==
          "status.containerStatuses[0].state.terminated.exitCode: expected an integer");
  }
  CHECK(decode_error<ConfigMap>(R"({"metadata": {"name": "a"}, "data": ["x"]})") ==
        "data: expected an object");
}

TEST_CASE("no damage to an object makes decoding throw, or makes it differ from what arrives") {
  decode_with_every_place_damaged<PersistentVolumeClaim>(claim("a")
                                                             .node("n1")
                                                             .volume("v")
                                                             .data_source("K", "n")
                                                             .capacity("1Gi")
                                                             .growing("2Gi")
                                                             .condition("C")
                                                             .json());
  decode_with_every_place_damaged<PersistentVolume>(
      volume("a").claim("ns", "c").node("n1").local("/x").json());
  decode_with_every_place_damaged<StorageClass>(
      storage_class().parameter("a", "b").mount_options({"ro"}).json());
  decode_with_every_place_damaged<Node>(
      node("n")
          .label("a", "b")
          .annotation("c", "d")
          .finalizer("f")
          .deleting()
          .set("/metadata/generateName", "n-")
          .set("/metadata/ownerReferences",
               json::array({{{"apiVersion", "v1"}, {"kind", "K"}, {"name", "o"}, {"uid", "u"}}}))
          .json());
  decode_with_every_place_damaged<Pod>(
      pod("a").terminated("c", 1, "m").waiting("d", "r").condition("t", "True").json());
  decode_with_every_place_damaged<ConfigMap>(config_map("a").data("k", "v").json());
}
