// SPDX-License-Identifier: Apache-2.0
#include "cli/sweeping.h"

#include "base/parse_time.h"
#include "base/paths.h"
#include "base/strings.h"
#include "cli/adoption.h"
#include "config/base_path.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"
#include "provisioner/volume_node.h"
#include "text/dns_names.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

using nlohmann::json;

Error refuse(std::string message) { return {ErrorCode::kConflict, std::move(message)}; }

Result<void> check_record(const Orphan& orphan, const std::vector<Orphan>& orphans) {
  if (orphan.why == Orphan::kNoRecord) {
    return refuse("no record tells whose it is: adopt it first, or remove it on the node");
  }
  if (orphan.why == Orphan::kUnfinished) {
    return refuse(
        "what was interrupted and holds nothing the provisioner's agent ends itself, and the rest "
        "`local-path-provisioner node recover` on the node: " +
        orphan.message);
  }
  if (!orphan.has_record()) return refuse("it is not known what it is: " + orphan.why);
  if (!text::is_dns_subdomain(orphan.volume)) {
    return refuse("its record does not tell which volume it was: remove it on the node");
  }
  for (const Orphan& other : orphans) {
    if (other.node != orphan.node || other.path == orphan.path) continue;
    const bool inside = strictly_below(other.path, orphan.path);
    if (inside || (other.has_record() && overlaps(other.path, orphan.path))) {
      return refuse("it overlaps " + other.path +
                    ", which is on the node as well: adopt or sweep that one first");
    }
  }
  return {};
}

/// A record may be older than what is in the directory, and tell of an earlier claim: the name is
/// the claim's only where it holds its UID. Else a claim of that name may have its data there, by
/// another node or path.
Result<void> check_name(const Orphan& orphan, const ClusterView& view) {
  const std::string name = orphan.path.substr(orphan.path.rfind('/') + 1);
  const bool is_of_uid = !orphan.uid.empty() && name.find(orphan.uid) != std::string::npos;
  if (is_of_uid || orphan.claim.name.empty()) return {};
  const std::string claim = "claim " + orphan.claim.to_string();
  if (view.claims.get(orphan.claim) != nullptr) {
    return refuse(claim + " is there, and may have its data in a directory of that name: look " +
                  "where it is, and remove this one on the node");
  }
  const auto of_claim = [&](const k8s::PersistentVolume& volume) {
    return volume.claim == orphan.claim;
  };
  if (const auto volume = find_volume_if(view, of_claim)) {
    return refuse("volume " + volume->meta.name + " is of " + claim +
                  ", and may have its data in a directory of that name: look where it is");
  }
  return {};
}

/// What to do with what was made for a claim that is there: another directory may be its volume's.
std::string advice_for(const k8s::PersistentVolumeClaim& claim, const Orphan& orphan,
                       const Surroundings& around) {
  const auto volume =
      claim.volume_name.empty() ? nullptr : find_volume(around.view, claim.volume_name);
  if (volume == nullptr) return ": adopt it for that claim";
  const auto where = provisioner::node_of(*volume, *around.nodes);
  const bool is_known = where.kind == provisioner::VolumeNode::Kind::kNode;
  return ", and its volume " + volume->meta.name + " has " +
         (volume->path.empty() ? "no directory" : "directory " + volume->path) +
         (is_known ? " on node " + where.name : "") +
         ": look which of the two has the data, and remove " + orphan.path + " on node " +
         orphan.node + " by hand if it is not needed";
}

Result<void> check_claims(const Orphan& orphan, const Surroundings& around) {
  const ClusterView& view = around.view;
  for (const auto& claim : view.claims.list()) {
    const std::string name = "claim " + claim->meta.key().to_string();
    if (!orphan.uid.empty() && claim->meta.uid == orphan.uid) {
      return refuse(name + ", which it was made for, is there" +
                    advice_for(*claim, orphan, around));
    }
    if (claim->volume_name == orphan.volume) {
      return refuse(name + " belongs to volume " + orphan.volume +
                    advice_for(*claim, orphan, around));
    }
  }
  const auto is_its_claims = [&](const k8s::PersistentVolume& volume) {
    return !orphan.uid.empty() && volume.claim_uid == orphan.uid;
  };
  if (const auto volume = find_volume_if(view, is_its_claims)) {
    return refuse("volume " + volume->meta.name +
                  " is of the claim that it was made for; look where the data is");
  }
  return {};
}

