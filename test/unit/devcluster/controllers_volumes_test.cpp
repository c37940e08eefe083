// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/clock.h"
#include "devcluster/controllers/controllers.h"
#include "devcluster/controllers/storage_names.h"
#include "devcluster/controllers/storage_rules.h"
#include "devcluster/json_names.h"
#include "node_test_support.h"

using namespace lpp;
using namespace lpp::devcluster;
using namespace lpp::devcluster::testing;
using nlohmann::json;

namespace {

constexpr const char* kClaims = "persistentvolumeclaims";
constexpr const char* kVolumes = "persistentvolumes";

/// A registry with running controllers, two nodes and two classes; nothing runs pods.
struct Bed {
  Bed() {
    for (const char* mode : {"WaitForFirstConsumer", "Immediate"}) {
      create("storageclasses", "",
             {{"metadata", {{"name", mode[0] == 'W' ? "wait" : "now"}}},
              {"provisioner", "example.com/p"},
              {"volumeBindingMode", mode}});
    }
    for (const char* name : {"n1", "n2"}) add_node(name);
    controllers.start();
  }
  ~Bed() { controllers.stop(); }

  ObjectPtr create(const std::string& resource, const std::string& ns, const json& object) {
    const Reply reply = registry.create(resource, ns, object);
    INFO(resource, ": ", reply.message());
    REQUIRE(reply.ok());
    return reply.body;
  }
  void add_node(const std::string& name) {
    create("nodes", "",
           {{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}}});
    const Reply reply = registry.patch(
        {"nodes", "", name}, PatchType::kMerge,
        {{"status", {{"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}},
        {.subresource = "status"});
    REQUIRE(reply.ok());
  }
  ObjectPtr claim(const std::string& storage_class, const std::string& name = "c") {
    return create(kClaims, "default",
                  {{"metadata", {{"name", name}}},
                   {"spec",
                    {{"storageClassName", storage_class},
                     {"accessModes", {"ReadWriteOnce"}},
                     {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}});
  }
  static json volume(const std::string& name, const std::string& storage_class) {
    return {{"metadata", {{"name", name}, {"annotations", {{kProvisionedBy, "example.com/p"}}}}},
            {"spec",
             {{"storageClassName", storage_class},
              {"capacity", {{"storage", "2Gi"}}},
              {"accessModes", {"ReadWriteOnce"}},
              {"persistentVolumeReclaimPolicy", "Delete"},
              {"hostPath", {{"path", "/x"}}}}}};
  }
  static json claimed(json volume, const json& claim) {
    volume["spec"]["claimRef"] = {{"kind", "PersistentVolumeClaim"},
                                  {"namespace", namespace_of(claim)},
                                  {"name", name_of(claim)},
                                  {"uid", uid_of(claim)}};
    return volume;
  }
  ObjectPtr pod(const std::string& name = "p", const std::string& claim = "c",
                const json& more = json::object()) {
    json spec{{"containers", json::array({{{"name", "m"}, {"image", "busybox"}}})},
              {"volumes",
               json::array({{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}}})}};
    spec.update(more);
    return create("pods", "default", {{"metadata", {{"name", name}}}, {"spec", spec}});
  }
  bool claim_is(const std::function<bool(const json&)>& condition, const std::string& name = "c") {
    return wait_for(registry, {kClaims, "default", name},
                    [&](const json* c) { return c != nullptr && condition(*c); });
  }
  bool volume_phase(const std::string& name, const std::string& phase) {
    return wait_for(registry, {kVolumes, "", name}, [&](const json* v) {
      return v != nullptr && text_at(*v, {"status", "phase"}) == phase;
    });
  }
  bool pod_is_on(const std::string& node, const std::string& name = "p") {
    return wait_for(registry, {"pods", "default", name}, [&](const json* p) {
      return p != nullptr && text_at(*p, {"spec", "nodeName"}) == node;
    });
  }
  bool has_event(const std::string& reason, const std::string& text = {}) {
    return wait_for(registry, {"events", "default", ""}, [&](const json*) {
      for (const ObjectPtr& event : registry.all("events")) {
        if (text_at(*event, {"reason"}) == reason &&
            text_at(*event, {"message"}).find(text) != std::string_view::npos) {
          return true;
        }
      }
      return false;
    });
  }
  bool gone(const std::string& resource, const std::string& ns, const std::string& name) {
    return wait_for(registry, {resource, ns, name}, [](const json* o) { return o == nullptr; });
  }

  SystemClock clock;
  Registry registry;
  Controllers controllers{registry, clock};
};

bool is_bound(const json& claim) { return text_at(claim, {"status", "phase"}) == "Bound"; }
bool has_node(const json& claim) { return has_annotation(claim, kSelectedNode); }
bool is_asked_for(const json& claim) {
  return annotation(claim, kStorageProvisioner) == "example.com/p" &&
         annotation(claim, kBetaStorageProvisioner) == "example.com/p";
}

}  // namespace

TEST_CASE("quantities can be compared") {
  CHECK(quantity_value("1Gi") == 1024.0L * 1024 * 1024);
  CHECK(quantity_value("1500M") < quantity_value("1.5Gi"));
  CHECK(quantity_value("5") == 5);
  CHECK(quantity_value("500m") == 0.5L);
  CHECK(quantity_value("1k") == 1000);
  CHECK(quantity_value("nonsense") == 0);
}

TEST_CASE("an Immediate claim asks its provisioner at once") {
  Bed bed;
  bed.claim("now");
  CHECK(bed.claim_is(is_asked_for));
  CHECK(bed.has_event("ExternalProvisioning", "example.com/p"));
}

TEST_CASE("a WaitForFirstConsumer claim asks only once a node is selected") {
  Bed bed;
  bed.claim("wait");
  REQUIRE(bed.has_event("WaitForFirstConsumer"));
  CHECK_FALSE(is_asked_for(*bed.registry.find(kClaims, "default", "c")));
  bed.pod();
  CHECK(bed.claim_is(has_node));
  CHECK(bed.claim_is(is_asked_for));
  CHECK(text_at(*bed.registry.find("pods", "default", "p"), {"spec", "nodeName"}).empty());
}

TEST_CASE("a claim without a class that exists says so") {
  Bed bed;
  bed.claim("nowhere");
  CHECK(bed.has_event("ProvisioningFailed", "storageclass.storage.k8s.io \"nowhere\" not found"));
  bed.create("storageclasses", "",
             {{"metadata", {{"name", "nowhere"}}}, {"provisioner", "example.com/p"}});
  CHECK(bed.claim_is(is_asked_for));
}

TEST_CASE("a provisioned volume is bound to its claim and the pod to its node") {
  Bed bed;
  const ObjectPtr claim = bed.claim("wait");
  bed.pod();
  REQUIRE(bed.claim_is(has_node));
  const std::string node(annotation(*bed.registry.find(kClaims, "default", "c"), kSelectedNode));
  bed.create(kVolumes, "", Bed::claimed(Bed::volume("pv", "wait"), *claim));
  REQUIRE(bed.claim_is(is_bound));
  CHECK(bed.volume_phase("pv", "Bound"));
  const ObjectPtr bound = bed.registry.find(kClaims, "default", "c");
  CHECK(text_at(*bound, {"spec", "volumeName"}) == "pv");
  CHECK(annotation(*bound, kBindCompleted) == "yes");
  CHECK(annotation(*bound, kBoundByController) == "yes");
  CHECK(text_at(*bound, {"status", "capacity", "storage"}) == "2Gi");
  CHECK(bound->at("status").at("accessModes") == json{"ReadWriteOnce"});
  // The volume came with its claimRef, so it was not us who bound that side.
  CHECK_FALSE(has_annotation(*bed.registry.find(kVolumes, "", "pv"), kBoundByController));
  CHECK(bed.pod_is_on(node));
  CHECK(bed.has_event("Scheduled", node));
}

TEST_CASE("an available volume that fits is bound, the smallest one first") {
  Bed bed;
  json small = Bed::volume("small", "now");
  small["spec"]["capacity"]["storage"] = "512Mi";
  json other_class = Bed::volume("other", "wait");
  json large = Bed::volume("large", "now");
  large["spec"]["capacity"]["storage"] = "5Gi";
  for (const json& v : {small, other_class, large, Bed::volume("fits", "now")}) {
    bed.create(kVolumes, "", v);
  }
  for (const char* name : {"small", "other", "large", "fits"}) {
    REQUIRE(bed.volume_phase(name, "Available"));
  }
  bed.claim("now");
  REQUIRE(bed.claim_is(is_bound));
  CHECK(text_at(*bed.registry.find(kClaims, "default", "c"), {"spec", "volumeName"}) == "fits");
  CHECK(has_annotation(*bed.registry.find(kVolumes, "", "fits"), kBoundByController));
}

TEST_CASE("a volume is Released when its claim is gone, also under a new claim of the same name") {
  Bed bed;
  const ObjectPtr claim = bed.claim("now");
  bed.create(kVolumes, "", Bed::claimed(Bed::volume("pv", "now"), *claim));
  REQUIRE(bed.claim_is(is_bound));
  REQUIRE(bed.registry.remove({kClaims, "default", "c"}).ok());
  REQUIRE(bed.gone(kClaims, "default", "c"));
  bed.claim("now");
  CHECK(bed.volume_phase("pv", "Released"));
  CHECK(bed.claim_is(is_asked_for));
  CHECK_FALSE(is_bound(*bed.registry.find(kClaims, "default", "c")));
}

TEST_CASE("a volume for a claim that was deleted meanwhile is Released") {
  Bed bed;
  const ObjectPtr claim = bed.claim("now");
  REQUIRE(bed.registry.remove({kClaims, "default", "c"}).ok());
  REQUIRE(bed.gone(kClaims, "default", "c"));
  bed.create(kVolumes, "", Bed::claimed(Bed::volume("pv", "now"), *claim));
  CHECK(bed.volume_phase("pv", "Released"));
}

TEST_CASE("a claim whose volume vanished is Lost") {
  Bed bed;
  const ObjectPtr claim = bed.claim("now");
  bed.create(kVolumes, "", Bed::claimed(Bed::volume("pv", "now"), *claim));
  REQUIRE(bed.claim_is(is_bound));
  const auto force = [](json& v) {
    v["metadata"]["finalizers"] = json::array();
    return true;
  };
  REQUIRE(bed.registry.remove({kVolumes, "", "pv"}).ok());
  REQUIRE(bed.registry.modify({kVolumes, "", "pv"}, force).ok());
  CHECK(bed.claim_is([](const json& c) { return text_at(c, {"status", "phase"}) == "Lost"; }));
  CHECK(bed.has_event("ClaimLost"));
}

TEST_CASE("a claim in use is deleted only after its pod") {
  Bed bed;
  const ObjectPtr claim = bed.claim("now");
  bed.create(kVolumes, "", Bed::claimed(Bed::volume("pv", "now"), *claim));
  bed.pod();
  REQUIRE(wait_for(bed.registry, {"pods", "default", "p"}, [](const json* p) {
    return !text_at(*p, {"spec", "nodeName"}).empty();
  }));
  REQUIRE(bed.registry.remove({kClaims, "default", "c"}).ok());
  REQUIRE(bed.claim_is([](const json& c) { return is_deleting(c); }));
  CHECK(bed.volume_phase("pv", "Bound"));
  CHECK(bed.registry.find(kClaims, "default", "c") != nullptr);
  REQUIRE(bed.registry.remove({"pods", "default", "p"}, {.grace_period = std::chrono::seconds(0)})
              .ok());
  CHECK(bed.gone(kClaims, "default", "c"));
  CHECK(bed.volume_phase("pv", "Released"));
}

TEST_CASE("a pod waits for claims that are missing or unbound, and says why") {
  Bed bed;
  bed.pod();
  CHECK(bed.has_event("FailedScheduling", "persistentvolumeclaim \"c\" not found"));
  const ObjectPtr claim = bed.claim("now");
  CHECK(bed.has_event("FailedScheduling", "pod has unbound immediate PersistentVolumeClaims"));
  json volume = Bed::claimed(Bed::volume("pv", "now"), *claim);
  volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = json::array(
      {{{"matchExpressions",
         json::array(
             {{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", {"n2"}}}})}}});
  bed.create(kVolumes, "", volume);
  CHECK(bed.pod_is_on("n2"));
}

TEST_CASE("another node is chosen after a provisioner has refused the first one") {
  Bed bed;
  bed.claim("wait");
  bed.pod();
  REQUIRE(bed.claim_is(has_node));
  const auto refuse = [](json& c) {
    c["metadata"]["annotations"].erase(std::string(kSelectedNode));
    return true;
  };
  REQUIRE(bed.registry.modify({kClaims, "default", "c"}, refuse).ok());
  CHECK(bed.claim_is(has_node));
}

TEST_CASE("nodes are chosen by readiness, taints, selectors and load") {
  Bed bed;
  const auto spec = [&](const json& change) {
    REQUIRE(bed.registry.patch({"nodes", "", "n1"}, PatchType::kMerge, change).ok());
  };
  bed.claim("now");
  const auto bind = [&] {
    bed.create(kVolumes, "",
               Bed::claimed(Bed::volume("pv", "now"), *bed.registry.find(kClaims, "default", "c")));
  };
  SUBCASE("cordoned") {
    spec({{"spec", {{"unschedulable", true}}}});
    bind();
    bed.pod();
    CHECK(bed.pod_is_on("n2"));
  }
  SUBCASE("tainted") {
    spec({{"spec", {{"taints", json::array({{{"key", "k"}, {"effect", "NoSchedule"}}})}}}});
    bind();
    bed.pod();
    CHECK(bed.pod_is_on("n2"));
  }
  SUBCASE("selected") {
    bind();
    bed.pod("p", "c", {{"nodeSelector", {{"kubernetes.io/hostname", "n1"}}}});
    CHECK(bed.pod_is_on("n1"));
  }
  SUBCASE("nothing fits until something does") {
    bind();
    bed.pod("p", "c", {{"nodeSelector", {{"disk", "fast"}}}});
    CHECK(bed.has_event("FailedScheduling", "0/2 nodes are available: 2 node(s) didn't match"));
    spec({{"metadata", {{"labels", {{"disk", "fast"}}}}}});
    CHECK(bed.pod_is_on("n1"));
  }
  SUBCASE("spread") {
    bind();
    for (const char* name : {"a", "b", "c", "d"}) {
      bed.pod(name);
      REQUIRE(wait_for(bed.registry, {"pods", "default", name}, [](const json* p) {
        return !text_at(*p, {"spec", "nodeName"}).empty();
      }));
    }
    int on_first = 0;
    for (const ObjectPtr& pod : bed.registry.all("pods")) {
      on_first += text_at(*pod, {"spec", "nodeName"}) == "n1" ? 1 : 0;
    }
    CHECK(on_first == 2);
  }
}

TEST_CASE("pods of a node that is gone are collected") {
  Bed bed;
  bed.create("pods", "default",
             {{"metadata", {{"name", "p"}}},
              {"spec",
               {{"nodeName", "n1"},
                {"containers", json::array({{{"name", "m"}, {"image", "busybox"}}})}}}});
  REQUIRE(bed.registry.remove({"nodes", "", "n1"}).ok());
  CHECK(bed.gone("pods", "default", "p"));
}

TEST_CASE("objects go after the last of their owners") {
  Bed bed;
  const ObjectPtr one = bed.create("configmaps", "default", {{"metadata", {{"name", "one"}}}});
  const ObjectPtr two = bed.create("configmaps", "default", {{"metadata", {{"name", "two"}}}});
  json owners = json::array();
  for (const ObjectPtr& owner : {one, two}) {
    owners.push_back({{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"name", name_of(*owner)},
                      {"uid", uid_of(*owner)}});
  }
  bed.create("configmaps", "default",
             {{"metadata", {{"name", "owned"}, {"ownerReferences", owners}}}});
  json only_one = json::array({owners[0]});
  bed.create("configmaps", "default",
             {{"metadata", {{"name", "of-one"}, {"ownerReferences", only_one}}}});
  REQUIRE(bed.registry.remove({"configmaps", "default", "one"}).ok());
  REQUIRE(bed.gone("configmaps", "default", "of-one"));
  CHECK(bed.registry.find("configmaps", "default", "owned") != nullptr);
  REQUIRE(bed.registry.remove({"configmaps", "default", "two"}).ok());
  CHECK(bed.gone("configmaps", "default", "owned"));
}

TEST_CASE("a StatefulSet makes claims and pods by ordinal") {
  Bed bed;
  json set{{"metadata", {{"name", "web"}}},
           {"spec",
            {{"replicas", 2},
             {"serviceName", "web"},
             {"selector", {{"matchLabels", {{"app", "web"}}}}},
             {"template",
              {{"metadata", {{"labels", {{"app", "web"}}}}},
               {"spec", {{"containers", json::array({{{"name", "m"}, {"image", "busybox"}}})}}}}},
             {"volumeClaimTemplates",
              json::array({{{"metadata", {{"name", "data"}}},
                            {"spec",
                             {{"storageClassName", "wait"},
                              {"accessModes", {"ReadWriteOnce"}},
                              {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}})}}}};
  const auto exists = [&](const std::string& resource, const std::string& name) {
    return wait_for(bed.registry, {resource, "default", name},
                    [](const json* o) { return o != nullptr; });
  };
  SUBCASE("all at once") {
    set["spec"]["podManagementPolicy"] = "Parallel";
    bed.create("statefulsets", "default", set);
    CHECK(exists("pods", "web-0"));
    CHECK(exists("pods", "web-1"));
    CHECK(exists(kClaims, "data-web-1"));
    CHECK(bed.claim_is(has_node, "data-web-0"));
    const Reply scaled = bed.registry.patch({"statefulsets", "default", "web"}, PatchType::kMerge,
                                            {{"spec", {{"replicas", 1}}}});
    REQUIRE(scaled.ok());
    CHECK(bed.gone("pods", "default", "web-1"));
    CHECK(bed.registry.find(kClaims, "default", "data-web-1") != nullptr);
  }
  SUBCASE("and a claim again for a pod that has lost it before it ran") {
    bed.create("statefulsets", "default", set);
    REQUIRE(bed.claim_is(has_node, "data-web-0"));
    const std::string first(uid_of(*bed.registry.find(kClaims, "default", "data-web-0")));
    REQUIRE(bed.registry.remove({kClaims, "default", "data-web-0"}).ok());
    CHECK(bed.claim_is([&](const json& c) { return uid_of(c) != first; }, "data-web-0"));
  }
  SUBCASE("one after the other") {
    bed.create("statefulsets", "default", set);
    REQUIRE(exists("pods", "web-0"));
    CHECK(bed.claim_is(has_node, "data-web-0"));
    CHECK(bed.registry.find("pods", "default", "web-1") == nullptr);
  }
}
