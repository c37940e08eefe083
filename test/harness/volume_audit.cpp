// SPDX-License-Identifier: Apache-2.0
#include "harness/volume_audit.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/installation.h"
#include "helperpod/manifest.h"

namespace lpp::testing {

namespace {

using nlohmann::json;

Error not_yet(std::string what) {
  return Error{.code = ErrorCode::kNotFound, .message = std::move(what)};
}

bool is_ours(const json& volume) {
  const json annotations = volume["metadata"].value("annotations", json::object());
  return annotations.value("pv.kubernetes.io/provisioned-by", "") == "rancher.io/local-path";
}

VolumeFacts facts_of(const json& volume, TestBed& bed) {
  const json& spec = volume["spec"];
  VolumeFacts facts{
      .pv = volume["metadata"].value("name", ""),
      .node = volume["metadata"]["annotations"].value("local.path.provisioner/selected-node", ""),
      .reclaim_policy = spec.value("persistentVolumeReclaimPolicy", "")};
  for (const char* source : {"hostPath", "local"}) {
    if (spec.contains(source)) facts.path = spec[source].value("path", "");
  }
  facts.disk = bed.on_disk(facts.node, facts.path);
  return facts;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace

Result<VolumeFacts> VolumeAudit::bound_volume(const k8s::ObjectKey& key) {
  LPP_ASSIGN_OR_RETURN(const json claim, bed_.admin().get(k8s::kPersistentVolumeClaims, key),
                       "claim");
  const std::string phase = claim.value("status", json::object()).value("phase", "");
  if (phase != "Bound") return not_yet("claim " + key.to_string() + " is " + phase);
  const std::string uid = claim["metadata"]["uid"];
  LPP_ASSIGN_OR_RETURN(const auto volumes, bed_.admin().list(k8s::kPersistentVolumes), "volumes");
  std::vector<json> mine;
  for (const json& volume : volumes) {
    const json ref = volume["spec"].value("claimRef", json::object());
    const bool same_key = ref.value("namespace", "") == key.ns && ref.value("name", "") == key.name;
    if (ref.value("uid", "") == uid || same_key) mine.push_back(volume);
  }
  if (mine.size() != 1) {
    return not_yet(std::to_string(mine.size()) + " volumes for claim " + key.to_string());
  }
  const VolumeFacts facts = facts_of(mine[0], bed_);
  if (facts.pv != "pvc-" + uid) return not_yet("the volume is called " + facts.pv);
  std::error_code ignored;
  if (!std::filesystem::is_directory(facts.disk, ignored)) {
    return not_yet("volume " + facts.pv + " has no directory " + facts.disk);
  }
  return facts;
}

Result<VolumeFacts> VolumeAudit::wait_bound(const k8s::ObjectKey& claim) {
  VolumeFacts facts;
  const auto waited = wait_until(
      "claim " + claim.to_string() + " is bound",
      [&]() -> std::string {
        auto found = bound_volume(claim);
        if (!found.ok()) return found.error().message;
        facts = *std::move(found);
        return "";
      },
      bed_.patience());
  if (waited.ok()) return facts;
  return Error{.code = waited.error().code,
               .message = waited.error().message + "; its events:" +
                          joined(bed_.admin().events_about("PersistentVolumeClaim", claim))};
}

Result<void> VolumeAudit::deleted(const k8s::ObjectKey& claim, const VolumeFacts& volume) {
  LPP_ASSIGN_OR_RETURN(const auto found_claim,
                       bed_.admin().find(k8s::kPersistentVolumeClaims, claim), "claim");
  if (found_claim) return not_yet("the claim is there");
  LPP_ASSIGN_OR_RETURN(const auto found,
                       bed_.admin().find(k8s::kPersistentVolumes, {"", volume.pv}), "volume");
  if (found) {
    return not_yet("it is there: " + (*found)["metadata"].dump() + (*found)["status"].dump());
  }
  std::error_code ignored;
  if (std::filesystem::exists(volume.disk, ignored)) return not_yet("there is " + volume.disk);
  return {};
}

Result<void> VolumeAudit::wait_deleted(const k8s::ObjectKey& claim, const VolumeFacts& volume) {
  const auto waited = wait_until(
      "volume " + volume.pv + " is deleted",
      [&]() -> std::string {
        const auto gone = deleted(claim, volume);
        return gone.ok() ? "" : gone.error().message;
      },
      bed_.patience());
  if (waited.ok()) return {};
  return Error{.code = waited.error().code,
               .message = waited.error().message + "; its events:" +
                          joined(bed_.admin().events_about("PersistentVolume", {"", volume.pv}))};
}

std::vector<std::string> VolumeAudit::directories() {
  std::vector<std::string> found;
  for (const std::string& node : bed_.nodes()) {
    for (const std::string& base : bed_.base_paths()) {
      std::error_code error;
      std::filesystem::directory_iterator entries(bed_.on_disk(node, base), error);
      if (error) continue;  // not made yet
      for (const auto& entry : entries) {
        // The records of `local-path-provisioner node`.
        if (entry.path().filename() == ".local-path-provisioner") continue;
        found.push_back(entry.path().string());
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string VolumeAudit::leftovers() {
  const auto pods = bed_.admin().list(k8s::kPods, kDaemonNamespace,
                                      helperpod::label_selector("rancher.io/local-path"));
  if (!pods.ok()) return pods.error().message;
  std::string left;
  for (const json& pod : *pods) {
    left += "there is helper pod " + pod["metadata"].value("name", "") + " in phase " +
            pod.value("status", json::object()).value("phase", "") + "; ";
  }
  if (!left.empty()) return left;
  const auto volumes = bed_.admin().list(k8s::kPersistentVolumes);
  if (!volumes.ok()) return volumes.error().message;
  std::map<std::string, std::string> owners;
  for (const json& volume : *volumes) {
    if (!is_ours(volume)) continue;
    const VolumeFacts facts = facts_of(volume, bed_);
    const auto [it, added] = owners.emplace(facts.disk, facts.pv);
    if (!added) return facts.pv + " and " + it->second + " share " + facts.disk;
  }
  for (const std::string& directory : directories()) {
    if (owners.erase(directory) == 0) return "no volume has the directory " + directory;
  }
  if (!owners.empty()) {
    return "volume " + owners.begin()->second + " has no directory " + owners.begin()->first;
  }
  return "";
}

Result<void> VolumeAudit::wait_clean() {
  return wait_until(
      "nothing is left over", [&] { return leftovers(); }, bed_.patience());
}

Result<void> VolumeAudit::wait_empty() {
  const auto what_is_there = [&]() -> std::string {
    const auto left = directories();
    return left.empty() ? leftovers() : "there is directory " + left.front();
  };
  return wait_until("nothing is there", what_is_there, bed_.patience());
}

}  // namespace lpp::testing
