// SPDX-License-Identifier: Apache-2.0
// Contract: how a claim asks for more, and what may be written down of it in its status.

#include <algorithm>
#include <vector>

#include "contract_case.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

/// A claim of 1 Gi of a class of this case's own, bound to a volume of 1 Gi.
struct ExpandCase : ContractCase {
  explicit ExpandCase(bool allowed = true) : pv("pv-" + ns) {
    json storage_class = class_object(
        {.name = ns, .provisioner = "example.com/contract", .binding_mode = "Immediate"});
    if (allowed) storage_class["allowVolumeExpansion"] = true;
    LPP_MUST(kube.create(storage_class));
    const json made = LPP_MUST(
        kube.create(claim_object({.key = key("claim"), .storage_class = ns, .size = "1Gi"})));
    LPP_MUST(kube.create(
        {{"apiVersion", "v1"},
         {"kind", "PersistentVolume"},
         {"metadata",
          {{"name", pv},
           {"annotations", {{"pv.kubernetes.io/provisioned-by", "example.com/contract"}}}}},
         {"spec",
          {{"capacity", {{"storage", "1Gi"}}},
           {"accessModes", json::array({"ReadWriteOnce"})},
           {"persistentVolumeReclaimPolicy", "Retain"},
           {"storageClassName", ns},
           {"hostPath", {{"path", "/tmp/contract/" + pv}, {"type", "DirectoryOrCreate"}}},
           {"claimRef",
            {{"kind", "PersistentVolumeClaim"},
             {"apiVersion", "v1"},
             {"namespace", ns},
             {"name", "claim"},
             {"uid", uid_of(made)}}}}}}));
    LPP_MUST(wait_until("the claim is bound",
                        [&]() -> std::string {
                          const json now = claim();
                          return now["status"].value("phase", "") == "Bound" ? "" : now.dump();
                        },
                        {}));
  }
  ~ExpandCase() {
    (void)kube.remove_and_wait(k8s::kPersistentVolumeClaims, key("claim"));
    (void)kube.remove_and_wait(k8s::kPersistentVolumes, {"", pv});
    (void)kube.remove(k8s::kStorageClasses, {"", ns});
  }

  json claim() { return LPP_MUST(kube.get(k8s::kPersistentVolumeClaims, key("claim"))); }
  Result<json> ask(const std::string& size) {
    return kube.merge(k8s::kPersistentVolumeClaims, key("claim"),
                      {{"spec", {{"resources", {{"requests", {{"storage", size}}}}}}}});
  }
  Result<json> patch_status(const json& patch) {
    return kube.api().patch(k8s::kPersistentVolumeClaims, key("claim"),
                            k8s::PatchType::kStrategicMerge, patch, "status");
  }
  Result<json> write_status(const json& status) { return patch_status({{"status", status}}); }
  std::vector<std::string> conditions() {
    std::vector<std::string> types;
    for (const json& condition : claim()["status"].value("conditions", json::array())) {
      types.push_back(condition["type"]);
    }
    std::sort(types.begin(), types.end());
    return types;
  }

  const std::string pv;
};

TEST_CASE("a bound claim may ask for more if its class says so") {
  ExpandCase c;
  const json grown = LPP_MUST(c.ask("3072Mi"));
  CHECK(grown["spec"]["resources"]["requests"]["storage"] == "3Gi");
  CHECK(grown["status"]["capacity"]["storage"] == "1Gi");
}

TEST_CASE("a claim of a class that says nothing of it cannot grow") {
  ExpandCase c(false);
  CHECK(must_fail(c.ask("2Gi"), 403, "Forbidden").find("must support resize") != std::string::npos);
  // The class is looked at when the claim changes.
  LPP_MUST(c.kube.merge(k8s::kStorageClasses, {"", c.ns}, {{"allowVolumeExpansion", true}}));
  LPP_MUST(wait_until("the class counts",
                      [&]() -> std::string {
                        const auto grown = c.ask("2Gi");
                        return grown.ok() ? "" : grown.error().message;
                      },
                      {}));
}

TEST_CASE("a claim that is not bound cannot ask for more") {
  ContractCase c;
  LPP_MUST(c.kube.create(
      claim_object({.key = c.key("claim"), .storage_class = "no-such-class", .size = "1Gi"})));
  const auto grown =
      c.kube.merge(k8s::kPersistentVolumeClaims, c.key("claim"),
                   {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}});
  REQUIRE_FALSE(grown.ok());
  CHECK((grown.error().http_status == 403 || grown.error().http_status == 422));
}

