// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devcluster/apiserver/api_handler.h"
#include "devcluster/apiserver/status.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

constexpr const char* kExtra = "authentication.kubernetes.io/";
constexpr int kShortest = 600;  // seconds

std::vector<std::string> texts_of(const Json& array) {
  std::vector<std::string> texts;
  if (!array.is_array()) return texts;
  for (const auto& item : array) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

/// "system:serviceaccount:NAMESPACE:NAME"; both empty for other users.
std::pair<std::string, std::string> account_of(const std::string& user) {
  constexpr std::string_view kStart = "system:serviceaccount:";
  if (!user.starts_with(kStart)) return {};
  const auto colon = user.find(':', kStart.size());
  if (colon == std::string::npos) return {};
  return {user.substr(kStart.size(), colon - kStart.size()), user.substr(colon + 1)};
}

}  // namespace

ApiHandler::Answer ApiHandler::request_token(const Call& call) {
  const auto& path = call.path;
  const Reply account = registry_.get({"serviceaccounts", path.ns, path.name});
  if (!account.ok()) return plain(account);
  const Json& spec = child(call.body, "spec");
  const Json& seconds = child(spec, "expirationSeconds");
  if (seconds.is_number_integer() && seconds.get<std::int64_t>() < kShortest) {
    return plain(invalid_kind("authentication.k8s.io", "TokenRequest", "",
                              {{.kind = FieldError::Kind::kInvalid,
                                .field = "spec.expirationSeconds",
                                .detail = "may not specify a duration less than 10 minutes",
                                .value = dump(seconds)}}));
  }
  TokenFacts facts{.user = "system:serviceaccount:" + path.ns + ":" + path.name,
                   .audiences = texts_of(child(spec, "audiences"))};
  if (facts.audiences.empty()) facts.audiences = {Tokens::kApiServer};
  const Json& bound = child(spec, "boundObjectRef");
  if (text_at(bound, {"kind"}) == "Pod") {
    facts.pod = text_at(bound, {"name"});
    const Reply pod = registry_.get({"pods", path.ns, facts.pod});
    if (!pod.ok()) return plain(pod);
    facts.pod_uid = text_at(*pod.body, {"metadata", "uid"});
    facts.node = text_at(*pod.body, {"spec", "nodeName"});
    const std::string uid = text_at(bound, {"uid"});
    if (!uid.empty() && uid != facts.pod_uid) {
      return plain(make_status(409, "Conflict",
                               "the UID in the bound object reference (" + uid +
                                   ") does not match the UID in record (" + facts.pod_uid + ")"));
    }
    if (text_at(*pod.body, {"spec", "serviceAccountName"}) != path.name) {
      return plain(bad_request("cannot bind token for serviceaccount \"" + path.name +
                               "\" to pod running with different serviceaccount name."));
    }
  }
  Json review = call.body;
  review["kind"] = "TokenRequest";
  review["apiVersion"] = "authentication.k8s.io/v1";
  review["spec"]["audiences"] = facts.audiences;
  review["status"] = {{"token", tokens_.mint(std::move(facts))},
                      {"expirationTimestamp", "2099-01-01T00:00:00Z"}};
  return Answer{.code = 201, .body = dump(review)};
}

Json ApiHandler::review_token(const Json& spec) const {
  const auto refused = [](const std::string& why) {
    return Json{{"user", Json::object()}, {"error", why}};
  };
  const auto facts = tokens_.facts_of(text_at(spec, {"token"}));
  if (!facts) return refused("invalid bearer token");
  auto wanted = texts_of(child(spec, "audiences"));
  if (wanted.empty()) wanted = {Tokens::kApiServer};
  std::vector<std::string> both;
  for (const auto& audience : wanted) {
    const auto& have = facts->audiences;
    if (std::find(have.begin(), have.end(), audience) != have.end()) both.push_back(audience);
  }
  if (both.empty()) return refused("token audiences are not those that are asked for");
  const auto [ns, name] = account_of(facts->user);
  // The tests' own users and tokens have no account.
  if (!facts->pod.empty()) {
    if (!registry_.get({"serviceaccounts", ns, name}).ok()) {
      return refused("serviceaccounts \"" + name + "\" not found");
    }
    const Reply pod = registry_.get({"pods", ns, facts->pod});
    if (!pod.ok() || text_at(*pod.body, {"metadata", "uid"}) != facts->pod_uid) {
      return refused("pods \"" + facts->pod + "\" not found");
    }
  }
  Json user{{"username", facts->user}};
  if (!ns.empty()) {
    user["groups"] = {"system:serviceaccounts", "system:serviceaccounts:" + ns,
                      "system:authenticated"};
  }
  const auto add = [&user](const char* what, const std::string& value) {
    if (!value.empty()) user["extra"][kExtra + std::string(what)] = Json::array({value});
  };
  add("pod-name", facts->pod);
  add("pod-uid", facts->pod_uid);
  add("node-name", facts->node);
  return {{"authenticated", true}, {"user", std::move(user)}, {"audiences", both}};
}

}  // namespace lpp::devcluster
