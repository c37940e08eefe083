// SPDX-License-Identifier: Apache-2.0
// Contract: claims, volumes and pods, and what the controllers do with them.

#include "contract_case.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr Patience kPatience{};

json volume_object(const std::string& name, const json& claim) {
  return {
      {"apiVersion", "v1"},
      {"kind", "PersistentVolume"},
      {"metadata",
       {{"name", name},
        {"annotations", {{"pv.kubernetes.io/provisioned-by", "example.com/contract"}}}}},
      {"spec",
       {{"capacity", {{"storage", "1Gi"}}},
        {"accessModes", json::array({"ReadWriteOnce"})},
        {"persistentVolumeReclaimPolicy", "Delete"},
        {"storageClassName", claim["spec"]["storageClassName"]},
        {"hostPath", {{"path", "/tmp/contract/" + name}, {"type", "DirectoryOrCreate"}}},
        {"claimRef",
         {{"kind", "PersistentVolumeClaim"},
          {"apiVersion", "v1"},
          {"namespace", claim["metadata"]["namespace"]},
          {"name", claim["metadata"]["name"]},
          {"uid", uid_of(claim)}}}}},
  };
}

/// A class of this case's own, whose provisioner nobody plays.
struct StorageCase : ContractCase {
  explicit StorageCase(const std::string& binding_mode = "Immediate") {
    LPP_MUST(kube.create(class_object(
        {.name = ns, .provisioner = "example.com/contract", .binding_mode = binding_mode})));
  }
  ~StorageCase() { (void)kube.remove(k8s::kStorageClasses, {"", ns}); }

  json create_claim(const std::string& size = "1Gi") {
    return LPP_MUST(
        kube.create(claim_object({.key = key("claim"), .storage_class = ns, .size = size})));
  }
  json claim() { return LPP_MUST(kube.get(k8s::kPersistentVolumeClaims, key("claim"))); }
  void wait(const std::string& what, const std::function<bool(const json&)>& holds) {
    LPP_MUST(wait_until(
        what, [&]() -> std::string { return holds(claim()) ? "" : claim().dump(); }, kPatience));
  }
  void wait_for_volume(const std::string& pv, const std::string& what,
                       const std::function<bool(const json&)>& holds) {
    LPP_MUST(wait_until(
        what,
        [&]() -> std::string {
          const auto found = kube.get(k8s::kPersistentVolumes, {"", pv});
          if (!found.ok()) return found.error().message;
          return holds(*found) ? "" : found->dump();
        },
        kPatience));
  }
  void wait_until_released(const std::string& pv) {
    wait_for_volume(pv, "the volume is released", [](const json& volume) {
      return volume["status"].value("phase", "") == "Released";
    });
  }
};

TEST_CASE("quantities come back in canonical form") {
  StorageCase c;
  const json claim = c.create_claim("1024Mi");
  CHECK(claim["spec"]["resources"]["requests"]["storage"] == "1Gi");
  CHECK(claim["spec"]["volumeMode"] == "Filesystem");
  CHECK(claim["status"]["phase"] == "Pending");
}

TEST_CASE("a claim whose class binds at once names its provisioner") {
  StorageCase c;
  c.create_claim();
  c.wait("the claim names its provisioner", [](const json& claim) {
    const json notes = claim["metadata"].value("annotations", json::object());
    return notes.value("volume.kubernetes.io/storage-provisioner", "") == "example.com/contract";
  });
}

TEST_CASE("a claim whose class waits names its provisioner once a node is selected") {
  StorageCase c("WaitForFirstConsumer");
  c.create_claim();
  LPP_MUST(c.kube.merge(
      k8s::kPersistentVolumeClaims, c.key("claim"),
      {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "some-node"}}}}}}));
  c.wait("the claim names its provisioner", [](const json& claim) {
    const json notes = claim["metadata"].value("annotations", json::object());
    return notes.value("volume.kubernetes.io/storage-provisioner", "") == "example.com/contract";
  });
}

TEST_CASE("a claim that waits takes the volume made for it before it names a provisioner") {
  StorageCase c("WaitForFirstConsumer");
  const json claim = c.create_claim();
  const std::string pv = "pvc-" + uid_of(claim);
  LPP_MUST(c.kube.create(volume_object(pv, claim)));
  c.wait("the claim is bound",
         [](const json& now) { return now["status"].value("phase", "") == "Bound"; });
  CHECK_FALSE(
      c.claim()["metadata"]["annotations"].contains("volume.kubernetes.io/storage-provisioner"));
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumeClaims, c.key("claim")));
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumes, {"", pv}));
}

