// SPDX-License-Identifier: Apache-2.0
// A namespace that does not let the helper pods in: told on the claim with the API server's reason,
// and no longer so when it does.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "harness/applied_objects.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

TEST_CASE("real node: a quota or limit that refuses the helper pods is told, and then healed") {
  const k8s::Resource quotas{"", "v1", "resourcequotas", "ResourceQuota", true};
  const k8s::Resource limits{"", "v1", "limitranges", "LimitRange", true};
  RealStory story("refused");
  story.may_be_forbidden = true;  // the word for what admission refuses
  story.start();
  AppliedObjects applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, "refused")));
  const auto meets = [&](const k8s::Resource& resource, const json& spec, const char* told) {
    CAPTURE(told);
    const k8s::ObjectKey refuser{kDaemonNamespace, "no-helper-pods"};
    LPP_MUST(story.admin().api().create(resource, kDaemonNamespace,
                                        {{"apiVersion", "v1"},
                                         {"kind", resource.kind},
                                         {"metadata", {{"name", refuser.name}}},
                                         {"spec", spec}}));
    const auto key = applied.key(std::string(resource.plural));
    LPP_MUST(
        applied.apply(claim_object({.key = key, .selected_node = story.bed->nodes().front()})));
    LPP_MUST(wait_event(*story.bed, "PersistentVolumeClaim", key, {"ProvisioningFailed", told}));
    LPP_MUST(story.admin().remove(resource, refuser));
    LPP_MUST(story.audit.wait_bound(key));
  };
  meets(quotas, {{"hard", {{"pods", "0"}}}}, "quota");
  const json limit = {{"type", "Pod"}, {"min", {{"memory", "1Gi"}}}};
  meets(limits, {{"limits", json::array({limit})}}, "minimum memory usage per Pod");
  LPP_MUST(applied.remove_claims());
  LPP_MUST(story.audit.wait_clean());
}

}  // namespace
}  // namespace lpp::testing
