// SPDX-License-Identifier: Apache-2.0
// Contract: create, read, update, patch and delete single objects.

#include "contract_case.h"

namespace lpp::testing {
namespace {

using k8s::PatchType;
using nlohmann::json;

TEST_CASE("a created object gets its identity from the server") {
  ContractCase c;
  const json made = c.create_map("a");
  CHECK_FALSE(uid_of(made).empty());
  CHECK_FALSE(version_of(made).empty());
  CHECK(made["metadata"]["creationTimestamp"].get<std::string>().ends_with("Z"));
  CHECK(made["kind"] == "ConfigMap");
  CHECK(made["apiVersion"] == "v1");
  const json read = LPP_MUST(c.kube.get(k8s::kConfigMaps, c.key("a")));
  CHECK(version_of(read) == version_of(made));
  const auto again = must_fail(c.kube.create(c.config_map("a")), 409, "AlreadyExists");
  CHECK(again.find("configmaps \"a\" already exists") != std::string::npos);
}

TEST_CASE("names can be generated") {
  ContractCase c;
  json object = c.config_map("");
  object["metadata"].erase("name");
  object["metadata"]["generateName"] = "gen-";
  const json first = LPP_MUST(c.kube.create(object));
  const json second = LPP_MUST(c.kube.create(object));
  const std::string name = first["metadata"]["name"];
  CHECK(name.starts_with("gen-"));
  CHECK(name.size() == 9);
  CHECK(name != second["metadata"]["name"]);
  object["metadata"]["generateName"] = std::string(70, 'a');
  CHECK(LPP_MUST(c.kube.create(object))["metadata"]["name"].get<std::string>().size() == 63);
}

TEST_CASE("what is not there is NotFound") {
  ContractCase c;
  must_fail(c.kube.get(k8s::kConfigMaps, c.key("none")), 404, "NotFound");
  must_fail(c.kube.remove(k8s::kConfigMaps, c.key("none")), 404, "NotFound");
  must_fail(c.kube.merge(k8s::kConfigMaps, c.key("none"), json::object()), 404, "NotFound");
  json object = c.config_map("none");
  object["metadata"]["resourceVersion"] = "1";
  must_fail(c.kube.api().update(k8s::kConfigMaps, c.key("none"), object), 404, "NotFound");
}

TEST_CASE("a bad object is Invalid with its field") {
  ContractCase c;
  const auto name = must_fail(c.kube.create(c.config_map("Not_A_Name")), 422, "Invalid");
  CHECK(name.find("metadata.name") != std::string::npos);
  const auto label =
      must_fail(c.kube.create(c.config_map("a", {{"x", "not a label value!"}})), 422, "Invalid");
  CHECK(label.find("metadata.labels") != std::string::npos);
}

TEST_CASE("an update with an old version is a Conflict") {
  ContractCase c;
  json object = c.create_map("a");
  const json stale = object;
  object["data"]["key"] = "new";
  const json updated = LPP_MUST(c.kube.api().update(k8s::kConfigMaps, c.key("a"), object));
  CHECK(version_of(updated) != version_of(stale));
  CHECK(uid_of(updated) == uid_of(stale));
  const auto refused =
      must_fail(c.kube.api().update(k8s::kConfigMaps, c.key("a"), stale), 409, "Conflict");
  CHECK(refused.find("Operation cannot be fulfilled on configmaps \"a\": the object has been "
                     "modified") != std::string::npos);
  CHECK(LPP_MUST(c.kube.get(k8s::kConfigMaps, c.key("a")))["data"]["key"] == "new");
  object["metadata"].erase("resourceVersion");
  object["data"]["key"] = "of no version";
  LPP_MUST(c.kube.api().update(k8s::kConfigMaps, c.key("a"), object));
}

TEST_CASE("an update that changes nothing keeps the version") {
  ContractCase c;
  const json object = c.create_map("a");
  const json updated = LPP_MUST(c.kube.api().update(k8s::kConfigMaps, c.key("a"), object));
  CHECK(version_of(updated) == version_of(object));
  const json patched = LPP_MUST(c.kube.merge(k8s::kConfigMaps, c.key("a"), json::object()));
  CHECK(version_of(patched) == version_of(object));
}

TEST_CASE("an update with another UID is a Conflict") {
  ContractCase c;
  json object = c.create_map("a");
  object["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  object["data"]["key"] = "new";
  must_fail(c.kube.api().update(k8s::kConfigMaps, c.key("a"), object), 409, "Conflict");
}

TEST_CASE("a merge patch sets, and removes with null") {
  ContractCase c;
  c.create_map("a", {{"one", "1"}, {"two", "2"}});
  const json patched =
      LPP_MUST(c.kube.merge(k8s::kConfigMaps, c.key("a"),
                            {{"metadata", {{"labels", {{"one", nullptr}, {"three", "3"}}}}}}));
  CHECK(patched["metadata"]["labels"] == json({{"two", "2"}, {"three", "3"}}));
  CHECK(patched["data"]["key"] == "value");
}

TEST_CASE("a patch may name the version or the UID it is meant for") {
  ContractCase c;
  const json first = c.create_map("a");
  LPP_MUST(c.kube.merge(k8s::kConfigMaps, c.key("a"), {{"data", {{"key", "new"}}}}));
  must_fail(c.kube.merge(k8s::kConfigMaps, c.key("a"),
                         {{"metadata", {{"resourceVersion", version_of(first)}}},
                          {"data", {{"key", "old"}}}}),
            409, "Conflict");
  must_fail(c.kube.merge(k8s::kConfigMaps, c.key("a"),
                         {{"metadata", {{"uid", "11111111-2222-3333-4444-555555555555"}}},
                          {"data", {{"key", "other"}}}}),
            422, "Invalid");
  const json now = LPP_MUST(c.kube.get(k8s::kConfigMaps, c.key("a")));
  CHECK(now["data"]["key"] == "new");
}

TEST_CASE("a JSON patch is applied as a whole or not at all") {
  ContractCase c;
  c.create_map("a");
  const json good = json::array({{{"op", "test"}, {"path", "/data/key"}, {"value", "value"}},
                                 {{"op", "replace"}, {"path", "/data/key"}, {"value", "new"}},
                                 {{"op", "add"}, {"path", "/data/more"}, {"value", "x"}}});
  const json patched =
      LPP_MUST(c.kube.api().patch(k8s::kConfigMaps, c.key("a"), PatchType::kJson, good));
  CHECK(patched["data"] == json({{"key", "new"}, {"more", "x"}}));
  const json bad = json::array({{{"op", "remove"}, {"path", "/data/more"}},
                                {{"op", "test"}, {"path", "/data/key"}, {"value", "other"}}});
  must_fail(c.kube.api().patch(k8s::kConfigMaps, c.key("a"), PatchType::kJson, bad), 422,
            "Invalid");
  CHECK(LPP_MUST(c.kube.get(k8s::kConfigMaps, c.key("a")))["data"].contains("more"));
}

TEST_CASE("a strategic merge patch merges finalizers as a set") {
  ContractCase c;
  json object = c.config_map("a");
  object["metadata"]["finalizers"] = {"example.com/one"};
  LPP_MUST(c.kube.create(object));
  const json added = LPP_MUST(
      c.kube.api().patch(k8s::kConfigMaps, c.key("a"), PatchType::kStrategicMerge,
                         {{"metadata", {{"finalizers", json::array({"example.com/two"})}}}}));
  const json& both = added["metadata"]["finalizers"];
  CHECK(both.size() == 2);
  CHECK(std::find(both.begin(), both.end(), "example.com/one") != both.end());
  CHECK(std::find(both.begin(), both.end(), "example.com/two") != both.end());
  const json removed =
      LPP_MUST(c.kube.api().patch(k8s::kConfigMaps, c.key("a"), PatchType::kStrategicMerge,
                                  {{"metadata",
                                    {{"$deleteFromPrimitiveList/finalizers",
                                      json::array({"example.com/one", "example.com/two"})}}}}));
  CHECK_FALSE(removed["metadata"].contains("finalizers"));
}

TEST_CASE("a delete may name the UID and the version it is meant for") {
  ContractCase c;
  const json object = c.create_map("a");
  must_fail(c.kube.api().remove(k8s::kConfigMaps, c.key("a"),
                                {.uid = "11111111-2222-3333-4444-555555555555"}),
            409, "Conflict");
  must_fail(c.kube.api().remove(k8s::kConfigMaps, c.key("a"), {.resource_version = "1"}), 409,
            "Conflict");
  LPP_MUST(c.kube.api().remove(k8s::kConfigMaps, c.key("a"),
                               {.uid = uid_of(object), .resource_version = version_of(object)}));
  must_fail(c.kube.get(k8s::kConfigMaps, c.key("a")), 404, "NotFound");
}

TEST_CASE("finalizers hold an object that is being deleted") {
  ContractCase c;
  json object = c.config_map("a");
  object["metadata"]["finalizers"] = {"example.com/one"};
  const json made = LPP_MUST(c.kube.create(object));
  LPP_MUST(c.kube.remove(k8s::kConfigMaps, c.key("a")));
  const json deleting = LPP_MUST(c.kube.get(k8s::kConfigMaps, c.key("a")));
  CHECK(deleting["metadata"].contains("deletionTimestamp"));
  CHECK(uid_of(deleting) == uid_of(made));
  LPP_MUST(c.kube.remove(k8s::kConfigMaps, c.key("a")));  // again is fine
  must_fail(c.kube.create(c.config_map("a")), 409, "AlreadyExists");
  must_fail(
      c.kube.api().patch(
          k8s::kConfigMaps, c.key("a"), PatchType::kMerge,
          {{"metadata", {{"finalizers", json::array({"example.com/one", "example.com/two"})}}}}),
      422, "Invalid");
  LPP_MUST(c.kube.merge(k8s::kConfigMaps, c.key("a"), {{"metadata", {{"finalizers", nullptr}}}}));
  must_fail(c.kube.get(k8s::kConfigMaps, c.key("a")), 404, "NotFound");
}

TEST_CASE("an Event can be created and counted up") {
  ContractCase c;
  const json event = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"namespace", c.ns}, {"name", "e.1"}}},
      {"involvedObject",
       {{"kind", "PersistentVolumeClaim"}, {"namespace", c.ns}, {"name", "claim"}}},
      {"reason", "ProvisioningFailed"},
      {"message", "text"},
      {"type", "Warning"},
      {"count", 1},
      {"firstTimestamp", "2026-01-02T03:04:05Z"},
      {"lastTimestamp", "2026-01-02T03:04:05Z"},
      {"source", {{"component", "contract"}}},
  };
  LPP_MUST(c.kube.create(event));
  const json counted = LPP_MUST(c.kube.merge(
      k8s::kEvents, c.key("e.1"), {{"count", 2}, {"lastTimestamp", "2026-01-02T03:04:06Z"}}));
  CHECK(counted["count"] == 2);
  json elsewhere = event;
  elsewhere["metadata"]["name"] = "e.2";
  elsewhere["involvedObject"]["namespace"] = "default";
  must_fail(c.kube.create(elsewhere), 422, "Invalid");
}

TEST_CASE("a lease is taken with optimistic locking") {
  ContractCase c;
  const json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                      {"kind", "Lease"},
                      {"metadata", {{"namespace", c.ns}, {"name", "l"}}},
                      {"spec",
                       {{"holderIdentity", "one"},
                        {"leaseDurationSeconds", 15},
                        {"renewTime", "2026-01-02T03:04:05.123456Z"}}}};
  json first = LPP_MUST(c.kube.create(lease));
  json second = first;
  first["spec"]["holderIdentity"] = "two";
  second["spec"]["holderIdentity"] = "three";
  const json taken = LPP_MUST(c.kube.api().update(k8s::kLeases, c.key("l"), first));
  CHECK(taken["spec"]["renewTime"] == "2026-01-02T03:04:05.123456Z");
  must_fail(c.kube.api().update(k8s::kLeases, c.key("l"), second), 409, "Conflict");
}

}  // namespace
}  // namespace lpp::testing
