// SPDX-License-Identifier: Apache-2.0
#include "agent/token_reviewer.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/protocol.h"
#include "base/log.h"
#include "k8s/base64.h"
#include "k8s/json_access.h"

namespace lpp::agent {

namespace {

using k8s::elements;
using k8s::member, k8s::text;
using nlohmann::json;

constexpr k8s::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview",
                                      false};
constexpr std::chrono::minutes kRememberFor{2};
/// Refused tokens may be good in a moment: an account may be made after its first pod.
constexpr std::chrono::seconds kRememberRefused{10};
constexpr std::int64_t kYear2100 = 4'102'444'800;
constexpr std::size_t kMaxToken = 16UL * 1024;
constexpr const char* kExtra = "authentication.kubernetes.io/";

std::string digest_of(const std::string& token) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_Digest(token.data(), token.size(), bytes.data(), &size, EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

/// The claim `exp` of a JSON Web Token, in seconds since 1970; nothing for other tokens.
std::optional<std::int64_t> expiry_of(const std::string& token) {
  const auto first = token.find('.');
  const auto second = first == std::string::npos ? first : token.find('.', first + 1);
  if (second == std::string::npos) return std::nullopt;
  std::string payload = token.substr(first + 1, second - first - 1);
  std::replace(payload.begin(), payload.end(), '-', '+');
  std::replace(payload.begin(), payload.end(), '_', '/');
  payload.append((4 - payload.size() % 4) % 4, '=');
  const auto decoded = k8s::base64_decode(payload);
  const json claims = json::parse(decoded.value_or(""), nullptr, false);
  if (!claims.is_object()) return std::nullopt;
  const auto exp = claims.find("exp");
  if (exp == claims.end() || !exp->is_number_integer()) return std::nullopt;
  return std::clamp<std::int64_t>(exp->get<std::int64_t>(), 0, kYear2100);
}

/// The first value of that name in the user's extra.
std::string extra_of(const json& user, const std::string& name) {
  const json& values = elements(member(user, "extra"), (kExtra + name).c_str());
  return values.empty() || !values[0].is_string() ? std::string() : values[0].get<std::string>();
}

bool is_for_us(const json& status) {
  const json& audiences = elements(status, "audiences");
  return std::any_of(audiences.begin(), audiences.end(),
                     [](const json& audience) { return audience == std::string(kAudience); });
}

Error refused(ErrorCode code, std::string why) { return Error{code, std::move(why)}; }

}  // namespace

Result<AgentIdentity> TokenReviewer::check(const std::string& token) {
  if (token.empty() || token.size() > kMaxToken) {
    return refused(ErrorCode::kUnauthorized, "no token, or none that could be one");
  }
  std::string digest = digest_of(token);
  {
    MutexLock lock(mutex_);
    const auto it = index_.find(digest);
    if (it != index_.end() && clock_.now() < it->second->until) return it->second->answer;
  }
  auto answer = ask(token);
  remember(std::move(digest), answer, token);
  return answer;
}

Result<AgentIdentity> TokenReviewer::ask(const std::string& token) {
  const json review{{"apiVersion", kTokenReviews.api_version()},
                    {"kind", kTokenReviews.kind},
                    {"spec", {{"token", token}, {"audiences", {std::string(kAudience)}}}}};
  auto answer = client_.create(kTokenReviews, "", review);
  if (!answer.ok()) {
    // What the API server says of our own call says nothing of the agent.
    Error error = std::move(answer).error().wrap("review an agent's token");
    if (error.is(ErrorCode::kUnauthorized) || error.is(ErrorCode::kForbidden)) {
      error.code = ErrorCode::kUnavailable;
    }
    return error;
  }
  const json& status = member(*answer, "status");
  if (member(status, "authenticated") != true) {
    const std::string why = text(status, "error").substr(0, 500);
    return refused(ErrorCode::kUnauthorized,
                   "the API server does not know the token" + (why.empty() ? "" : ": " + why));
  }
  if (!is_for_us(status)) {
    return refused(ErrorCode::kUnauthorized,
                   fmt::format("the token is not for the audience {}", kAudience));
  }
  return identify(member(status, "user"));
}

Result<AgentIdentity> TokenReviewer::identify(const json& user) {
  const std::string name = text(user, "username");
  const std::string wanted =
      "system:serviceaccount:" + settings_.ns + ":" + settings_.service_account;
  if (name != wanted) {
    return refused(ErrorCode::kForbidden,
                   fmt::format("{} is no agent: agents are {}", log::quoted(name), wanted));
  }
  AgentIdentity identity{.node = extra_of(user, "node-name"), .pod = extra_of(user, "pod-name")};
  const std::string uid = extra_of(user, "pod-uid");
  if (identity.pod.empty() || uid.empty()) {
    return refused(ErrorCode::kForbidden,
                   "the token is not bound to a pod: mount it as a projected volume");
  }
  // API servers before Kubernetes 1.30 do not say it.
  if (identity.node.empty()) {
    LPP_ASSIGN_OR_RETURN(identity.node, node_of_pod(identity.pod, uid), "agent");
  }
  return identity;
}

Result<std::string> TokenReviewer::node_of_pod(const std::string& pod, const std::string& uid) {
  const auto found = client_.get(k8s::kPods, {settings_.ns, pod});
  if (!found.ok() && found.error().is(ErrorCode::kNotFound)) {
    return refused(ErrorCode::kForbidden, "pod " + pod + " of the token is gone");
  }
  if (!found.ok()) {
    Error error = found.error().wrap("look up the agent's pod");
    if (!error.is(ErrorCode::kCancelled)) error.code = ErrorCode::kUnavailable;
    return error;
  }
  if (text(member(*found, "metadata"), "uid") != uid) {
    return refused(ErrorCode::kForbidden, "pod " + pod + " of the token is gone");
  }
  std::string node = text(member(*found, "spec"), "nodeName");
  if (node.empty()) return refused(ErrorCode::kForbidden, "pod " + pod + " is on no node");
  return node;
}

void TokenReviewer::remember(std::string digest, Result<AgentIdentity>& answer,
                             const std::string& token) {
  const bool known = answer.ok();
  const bool is_refused = !known && (answer.error().is(ErrorCode::kUnauthorized) ||
                                     answer.error().is(ErrorCode::kForbidden));
  if (!known && !is_refused) return;
  Duration keep = known ? Duration(kRememberFor) : Duration(kRememberRefused);
  if (const auto expiry = known ? expiry_of(token) : std::nullopt) {
    const auto left = std::chrono::seconds(*expiry) - clock_.wall_now().time_since_epoch();
    keep = std::min<Duration>(keep, left);
  }
  const TimePoint until = clock_.now() + keep;
  if (known) answer->good_until = until;
  MutexLock lock(mutex_);
  if (const auto it = index_.find(digest); it != index_.end()) {
    entries_.erase(it->second);
    index_.erase(it);
  }
  // Whoever sends one bad token after the other does not push out what is known of agents.
  if (is_refused && index_.size() >= kRemembered / 2) return;
  if (index_.size() >= kRemembered) {
    index_.erase(entries_.back().digest);
    entries_.pop_back();
  }
  entries_.push_front({.digest = digest, .answer = answer, .until = until});
  index_.emplace(std::move(digest), entries_.begin());
}

}  // namespace lpp::agent
