// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "unit/devcluster/registry_test_support.h"

namespace lpp::devcluster {
namespace {

using test::at;
using test::bad_field;
using test::Json;

/// The first complaint about a pod, volume, claim or class that was good before `spoil`.
std::string complaint(const std::string& resource, Json object,
                      const std::function<void(Json&)>& spoil) {
  Registry registry;
  spoil(object);
  const std::string ns =
      resource == "pods" || resource == "persistentvolumeclaims" ? "default" : "";
  const auto reply = registry.create(resource, ns, object);
  if (reply.ok()) return "";
  CHECK(reply.code == 422);
  CHECK(reply.reason() == "Invalid");
  CHECK(at(reply, "details.kind").is_string());
  return bad_field(reply);
}

std::string pod(const std::function<void(Json&)>& spoil) {
  return complaint("pods", test::pod("a"), spoil);
}
std::string volume(const std::function<void(Json&)>& spoil) {
  return complaint("persistentvolumes", test::volume("a"), spoil);
}
std::string claim(const std::function<void(Json&)>& spoil) {
  return complaint("persistentvolumeclaims", test::claim("a"), spoil);
}

}  // namespace

TEST_CASE("names, labels, annotations and finalizers follow the rules of their kind") {
  const auto with_name = [](const std::string& name) {
    return pod([&](Json& o) { o["metadata"]["name"] = name; });
  };
  CHECK(with_name("a.b-c.1").empty());
  CHECK(with_name(std::string(253, 'a')).empty());
  for (const auto& bad :
       {std::string("A"), std::string("a_b"), std::string("-a"), std::string("a."),
        std::string("a..b"), std::string(254, 'a'), std::string("a/b")}) {
    CAPTURE(bad);
    CHECK(with_name(bad) == "metadata.name");
  }
  Registry registry;
  CHECK(bad_field(registry.create("namespaces", "", {{"metadata", {{"name", "a.b"}}}})) ==
        "metadata.name");
  CHECK(registry.create("clusterroles", "", {{"metadata", {{"name", "system:Odd_Name"}}}}).ok());

  CHECK(pod([](Json& o) {
          o["metadata"]["labels"] = {{"a", std::string(64, 'x')}};
        }) == "metadata.labels");
  CHECK(pod([](Json& o) { o["metadata"]["labels"] = {{"a b", "x"}}; }) == "metadata.labels");
  CHECK(pod([](Json& o) { o["metadata"]["labels"] = {{"a", "x/y"}}; }) == "metadata.labels");
  CHECK(pod([](Json& o) { o["metadata"]["labels"] = {{"example.com/a", "X_y.z-1"}}; }).empty());
  CHECK(pod([](Json& o) {
          o["metadata"]["annotations"] = {{"a/b/c", ""}};
        }) == "metadata.annotations");
  CHECK(pod([](Json& o) {
          o["metadata"]["annotations"] = {{"a", std::string(std::size_t{256} * 1024, 'x')}};
        }) == "metadata.annotations");
  CHECK(pod([](Json& o) { o["metadata"]["finalizers"] = {"short"}; }) == "metadata.finalizers");
}

TEST_CASE("a pod needs containers, images and mounts that fit its volumes") {
  const auto container = [](const std::function<void(Json&)>& spoil) {
    return pod([&](Json& o) { spoil(o["spec"]["containers"][0]); });
  };
  CHECK(pod([](Json& o) { o["spec"].erase("containers"); }) == "spec.containers");
  CHECK(container([](Json& c) { c.erase("image"); }) == "spec.containers[0].image");
  CHECK(container([](Json& c) { c["image"] = ""; }) == "spec.containers[0].image");
  CHECK(container([](Json& c) { c["name"] = "A"; }) == "spec.containers[0].name");
  CHECK(container([](Json& c) {
          c["volumeMounts"] = {{{"name", "v"}, {"mountPath", "/x"}}};
        }) == "spec.containers[0].volumeMounts[0].name");
  CHECK(container([](Json& c) {
          c["env"] = {{{"value", "x"}}};
        }) == "spec.containers[0].env[0].name");
  CHECK(pod([](Json& o) { o["spec"]["restartPolicy"] = "Maybe"; }) == "spec.restartPolicy");
  CHECK(pod([](Json& o) { o["spec"]["activeDeadlineSeconds"] = 0; }) ==
        "spec.activeDeadlineSeconds");
  const auto host_path = [](const Json& source) {
    return pod([&](Json& o) { o["spec"]["volumes"] = {{{"name", "v"}, {"hostPath", source}}}; });
  };
  CHECK(host_path({{"path", "/x/y"}, {"type", "DirectoryOrCreate"}}).empty());
  CHECK(host_path({{"path", "/x/../y"}}) == "spec.volumes[0].hostPath.path");
  CHECK(host_path(Json::object()) == "spec.volumes[0].hostPath.path");
  CHECK(host_path({{"path", "/x"}, {"type", "Folder"}}) == "spec.volumes[0].hostPath.type");
  CHECK(pod([](Json& o) {
          o["spec"]["volumes"] = {{{"name", "v"}, {"emptyDir", Json::object()}}};
          o["spec"]["containers"][0]["volumeMounts"] = {{{"name", "v"}, {"mountPath", "/x"}},
                                                        {{"name", "v"}, {"mountPath", "/x"}}};
        }) == "spec.containers[0].volumeMounts[1].mountPath");
}

TEST_CASE("a volume needs capacity, modes and exactly one usable source") {
  const auto spec = [](const std::function<void(Json&)>& spoil) {
    return volume([&](Json& o) { spoil(o["spec"]); });
  };
  CHECK(spec([](Json& s) { s.erase("capacity"); }) == "spec.capacity");
  CHECK(spec([](Json& s) { s["capacity"] = {{"cpu", "1"}}; }) == "spec.capacity");
  for (const char* bad : {"0", "-1Gi", "1gi", "5GB", "", "1 Gi", "x"}) {
    CAPTURE(bad);
    CHECK(spec([&](Json& s) { s["capacity"]["storage"] = bad; }) == "spec.capacity[storage]");
  }
  for (const char* good : {"1", "1.5Gi", "100m", "1e9", "5E", "2000Mi", "+1"}) {
    CAPTURE(good);
    CHECK(spec([&](Json& s) { s["capacity"]["storage"] = good; }).empty());
  }
  CHECK(spec([](Json& s) { s.erase("accessModes"); }) == "spec.accessModes");
  CHECK(spec([](Json& s) { s["accessModes"] = {"Sometimes"}; }) == "spec.accessModes");
  CHECK(spec([](Json& s) {
          s["accessModes"] = {"ReadWriteOncePod", "ReadWriteOnce"};
        }) == "spec.accessModes");
  CHECK(spec([](Json& s) { s.erase("hostPath"); }) == "spec");
  CHECK(spec([](Json& s) { s["local"] = {{"path", "/x"}}; }) == "spec");
  CHECK(spec([](Json& s) { s["hostPath"]["path"] = "/a/../b"; }) == "spec.hostPath.path");
  CHECK(spec([](Json& s) { s["hostPath"]["path"] = ""; }) == "spec.hostPath.path");
  CHECK(spec([](Json& s) { s["persistentVolumeReclaimPolicy"] = "Keep"; }) ==
        "spec.persistentVolumeReclaimPolicy");
  CHECK(spec([](Json& s) { s["volumeMode"] = "Tape"; }) == "spec.volumeMode");
  CHECK(spec([](Json& s) { s["storageClassName"] = "Bad Class"; }) == "spec.storageClassName");
}

TEST_CASE("a local volume needs a node affinity whose values are label values") {
  const auto local = [](const Json& affinity) {
    return volume([&](Json& o) {
      o["spec"].erase("hostPath");
      o["spec"]["local"] = {{"path", "/x"}};
      if (!affinity.is_null()) o["spec"]["nodeAffinity"] = affinity;
    });
  };
  const auto required = [](const std::string& key, const Json& values) -> Json {
    return {{"required",
             {{"nodeSelectorTerms",
               Json::array(
                   {{{"matchExpressions",
                      Json::array({{{"key", key}, {"operator", "In"}, {"values", values}}})}}})}}}};
  };
  const std::string term = "spec.nodeAffinity.required.nodeSelectorTerms";
  CHECK(local(required("kubernetes.io/hostname", {"n1"})).empty());
  CHECK(local(nullptr) == "spec.nodeAffinity");
  CHECK(local(Json::object()) == "spec.nodeAffinity.required");
  CHECK(local({{"required", {{"nodeSelectorTerms", Json::array()}}}}) == term);
  CHECK(local(required("kubernetes.io/hostname", {std::string(64, 'n')})) ==
        term + "[0].matchExpressions[0].values");
  CHECK(local(required("kubernetes.io/hostname", Json::array())) ==
        term + "[0].matchExpressions[0].values");
  CHECK(local(required("a/b/c", {"n1"})) == term + "[0].matchExpressions[0].key");
}

TEST_CASE("claims, classes and events are checked too") {
  CHECK(claim([](Json& o) { o["spec"].erase("resources"); }) == "spec.resources[storage]");
  CHECK(claim([](Json& o) { o["spec"]["resources"]["requests"]["storage"] = "0"; }) ==
        "spec.resources[storage]");
  CHECK(claim([](Json& o) { o["spec"].erase("accessModes"); }) == "spec.accessModes");
  const auto storage_class = [](const std::function<void(Json&)>& spoil) {
    return complaint("storageclasses", test::storage_class("s"), spoil);
  };
  CHECK(storage_class([](Json& o) { o.erase("provisioner"); }) == "provisioner");
  CHECK(storage_class([](Json& o) { o["reclaimPolicy"] = "Recycle"; }) == "reclaimPolicy");
  CHECK(storage_class([](Json& o) { o["volumeBindingMode"] = "Later"; }) == "volumeBindingMode");

  Registry registry;
  const auto event = [&](const std::string& ns, const std::string& involved) {
    Json object = {{"metadata", {{"generateName", "e"}}},
                   {"involvedObject", {{"kind", "Pod"}, {"namespace", involved}}}};
    return bad_field(registry.create("events", ns, object));
  };
  CHECK(event("default", "default").empty());
  CHECK(event("default", "").empty());
  CHECK(event("kube-public", "") == "involvedObject.namespace");
  CHECK(event("default", "kube-system") == "involvedObject.namespace");
}

TEST_CASE("several problems come in one answer, each with its field") {
  Registry registry;
  Json object = test::pod("Bad");
  object["spec"]["containers"][0].erase("image");
  const auto reply = registry.create("pods", "default", object);
  REQUIRE(reply.code == 422);
  CHECK(at(reply, "details.causes").size() == 2);
  CHECK(at(reply, "details.causes")[1]["reason"] == "FieldValueRequired");
  CHECK(reply.message().starts_with("Pod \"Bad\" is invalid: [metadata.name: Invalid value: "));
}

}  // namespace lpp::devcluster