TEST_CASE("a volume made for a claim is bound to it, released and protected") {
  StorageCase c;
  const json claim = c.create_claim();
  const std::string pv = "pvc-" + uid_of(claim);
  const json made = LPP_MUST(c.kube.create(volume_object(pv, claim)));
  CHECK(made["spec"]["volumeMode"] == "Filesystem");
  c.wait("the claim is bound", [&](const json& now) {
    return now["status"].value("phase", "") == "Bound" && now["spec"].value("volumeName", "") == pv;
  });
  CHECK(c.claim()["status"]["capacity"]["storage"] == "1Gi");
  CHECK(c.claim()["metadata"]["finalizers"] == json::array({"kubernetes.io/pvc-protection"}));
  const json bound = LPP_MUST(c.kube.get(k8s::kPersistentVolumes, {"", pv}));
  CHECK(bound["status"]["phase"] == "Bound");
  CHECK(bound["metadata"]["finalizers"] == json::array({"kubernetes.io/pv-protection"}));

  // A bound volume is only marked when it is deleted.
  LPP_MUST(c.kube.remove(k8s::kPersistentVolumes, {"", pv}));
  CHECK(LPP_MUST(c.kube.get(k8s::kPersistentVolumes, {"", pv}))["metadata"].contains(
      "deletionTimestamp"));
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumeClaims, c.key("claim")));
  LPP_MUST(wait_until(
      "the volume is gone with its claim",
      [&]() -> std::string {
        const auto found = c.kube.find(k8s::kPersistentVolumes, {"", pv});
        return found.ok() && !found->has_value() ? "" : "it is there";
      },
      kPatience));
}

TEST_CASE("a volume whose claim is deleted is released and left to its provisioner") {
  StorageCase c;
  const json claim = c.create_claim();
  const std::string pv = "pvc-" + uid_of(claim);
  LPP_MUST(c.kube.create(volume_object(pv, claim)));
  c.wait("the claim is bound",
         [](const json& now) { return now["status"].value("phase", "") == "Bound"; });
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumeClaims, c.key("claim")));
  c.wait_until_released(pv);
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumes, {"", pv}));
}

TEST_CASE("a volume for a claim of another UID is released, not bound") {
  StorageCase c;
  json claim = c.create_claim();
  claim["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  const std::string pv = "pv-" + c.ns;
  LPP_MUST(c.kube.create(volume_object(pv, claim)));
  c.wait_until_released(pv);
  CHECK(c.claim()["status"]["phase"] == "Pending");
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumes, {"", pv}));
}

/// What whoever binds in the binder's place writes, one after the other.
struct Halves {
  StorageCase& c;
  std::string pv;

  Result<json> volume_status() {
    return c.kube.api().patch(k8s::kPersistentVolumes, {"", pv}, k8s::PatchType::kMerge,
                              {{"status", {{"phase", "Bound"}}}}, "status");
  }
  Result<json> claim() {
    return c.kube.merge(k8s::kPersistentVolumeClaims, c.key("claim"),
                        {{"metadata",
                          {{"annotations",
                            {{"pv.kubernetes.io/bind-completed", "yes"},
                             {"pv.kubernetes.io/bound-by-controller", "yes"}}}}},
                         {"spec", {{"volumeName", pv}}}});
  }
  Result<json> claim_status() {
    return c.kube.api().patch(k8s::kPersistentVolumeClaims, c.key("claim"), k8s::PatchType::kMerge,
                              {{"status",
                                {{"phase", "Bound"},
                                 {"accessModes", json::array({"ReadWriteOnce"})},
                                 {"capacity", {{"storage", "1Gi"}}}}}},
                              "status");
  }
  void are_bound() {
    c.wait("the claim is bound", [&](const json& now) {
      return now["status"].value("phase", "") == "Bound" &&
             now["spec"].value("volumeName", "") == pv &&
             now["metadata"]["annotations"].contains("pv.kubernetes.io/bind-completed");
    });
    LPP_MUST(wait_until(
        "the volume is bound",
        [&]() -> std::string {
          const auto found = c.kube.get(k8s::kPersistentVolumes, {"", pv});
          if (!found.ok()) return found.error().message;
          const std::string phase = (*found)["status"].value("phase", "");
          return phase == "Bound" ? "" : phase;
        },
        kPatience));
    CHECK(c.claim()["status"]["capacity"]["storage"] == "1Gi");
  }
  void go() {
    LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumeClaims, c.key("claim")));
    LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumes, {"", pv}));
  }
};

