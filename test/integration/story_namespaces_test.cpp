// SPDX-License-Identifier: Apache-2.0
// The helper pods in a namespace of their own, as the chart's value helperNamespace makes it: the
// daemon has a ServiceAccount elsewhere, the helper pods have one that may do nothing.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "devcluster/apiserver/rbac.h"
#include "devcluster/apiserver/request_log.h"
#include "harness/yaml_objects.h"
#include "places/places.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

const std::string kRendering = repository("test/chart/golden/helper-namespace.diff");

json rendered(const std::string& kind) {
  for (const json& object : LPP_MUST(read_yaml_objects(kRendering))) {
    if (object["kind"] == kind) return object;
  }
  FAIL("no " << kind << " in " << kRendering);
  return {};
}

TEST_CASE("helper pods in a namespace of their own have an account without permissions or token") {
  const json container = rendered("Deployment")["spec"]["template"]["spec"]["containers"][0];
  std::vector<std::string> args = container["command"];
  args.erase(args.begin(), args.begin() + 2);  // local-path-provisioner start
  StoryBed story(args, {.manifest = kRendering, .account_namespace = "local-path-provisioner"});
  CHECK(container["env"][0] == json({{"name", "POD_NAMESPACE"}, {"value", kDaemonNamespace}}));
  CHECK_FALSE(container.contains("volumeMounts"));
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  const std::string good = change_script(story, "setup", "exit 3");
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  wait_for_event(story, claim, "ProvisioningFailed");
  for (const auto& pod : wait_for_pods(story)) {
    CHECK(pod["spec"]["serviceAccountName"] == "local-path-helper");
    CHECK(pod["spec"]["automountServiceAccountToken"] == false);
  }
  restore_script(story, "setup", good);
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));

  const std::string helper = "system:serviceaccount:local-path-storage:local-path-helper";
  for (const auto& line : story.bed->cluster().server().rbac().used()) {
    CAPTURE(line);
    CHECK_FALSE(line.starts_with("denied"));
    // Elsewhere than in the namespace of the helper pods, only what is of the whole cluster.
    CHECK((line.starts_with("ClusterRole - ") || line.starts_with("Role local-path-storage ")));
  }
  for (const char* resource : {"pods", "persistentvolumes", "secrets", "configmaps"}) {
    for (const char* verb : {"get", "list", "create", "delete"}) {
      CHECK_FALSE(story.bed->cluster().server().rbac().allows(
          helper, {.verb = verb, .resource = resource, .ns = kDaemonNamespace}));
    }
  }
}

}  // namespace
}  // namespace lpp::testing