TEST_CASE("a claim may ask for less than before, but for more than it has") {
  ExpandCase c;
  LPP_MUST(c.ask("3Gi"));
  LPP_MUST(c.ask("2Gi"));
  for (const char* size : {"1Gi", "512Mi"}) {
    CAPTURE(size);
    const std::string why = must_fail(c.ask(size), 422, "Invalid");
    CHECK(why.find("field can not be less than status.capacity") != std::string::npos);
  }
  CHECK(c.claim()["spec"]["resources"]["requests"]["storage"] == "2Gi");
}

TEST_CASE("an expansion is written down in the claim's status, step by step") {
  ExpandCase c;
  LPP_MUST(c.ask("2Gi"));
  LPP_MUST(
      c.write_status({{"conditions", json::array({{{"type", "Somebody"}, {"status", "True"}}})}}));
  const json begun = LPP_MUST(c.patch_status(
      {{"metadata",
        {{"uid", uid_of(c.claim())},
         {"resourceVersion", version_of(c.claim())},
         {"annotations", {{"volume.kubernetes.io/node-expansion-not-required", nullptr}}}}},
       {"status",
        {{"allocatedResources", {{"storage", "2048Mi"}}},
         {"allocatedResourceStatuses", {{"storage", "ControllerResizeInProgress"}}},
         {"conditions", json::array({{{"type", "Resizing"},
                                      {"status", "True"},
                                      {"lastTransitionTime", "2026-05-28T20:26:40Z"}}})}}}}));
  CHECK(begun["status"]["allocatedResources"]["storage"] == "2Gi");
  CHECK(begun["status"]["allocatedResourceStatuses"]["storage"] == "ControllerResizeInProgress");
  CHECK(c.conditions() == std::vector<std::string>{"Resizing", "Somebody"});

  LPP_MUST(c.kube.merge(k8s::kPersistentVolumes, {"", c.pv},
                        {{"spec", {{"capacity", {{"storage", "2Gi"}}}}}}));
  LPP_MUST(c.patch_status(
      {{"metadata",
        {{"annotations", {{"volume.kubernetes.io/node-expansion-not-required", "true"}}}}},
       {"status",
        {{"capacity", {{"storage", "2Gi"}}},
         {"allocatedResourceStatuses", {{"storage", nullptr}}},
         {"conditions", json::array({{{"$patch", "delete"}, {"type", "Resizing"}}})}}}}));
  const json grown = c.claim();
  CHECK(grown["status"]["capacity"]["storage"] == "2Gi");
  CHECK(grown["status"]["allocatedResources"]["storage"] == "2Gi");
  CHECK_FALSE(grown["status"].contains("allocatedResourceStatuses"));
  CHECK(c.conditions() == std::vector<std::string>{"Somebody"});
  CHECK(grown["metadata"]["annotations"]["volume.kubernetes.io/node-expansion-not-required"] ==
        "true");
}

TEST_CASE("a status decided from an older claim is refused") {
  ExpandCase c;
  const json seen = c.claim();
  LPP_MUST(c.ask("2Gi"));
  const json status{{"allocatedResources", {{"storage", "2Gi"}}}};
  const json meta{{"uid", uid_of(seen)}, {"resourceVersion", version_of(seen)}};
  must_fail(c.patch_status({{"metadata", meta}, {"status", status}}), 409, "Conflict");
}

TEST_CASE("a volume's capacity is written by anybody, in any direction") {
  ExpandCase c;
  for (const char* size : {"5Gi", "2Gi"}) {
    const json volume = LPP_MUST(c.kube.merge(k8s::kPersistentVolumes, {"", c.pv},
                                              {{"spec", {{"capacity", {{"storage", size}}}}}}));
    CHECK(volume["spec"]["capacity"]["storage"] == size);
  }
}

TEST_CASE("how an expansion stands is one of five words, of a known resource") {
  ExpandCase c;
  for (const char* word : {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                           "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"}) {
    CAPTURE(word);
    LPP_MUST(c.write_status({{"allocatedResources", {{"storage", "2Gi"}}},
                             {"allocatedResourceStatuses", {{"storage", word}}}}));
  }
  must_fail(c.write_status({{"allocatedResourceStatuses", {{"storage", "Resizing"}}}}), 422,
            "Invalid");
  must_fail(c.write_status({{"allocatedResources", {{"cpu", "1"}}}}), 422, "Invalid");
}

}  // namespace
}  // namespace lpp::testing
