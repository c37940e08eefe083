// SPDX-License-Identifier: Apache-2.0
#include "agent/certificates.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "k8s/base64.h"
#include "k8s/json_access.h"

namespace lpp::agent {

namespace {

using nlohmann::json;
using std::chrono::hours;

constexpr k8s::Resource kSecrets{"", "v1", "secrets", "Secret", true};

constexpr hours kAuthorityLife{24 * 3650};
constexpr hours kServerLife{24 * 90};
/// Agents see a new authority within minutes; a node may be away for longer.
constexpr hours kShownBefore{24 * 30};
constexpr int kTries = 3;

constexpr const char* kAuthorityName = "local-path-provisioner agents";

std::optional<CertificateFacts> facts_of(const KeyPair& pair, WallTime now) {
  auto facts = inspect(pair);
  if (!facts.ok() || facts->not_after <= now || facts->not_before > now) return std::nullopt;
  return std::move(*facts);
}

WallTime renewal_of(const CertificateFacts& facts) {
  return facts.not_before + (facts.not_after - facts.not_before) * 2 / 3;
}

bool has_names(const CertificateFacts& facts, std::vector<std::string> names) {
  auto have = facts.names;
  std::sort(have.begin(), have.end());
  std::sort(names.begin(), names.end());
  return have == names;
}

std::string decoded(const json& data, const char* name) {
  return k8s::base64_decode(k8s::text(data, name)).value_or("");
}

Keys keys_of(const json& secret) {
  const json& data = k8s::member(secret, "data");
  return {.authority = {decoded(data, "ca.crt"), decoded(data, "ca.key")},
          .next = {decoded(data, "next-ca.crt"), decoded(data, "next-ca.key")},
          .former = decoded(data, "former-ca.crt"),
          .server = {decoded(data, "tls.crt"), decoded(data, "tls.key")}};
}

json data_of(const Keys& keys) {
  json data = json::object();
  const auto put = [&data](const char* name, const std::string& value) {
    if (!value.empty()) data[name] = k8s::base64_encode(value);
  };
  put("ca.crt", keys.authority.certificate);
  put("ca.key", keys.authority.key);
  put("next-ca.crt", keys.next.certificate);
  put("next-ca.key", keys.next.key);
  put("former-ca.crt", keys.former);
  put("tls.crt", keys.server.certificate);
  put("tls.key", keys.server.key);
  return data;
}

json object(const k8s::Resource& resource, const std::string& ns, const std::string& name) {
  return {{"apiVersion", resource.api_version()},
          {"kind", resource.kind},
          {"metadata",
           {{"namespace", ns},
            {"name", name},
            {"labels", {{"app.kubernetes.io/name", "local-path-provisioner"}}}}}};
}

/// Of an object that somebody else may have changed in any way.
void set_member(json& in, const char* name, json value) {
  if (!in.is_object()) in = json::object();
  in[name] = std::move(value);
}

}  // namespace

std::string Keys::bundle() const { return authority.certificate + next.certificate + former; }

Result<Keys> renewed(const Keys& keys, const std::vector<std::string>& names, WallTime now) {
  Keys wanted = keys;
  auto authority = facts_of(wanted.authority, now);
  const auto next = facts_of(wanted.next, now);
  if (!next) wanted.next = {};
  if (!authority && next) {
    wanted.authority = std::exchange(wanted.next, {});
    authority = next;
  }
  if (!authority) {
    LPP_ASSIGN_OR_RETURN(wanted.authority, make_authority(kAuthorityName, now, kAuthorityLife),
                         "authority");
    authority = facts_of(wanted.authority, now);
    wanted.former = {};
  } else if (renewal_of(*authority) <= now && wanted.next.empty()) {
    LPP_ASSIGN_OR_RETURN(wanted.next, make_authority(kAuthorityName, now, kAuthorityLife),
                         "next authority");
  } else if (!wanted.next.empty() && next && next->not_before + kShownBefore <= now) {
    wanted.former = wanted.authority.certificate;
    wanted.authority = std::exchange(wanted.next, {});
    authority = next;
  }
  const auto server = facts_of(wanted.server, now);
  const bool trusted = is_signed_by(wanted.server.certificate, wanted.authority.certificate) ||
                       is_signed_by(wanted.server.certificate, wanted.former);
  if (!server || !trusted || !has_names(*server, names) || renewal_of(*server) <= now) {
    // No certificate outlives its authority.
    const auto left =
        std::chrono::duration_cast<hours>(authority ? authority->not_after - now : kServerLife);
    LPP_ASSIGN_OR_RETURN(
        wanted.server,
        issue_server(wanted.authority, names, now, std::min<hours>(kServerLife, left)), "server");
  }
  return wanted;
}

WallTime next_renewal(const Keys& keys, WallTime now) {
  WallTime first = now + hours(24);
  const auto sooner = [&first](WallTime time) { first = std::min(first, time); };
  if (const auto facts = facts_of(keys.server, now)) sooner(renewal_of(*facts));
  if (const auto facts = facts_of(keys.next, now)) {
    sooner(facts->not_before + kShownBefore);
  } else if (const auto authority = facts_of(keys.authority, now)) {
    sooner(renewal_of(*authority));
  }
  return first;
}

Result<void> Certificates::keep(const k8s::Resource& resource, const std::string& name,
                                const DataFrom& wanted) {
  const k8s::ObjectKey key{settings_.ns, name};
  const std::string what = std::string(resource.kind) + " " + key.to_string();
  Error last;
  for (int i = 0; i < kTries; ++i) {
    auto found = client_.get(resource, key);
    const bool is_new = !found.ok() && found.error().is(ErrorCode::kNotFound);
    if (!found.ok() && !is_new) return std::move(found).error().wrap(what);
    json there = is_new ? object(resource, key.ns, key.name) : std::move(*found);
    LPP_ASSIGN_OR_RETURN(json data, wanted(there), what);
    if (!is_new && k8s::member(there, "data") == data) return {};
    set_member(there, "data", std::move(data));
    auto written =
        is_new ? client_.create(resource, key.ns, there) : client_.update(resource, key, there);
    if (written.ok()) return {};
    last = std::move(written).error().wrap(what);
    // Somebody else was quicker; or it was deleted in between.
    const bool again = last.is(ErrorCode::kConflict) || last.is(ErrorCode::kAlreadyExists) ||
                       last.is(ErrorCode::kNotFound);
    if (!again) return last;
  }
  return last;
}

ServerTls Certificates::shown(const Keys& keys) const {
  return {.server = keys.server, .look_again = next_renewal(keys, clock_.wall_now())};
}

Result<ServerTls> Certificates::ensure() {
  Keys keys;
  const auto renew = [&](const json& secret) -> Result<json> {
    const Keys there = keys_of(secret);
    LPP_ASSIGN_OR_RETURN(keys, renewed(there, settings_.names, clock_.wall_now()), "certificates");
    // What somebody has put beside them is not worth a write.
    return keys == there ? k8s::member(secret, "data") : data_of(keys);
  };
  LPP_RETURN_IF_ERROR(keep(kSecrets, settings_.secret, renew), "agents");
  const auto bundle = [&](const json&) -> Result<json> { return json{{"ca.crt", keys.bundle()}}; };
  LPP_RETURN_IF_ERROR(keep(k8s::kConfigMaps, settings_.config_map, bundle), "agents");
  return shown(keys);
}

Result<ServerTls> Certificates::read() {
  const k8s::ObjectKey key{settings_.ns, settings_.secret};
  LPP_ASSIGN_OR_RETURN(const json secret, client_.get(kSecrets, key),
                       "agents: Secret " + key.to_string());
  const Keys keys = keys_of(secret);
  if (!facts_of(keys.server, clock_.wall_now())) {
    return Error{ErrorCode::kNotFound,
                 "agents: Secret " + key.to_string() + " holds no certificate that is valid now"};
  }
  return shown(keys);
}

}  // namespace lpp::agent