bool is_over(const json& pod) {
  const std::string phase = text(member(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

/// Whether what the pod has of the claim is what the cluster says now. One that began before the
/// claim was made may still have what an earlier one of that name had; and of a claim or volume
/// that is gone nobody knows where it was.
bool is_known(const json& pod, const k8s::ObjectKey& key, const ClusterView& view) {
  const auto claim = view.claims.get(key);
  if (claim == nullptr) return false;
  const auto began = parse_rfc3339(text(member(pod, "status"), "startTime"));
  const auto made = parse_rfc3339(claim->meta.creation_timestamp);
  if (!began || !made || *began < *made) return false;
  if (claim->volume_name.empty()) return true;  // nothing is mounted for one that is not bound
  const auto volume = find_volume(view, claim->volume_name);
  return volume != nullptr && volume->claim_uid == claim->meta.uid;
}

/// A hostPath around a base path is an agent's, or a backup's: it is in nobody's way.
bool shows(const std::string& host_path, const operation::Operation& place) {
  const std::string path = config::clean_path(host_path);
  return overlaps(path, place.path) && !is_at_or_below(place.base_path, path);
}

Result<void> check_pods(const Orphan& orphan, const operation::Operation& place,
                        const ClusterView& view, const std::vector<json>& pods) {
  for (const json& pod : pods) {
    if (is_over(pod)) continue;
    const json& meta = member(pod, "metadata");
    const k8s::ObjectKey key{text(meta, "namespace"), text(meta, "name")};
    const std::string stop = "pod " + key.to_string() + " on node " + orphan.node +
                             " may be using it: delete the pod, and try again";
    for (const json& volume : member(member(pod, "spec"), "volumes")) {
      const std::string host_path = text(member(volume, "hostPath"), "path");
      if (!host_path.empty() && shows(host_path, place)) return refuse(stop);
      std::string name = text(member(volume, "persistentVolumeClaim"), "claimName");
      if (member(volume, "ephemeral").is_object()) name = key.name + "-" + text(volume, "name");
      const k8s::ObjectKey claim{key.ns, name};
      if (!name.empty() && !is_known(pod, claim, view)) return refuse(stop);
    }
  }
  return {};
}

}  // namespace

Result<operation::Operation> check_sweepable(const Orphan& orphan,
                                             const std::vector<Orphan>& orphans,
                                             const Surroundings& around,
                                             const std::vector<json>& pods,
                                             std::string_view except) {
  LPP_RETURN_IF_ERROR(check_record(orphan, orphans), "refused");
  LPP_ASSIGN_OR_RETURN(auto place, place_on(orphan.node, orphan.path, around), "refused");
  if (place.shared) {
    return refuse("refused: all nodes share it, and other clusters may, too: remove it by hand");
  }
  place.volume_name = orphan.volume;
  place.disk = orphan.disk;
  LPP_RETURN_IF_ERROR(check_nobodys(place, orphan.volume, around, except), "refused");
  LPP_RETURN_IF_ERROR(check_claims(orphan, around), "refused");
  LPP_RETURN_IF_ERROR(check_name(orphan, around.view), "refused");
  LPP_RETURN_IF_ERROR(check_pods(orphan, place, around.view, pods), "refused");
  return place;
}

Result<json> sweep_volume(const operation::Operation& place, const Orphan& orphan,
                          const Surroundings& around, const std::string& ns) {
  operation::Operation made = place;
  const auto node = around.nodes->get({"", place.node});
  const auto* const label =
      node == nullptr ? nullptr : k8s::find(node->meta.labels, provisioner::kHostnameLabel);
  made.shape = operation::Shape{
      .affinity_key = std::string(provisioner::kHostnameLabel),
      .affinity_value = label == nullptr ? place.node : *label,
      .reclaim_policy = "Retain",
  };
  k8s::PersistentVolumeClaim claim;
  claim.meta.ns = ns;
  claim.meta.name = "swept-" + orphan.volume;
  // No claim ever has such a UID.
  claim.meta.uid = "swept-" + short_hash(orphan.node + '\n' + orphan.path);
  claim.access_modes = {"ReadWriteOnce"};
  claim.storage_request = orphan.size > 0 ? quantity_of(orphan.size) : "1";
  json manifest = provisioner::make_volume(made, claim, around.view.names.own());
  manifest["spec"]["claimRef"].erase("resourceVersion");
  manifest["spec"]["hostPath"]["type"] = "Directory";

  // Its removal goes where the volume says: that must be this node, as its labels are now.
  const auto volume = k8s::decode<k8s::PersistentVolume>(manifest);
  if (!volume.ok()) return volume.error();
  const auto where = provisioner::node_of(*volume, *around.nodes);
  if (where.kind != provisioner::VolumeNode::Kind::kNode || where.name != place.node) {
    return refuse("refused: by its labels node " + place.node +
                  " cannot be told from others: " + where.description);
  }
  return manifest;
}

}  // namespace lpp::cli
