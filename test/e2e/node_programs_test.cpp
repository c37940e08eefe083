// SPDX-License-Identifier: Apache-2.0
// Helper pods other than the manifest's: the examples of a program without a shell, and of scripts
// that set quotas.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "disk.h"
#include "example.h"
#include "harness/applied_objects.h"
#include "places/places.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

/// The ConfigMap of the manifest with an example's data merged into it, as kustomize does; as it
/// was, when the object goes. The daemon reads config.json from its file.
class ConfiguredBy {
 public:
  ConfiguredBy(RealStory& story, const Example& example)
      : kube_(story.admin()), before_(LPP_MUST(kube_.get(k8s::kConfigMaps, key_))) {
    LPP_MUST(story.installation->write_config(example.config()));
    LPP_MUST(kube_.merge(k8s::kConfigMaps, key_, {{"data", example.other_data()}}));
  }
  ~ConfiguredBy() {
    const auto restored = kube_.merge(k8s::kConfigMaps, key_, {{"data", before_["data"]}});
    CHECK(restored.ok());
  }
  ConfiguredBy(const ConfiguredBy&) = delete;
  ConfiguredBy& operator=(const ConfiguredBy&) = delete;

 private:
  const k8s::ObjectKey key_{kDaemonNamespace, "local-path-config"};
  Kube& kube_;
  const json before_;
};

/// A claim with a pod that writes into it; gone again with its directory.
VolumeFacts use_volume(RealStory& story, AppliedObjects& applied, const std::string& name,
                       const std::string& size) {
  LPP_MUST(applied.apply(claim_object({.key = applied.key(name), .size = size})));
  LPP_MUST(applied.apply(
      pod_object({.key = applied.key(name), .claim = name, .script = "echo data >/data/file"})));
  LPP_MUST(applied.wait_succeeded(name));
  const auto facts = LPP_MUST(story.audit.wait_bound(applied.key(name)));
  CHECK(text_of(facts.disk + "/file") == "data\n");
  return facts;
}

void remove_volume(RealStory& story, AppliedObjects& applied, const std::string& name,
                   const VolumeFacts& facts) {
  LPP_MUST(story.admin().remove_and_wait(k8s::kPods, applied.key(name), {}, story.bed->patience()));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, applied.key(name)));
  LPP_MUST(story.audit.wait_deleted(applied.key(name), facts));
}

TEST_CASE("real node: the distroless example's program makes and removes volumes") {
  RealStory story("distroless");
  Example example("distroless");
  example.put("/opt/local-path-provisioner", story.bed->base_paths().front());
  const ConfiguredBy configured(story, example);
  story.start();
  auto applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "programs"));
  const auto facts = use_volume(story, applied, "distroless", "3Mi");
  CHECK(mode_and_owner(facts.disk) == "0777 0:0");
  // The image has no shell: whatever ran was the program, with the options it asks for.
  remove_volume(story, applied, "distroless", facts);
  LPP_MUST(story.audit.wait_clean());

  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real node: the quota example's scripts limit each volume and forget it") {
  RealStory story("quota", {.env = {{"ALLOW_UNSAFE_HELPER_POD_TEMPLATE", "true"}}});
  const std::string base = story.bed->base_paths().front();
  Example example("quota");
  example.put("/mnt/xfs", base);
  example.put_tools(text_of(repository("test/e2e/quota-tools.sh")));
  example.put_image("busybox:stable");
  const ConfiguredBy configured(story, example);
  story.start();
  auto applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "programs"));
  LPP_MUST(applied.apply(claim_object(
      {.key = applied.key("second"), .size = "7Mi", .selected_node = story.bed->nodes().front()})));
  const auto first = use_volume(story, applied, "first", "5Mi");
  const auto second = LPP_MUST(story.audit.wait_bound(applied.key("second")));

  const auto limit_of = [&](const VolumeFacts& facts) -> std::string {
    std::istringstream table(text_of(base + "/.projects"));
    std::string directory;
    std::string project;
    std::string limit;
    while (table >> directory >> project >> limit) {
      if (directory == facts.path) return project == "0" ? "no project" : limit;
    }
    return "not there";
  };
  CHECK(limit_of(first) == "5242880");
  CHECK(limit_of(second) == "7340032");
  remove_volume(story, applied, "first", first);
  CHECK(limit_of(first) == "0");
  CHECK(limit_of(second) == "7340032");
  LPP_MUST(applied.remove_claims());
  LPP_MUST(story.audit.wait_deleted(applied.key("second"), second));
  std::filesystem::remove(base + "/.projects");
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