TEST_CASE("a binding that somebody else began is finished wherever it stopped") {
  StorageCase c("WaitForFirstConsumer");
  const json claim = c.create_claim();
  Halves halves{c, "pvc-" + uid_of(claim)};
  LPP_MUST(c.kube.create(volume_object(halves.pv, claim)));
  SUBCASE("after the volume's phase") { LPP_MUST(halves.volume_status()); }
  SUBCASE("after the claim") {
    LPP_MUST(halves.volume_status());
    LPP_MUST(halves.claim());
  }
  SUBCASE("after the claim alone") { LPP_MUST(halves.claim()); }
  SUBCASE("at its end") {
    LPP_MUST(halves.volume_status());
    LPP_MUST(halves.claim());
    LPP_MUST(halves.claim_status());
  }
  halves.are_bound();
  halves.go();
}

TEST_CASE("a claim that is said to be bound is Lost until its volume is there") {
  StorageCase c("WaitForFirstConsumer");
  const json claim = c.create_claim();
  Halves halves{c, "pvc-" + uid_of(claim)};
  LPP_MUST(halves.claim());
  c.wait("the claim is lost",
         [](const json& now) { return now["status"].value("phase", "") == "Lost"; });
  LPP_MUST(c.kube.create(volume_object(halves.pv, claim)));
  halves.are_bound();
  halves.go();
}

TEST_CASE("a write of a status is refused in another version, and whose object has another UID") {
  StorageCase c("WaitForFirstConsumer");
  const json claim = c.create_claim();
  const json seen = c.claim();
  LPP_MUST(c.kube.merge(k8s::kPersistentVolumeClaims, c.key("claim"),
                        {{"metadata", {{"annotations", {{"a", "b"}}}}}}));
  const auto write = [&](json meta) {
    return c.kube.api().patch(k8s::kPersistentVolumeClaims, c.key("claim"), k8s::PatchType::kMerge,
                              {{"metadata", std::move(meta)}, {"status", {{"phase", "Bound"}}}},
                              "status");
  };
  must_fail(write({{"resourceVersion", version_of(seen)}}), 409, "Conflict");
  must_fail(write({{"uid", "11111111-2222-3333-4444-555555555555"}}), 422, "Invalid");
  CHECK(c.claim()["status"]["phase"] == "Pending");
}

TEST_CASE("a volume that the binder took for a claim is free again when that is bound elsewhere") {
  StorageCase c("WaitForFirstConsumer");
  const json claim = c.create_claim();
  Halves halves{c, "pvc-" + uid_of(claim)};
  LPP_MUST(c.kube.create(volume_object(halves.pv, claim)));
  halves.are_bound();
  json fixed = volume_object("static-" + c.ns, claim);
  fixed["metadata"]["annotations"] = {{"pv.kubernetes.io/bound-by-controller", "yes"}};
  LPP_MUST(c.kube.create(fixed));
  c.wait_for_volume("static-" + c.ns, "the other volume is free", [](const json& volume) {
    return volume["status"].value("phase", "") == "Available" &&
           !volume["spec"].contains("claimRef");
  });
  CHECK(c.claim()["status"]["phase"] == "Bound");
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumes, {"", "static-" + c.ns}));
  halves.go();
}

TEST_CASE("the source of a volume cannot be changed") {
  StorageCase c;
  json claim = c.create_claim();
  claim["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  const std::string pv = "pv-" + c.ns;
  LPP_MUST(c.kube.create(volume_object(pv, claim)));
  must_fail(c.kube.merge(k8s::kPersistentVolumes, {"", pv},
                         {{"spec", {{"hostPath", {{"path", "/tmp/elsewhere"}}}}}}),
            422, "Invalid");
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumes, {"", pv}));
}

