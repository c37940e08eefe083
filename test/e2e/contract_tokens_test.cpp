// SPDX-License-Identifier: Apache-2.0
// Contract: whose a token is, which agents show to the controller.

#include "agent/protocol.h"
#include "agent/token_reviewer.h"
#include "base/clock.h"
#include "contract_case.h"
#include "harness/agent_account.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

const std::string kAudience{agent::kAudience};

/// With a node of its own, which nobody plays.
struct TokenCase : ContractCase {
  TokenCase() {
    LPP_MUST(kube.create({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", ns}}}}));
    // Pods are refused until the namespace has its ServiceAccount.
    LPP_MUST(wait_until("the agent has a token",
                        [&]() -> std::string {
                          const auto made = agent_token(kube, ns, ns);
                          if (!made.ok()) return made.error().message;
                          token = *made;
                          return "";
                        },
                        {}));
  }
  ~TokenCase() { (void)kube.remove(k8s::kNodes, {"", ns}); }

  json review(const std::string& text, const json& audiences) {
    return LPP_MUST(kube.create({{"apiVersion", "authentication.k8s.io/v1"},
                                 {"kind", "TokenReview"},
                                 {"metadata", json::object()},
                                 {"spec", {{"token", text}, {"audiences", audiences}}}}))
        .at("status");
  }
  std::string pod() const { return "agent-" + ns; }

  SystemClock clock;
  std::string token;
};

TEST_CASE("a token bound to a pod tells account, pod and node to whom it is for") {
  TokenCase c;
  const json status = c.review(c.token, {kAudience, "another"});
  CHECK(status["authenticated"] == true);
  CHECK(status["audiences"] == json::array({kAudience}));
  const json& user = status["user"];
  CHECK(user["username"] == "system:serviceaccount:" + c.ns + ":" + kAgentAccount);
  const json& extra = user["extra"];
  CHECK(extra["authentication.kubernetes.io/pod-name"] == json::array({c.pod()}));
  CHECK(extra["authentication.kubernetes.io/node-name"] == json::array({c.ns}));
  const auto pod = LPP_MUST(c.kube.get(k8s::kPods, c.key(c.pod())));
  CHECK(extra["authentication.kubernetes.io/pod-uid"] == json::array({uid_of(pod)}));
}

TEST_CASE("a token for somebody else, or nobody's, is not authenticated") {
  TokenCase c;
  for (const json& status :
       {c.review(c.token, {"another"}), c.review("nonsense", {kAudience}),
        c.review(LPP_MUST(request_token(c.kube, c.key(kAgentAccount), {"another"}, c.pod())),
                 {kAudience})}) {
    CHECK(status.value("authenticated", false) == false);
    CHECK_FALSE(status.value("error", "").empty());
  }
}

TEST_CASE("a token is good as long as its pod is there") {
  TokenCase c;
  LPP_MUST(c.kube.remove_and_wait(k8s::kPods, c.key(c.pod()), 0));
  LPP_MUST(wait_until("the token is refused",
                      [&]() -> std::string {
                        const json status = c.review(c.token, {kAudience});
                        return status.value("authenticated", false) ? status.dump() : "";
                      },
                      {.limit = std::chrono::seconds(40)}));
}

TEST_CASE("the reviewer knows an agent by its token, and no other account") {
  TokenCase c;
  agent::TokenReviewer agents(c.kube.api(), c.clock, {c.ns, kAgentAccount});
  const auto identity = agents.check(c.token);
  if (!identity.ok()) FAIL(identity.error().message);
  CHECK(identity->node == c.ns);
  CHECK(identity->pod == c.pod());
  agent::TokenReviewer others(c.kube.api(), c.clock, {c.ns, "default"});
  CHECK(others.check(c.token).error().is(ErrorCode::kForbidden));
  // One that is bound to no pod says nothing of a node.
  const auto unbound = LPP_MUST(request_token(c.kube, c.key(kAgentAccount), {kAudience}));
  CHECK(agents.check(unbound).error().is(ErrorCode::kForbidden));
}

}  // namespace
}  // namespace lpp::testing
