// SPDX-License-Identifier: Apache-2.0
// A claim that grows on the real control plane and node, while a pod uses it.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "harness/applied_objects.h"
#include "harness/file_text.h"
#include "real_agents.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

struct ExpandingNode {
  explicit ExpandingNode(By by)
      : played("expand", by),
        story(*played),
        applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, "expand"))) {
    played.start();
    json storage_class = class_object({.name = "growing"});
    storage_class["allowVolumeExpansion"] = true;
    LPP_MUST(applied.apply(storage_class));
  }

  json claim(const std::string& name) {
    return LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, applied.key(name)));
  }
  /// Bound, of 1 Gi, with a pod that stays.
  VolumeFacts want(const std::string& name, const std::string& type) {
    LPP_MUST(applied.apply(claim_object({.key = applied.key(name),
                                         .storage_class = "growing",
                                         .size = "1Gi",
                                         .annotations = {{"volumeType", type}}})));
    LPP_MUST(applied.apply(
        pod_object({.key = applied.key(name), .claim = name, .script = "sleep 600"})));
    return LPP_MUST(story.audit.wait_bound(applied.key(name)));
  }
  void grow(const std::string& name, const std::string& size) {
    LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, applied.key(name),
                                 {{"spec", {{"resources", {{"requests", {{"storage", size}}}}}}}}));
    LPP_MUST(wait_until(
        name + " has " + size,
        [&]() -> std::string {
          const json status = claim(name)["status"];
          const bool has = status["capacity"]["storage"] == size &&
                           !status.contains("allocatedResourceStatuses") &&
                           status.value("conditions", json::array()).empty();
          return has ? "" : status.dump();
        },
        story.bed->patience()));
    const json volume = LPP_MUST(
        story.admin().get(k8s::kPersistentVolumes, {"", claim(name)["spec"]["volumeName"]}));
    CHECK(volume["spec"]["capacity"]["storage"] == size);
  }

  StoryBy played;
  RealStory& story;
  AppliedObjects applied;
};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: claims in use grow, with a script for their limit and without one") {
  ExpandingNode on(by);
  on.want("by-path", "hostPath");
  const auto local = on.want("local", "local");
  on.grow("by-path", "2Gi");
  on.grow("local", "2Gi");
  on.grow("local", "3Gi");
  if (by == By::kAgents) return;  // they run no scripts
  LPP_MUST(on.story.admin().merge(
      k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"},
      {{"data", {{"resize", "#!/bin/sh\necho \"$* $VOL_SIZE_BYTES\" >\"$VOL_DIR/told\"\n"}}}}));
  on.grow("local", "4Gi");
  CHECK(text_of(local.disk + "/told") ==
        "-p " + local.path + " -s 4294967296 -m Filesystem -a resize 4294967296\n");
  LPP_MUST(on.story.admin().merge(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"},
                                  {{"data", {{"resize", nullptr}}}}));
}

}  // namespace
}  // namespace lpp::testing
