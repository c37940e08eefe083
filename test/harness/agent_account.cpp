// SPDX-License-Identifier: Apache-2.0
#include "harness/agent_account.h"

#include "agent/protocol.h"
#include "harness/kinds.h"

namespace lpp::testing {

using nlohmann::json;

Result<std::string> request_token(Kube& admin, const k8s::ObjectKey& account,
                                  const std::vector<std::string>& audiences,
                                  const std::string& pod) {
  json body{{"apiVersion", "authentication.k8s.io/v1"},
            {"kind", "TokenRequest"},
            {"spec", {{"audiences", audiences}, {"expirationSeconds", 3600}}}};
  if (!pod.empty()) {
    body["spec"]["boundObjectRef"] = {{"kind", "Pod"}, {"apiVersion", "v1"}, {"name", pod}};
  }
  k8s::Request request;
  request.method = "POST";
  request.target = k8s::object_path(kServiceAccounts, account, "token");
  request.body = body.dump();
  request.content_type = "application/json";
  LPP_ASSIGN_OR_RETURN(const auto response, admin.transport().round_trip(request, {}),
                       "token request");
  if (response.status != 201) return k8s::error_from_response(response).wrap("token request");
  const json answer = json::parse(response.body, nullptr, false);
  const auto token = answer.value("/status/token"_json_pointer, std::string());
  if (token.empty()) return Error{.message = "token request: no token in " + response.body};
  return token;
}

Result<std::string> agent_token(Kube& admin, const std::string& ns, const std::string& node,
                                std::string pod) {
  LPP_RETURN_IF_ERROR(admin.apply({{"apiVersion", "v1"},
                                   {"kind", "ServiceAccount"},
                                   {"metadata", {{"namespace", ns}, {"name", kAgentAccount}}}}),
                      "account of the agents");
  if (pod.empty()) pod = "agent-" + node;
  LPP_ASSIGN_OR_RETURN(const auto there, admin.find(k8s::kPods, {ns, pod}), "agent");
  if (!there) {
    const auto made = admin.create(
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", {{"namespace", ns}, {"name", pod}}},
         {"spec",
          {{"nodeName", node},
           {"serviceAccountName", kAgentAccount},
           {"automountServiceAccountToken", false},
           {"terminationGracePeriodSeconds", 0},
           {"tolerations", json::array({{{"operator", "Exists"}}})},
           {"containers",
            json::array(
                {{{"name", "agent"}, {"image", "busybox"}, {"command", {"sleep", "100000"}}}})}}}});
    if (!made.ok() && !made.error().is(ErrorCode::kAlreadyExists)) {
      return made.error().wrap("pod of the agent");
    }
  }
  return request_token(admin, {ns, kAgentAccount}, {std::string(agent::kAudience)}, pod);
}

}  // namespace lpp::testing