TEST_CASE("volumes that make no sense are Invalid") {
  StorageCase c;
  const json claim = c.create_claim();
  json volume = volume_object("pv-" + c.ns, claim);
  SUBCASE("no capacity") { volume["spec"].erase("capacity"); }
  SUBCASE("no access mode") { volume["spec"]["accessModes"] = json::array(); }
  SUBCASE("no source") { volume["spec"].erase("hostPath"); }
  SUBCASE("a way up") { volume["spec"]["hostPath"]["path"] = "/a/../b"; }
  SUBCASE("local without a node") {
    volume["spec"].erase("hostPath");
    volume["spec"]["local"] = {{"path", "/a/b"}};
  }
  must_fail(c.kube.create(volume), 422, "Invalid");
}

TEST_CASE("status and spec of a volume are written apart") {
  StorageCase c;
  json claim = c.create_claim();
  claim["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  const std::string pv = "pv-" + c.ns;
  LPP_MUST(c.kube.create(volume_object(pv, claim)));
  const k8s::ObjectKey key{"", pv};
  const json through_main = LPP_MUST(
      c.kube.merge(k8s::kPersistentVolumes, key, {{"status", {{"message", "through main"}}}}));
  CHECK(through_main["status"].value("message", "") != "through main");
  const json through_status =
      LPP_MUST(c.kube.api().patch(k8s::kPersistentVolumes, key, k8s::PatchType::kMerge,
                                  {{"status", {{"message", "through status"}}},
                                   {"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}},
                                  "status"));
  CHECK(through_status["status"]["message"] == "through status");
  CHECK(through_status["spec"]["persistentVolumeReclaimPolicy"] == "Delete");
  LPP_MUST(c.kube.remove_and_wait(k8s::kPersistentVolumes, key));
}

TEST_CASE("the spec of a claim cannot be changed, its annotations can") {
  StorageCase c;
  c.create_claim();
  must_fail(c.kube.merge(k8s::kPersistentVolumeClaims, c.key("claim"),
                         {{"spec", {{"accessModes", json::array({"ReadOnlyMany"})}}}}),
            422, "Invalid");
  LPP_MUST(c.kube.merge(k8s::kPersistentVolumeClaims, c.key("claim"),
                        {{"metadata", {{"annotations", {{"a", "b"}}}}}}));
  CHECK(c.claim()["metadata"]["annotations"]["a"] == "b");
}

TEST_CASE("a pod on a node is deleted with a grace period, one without a node at once") {
  ContractCase c;
  json free = pod_object({.key = c.key("free"), .script = "true"});
  free["spec"]["schedulerName"] = "nobody";
  c.create_pod(free);
  LPP_MUST(c.kube.remove(k8s::kPods, c.key("free")));
  must_fail(c.kube.get(k8s::kPods, c.key("free")), 404, "NotFound");

  json bound = pod_object({.key = c.key("bound"), .script = "true"});
  bound["spec"]["nodeName"] = "no-such-node";
  bound["spec"]["terminationGracePeriodSeconds"] = 30;
  c.create_pod(bound);
  LPP_MUST(c.kube.remove(k8s::kPods, c.key("bound")));
  const json deleting = LPP_MUST(c.kube.get(k8s::kPods, c.key("bound")));
  CHECK(deleting["metadata"].contains("deletionTimestamp"));
  CHECK(deleting["metadata"]["deletionGracePeriodSeconds"] == 30);
  LPP_MUST(c.kube.remove(k8s::kPods, c.key("bound"), 0));
  must_fail(c.kube.get(k8s::kPods, c.key("bound")), 404, "NotFound");
}

TEST_CASE("pods that make no sense are Invalid") {
  ContractCase c;
  json pod = pod_object({.key = c.key("pod"), .script = "true"});
  LPP_MUST(c.kube.remove_and_wait(k8s::kPods, c.key("none")));
  SUBCASE("no image") { pod["spec"]["containers"][0].erase("image"); }
  SUBCASE("no container") { pod["spec"]["containers"] = json::array(); }
  SUBCASE("a mount of nothing") {
    pod["spec"]["containers"][0]["volumeMounts"] =
        json::array({{{"name", "data"}, {"mountPath", "/data"}}});
  }
  SUBCASE("a bad name") { pod["metadata"]["name"] = "ends-with-"; }
  LPP_MUST(wait_until(
      "the namespace takes pods",
      [&]() -> std::string {
        const auto made = c.kube.create(pod);
        if (made.ok()) return "it was accepted";
        return made.error().http_status == 403 ? made.error().message : "";
      },
      kPatience));
  must_fail(c.kube.create(pod), 422, "Invalid");
}

}  // namespace
}  // namespace lpp::testing
