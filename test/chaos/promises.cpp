// SPDX-License-Identifier: Apache-2.0
#include "chaos/promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "harness/file_text.h"
#include "harness/installation.h"
#include "harness/json_access.h"
#include "harness/objects.h"
#include "helperpod/manifest.h"
#include "node/volume.h"

namespace lpp::testing {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kProvisioner = "rancher.io/local-path";

}  // namespace

ChaosVolume Promises::volume_of(const json& object) const {
  ChaosVolume volume{
      .pv = text_at(object, {"metadata", "name"}),
      .node = text_at(object, {"metadata", "annotations", "local.path.provisioner/selected-node"}),
      .path = text_at(object, {"spec", "hostPath", "path"}) +
              text_at(object, {"spec", "local", "path"}),
      .claim_uid = text_at(object, {"spec", "claimRef", "uid"}),
      .claim_name = text_at(object, {"spec", "claimRef", "name"}),
      .phase = text_at(object, {"status", "phase"}),
      .deleting = object["metadata"].contains("deletionTimestamp"),
      .deletes = text_at(object, {"spec", "persistentVolumeReclaimPolicy"}) == "Delete"};
  volume.machine = is_at_or_below(volume.path, bed_.shared_path()) ? "" : machine_of(volume.node);
  volume.disk = disk_of(volume.node, volume.path);
  volume.has_affinity = object.contains(json::json_pointer("/spec/nodeAffinity/required"));
  volume.by_agent =
      object.contains(json::json_pointer("/metadata/annotations/local.path.provisioner~1disk"));
  for (const json& finalizer : object["metadata"].value("finalizers", json::array())) {
    volume.has_finalizer = volume.has_finalizer || finalizer == kVolumeFinalizer;
  }
  return volume;
}

Result<std::vector<ChaosVolume>> Promises::volumes() {
  LPP_ASSIGN_OR_RETURN(const auto objects, bed_.admin().list(k8s::kPersistentVolumes), "volumes");
  std::vector<ChaosVolume> found;
  for (const json& object : objects) {
    const json annotations = object["metadata"].value("annotations", json::object());
    if (annotations.value("pv.kubernetes.io/provisioned-by", "") != kProvisioner) continue;
    found.push_back(volume_of(object));
  }
  return found;
}

std::string Promises::broken() {
  const auto volumes = this->volumes();
  if (!volumes.ok()) return volumes.error().message;
  const auto claims = bed_.admin().list(k8s::kPersistentVolumeClaims, kChaosNamespace);
  if (!claims.ok()) return claims.error().message;
  for (const auto& [slot, claim] : model_.claims) {
    const json* object = nullptr;
    for (const json& one : *claims) {
      if (text_at(one, {"metadata", "uid"}) == claim.uid) object = &one;
    }
    std::string wrong = broken_claim(claim, object, *volumes);
    if (!wrong.empty()) return "claim " + claim.key.name + " (" + claim.uid + "): " + wrong;
  }
  if (claims->size() != model_.claims.size()) return "there are claims that should be gone";
  std::string wrong = broken_volumes(*volumes);
  if (!wrong.empty()) return wrong;
  const auto pods =
      bed_.admin().list(k8s::kPods, kDaemonNamespace, helperpod::label_selector(kProvisioner));
  if (!pods.ok()) return pods.error().message;
  if (!pods->empty()) {
    const json& pod = pods->front();
    return "there is helper pod " + text_at(pod, {"metadata", "name"}) + ", " +
           text_at(pod, {"status", "phase"}) + ", on " + text_at(pod, {"spec", "nodeName"}) +
           (pod["metadata"].contains("deletionTimestamp") ? ", being deleted" : "");
  }
  return stray_directories(*volumes);
}

std::string Promises::broken_claim(const ChaosClaim& claim, const json* object,
                                   const std::vector<ChaosVolume>& volumes) {
  if (object == nullptr) return "it is not there";
  std::vector<ChaosVolume> mine;
  for (const ChaosVolume& volume : volumes) {
    if (volume.claim_uid == claim.uid || volume.pv == claim.pv()) mine.push_back(volume);
  }
  if (!chaos_class(claim.storage_class).possible) {
    if (!mine.empty()) return "it has a volume and can have none";
    const auto events = bed_.admin().events_about("PersistentVolumeClaim", claim.key);
    const bool told = std::any_of(events.begin(), events.end(), [](const std::string& event) {
      return event.starts_with("Warning ProvisioningFailed: ");
    });
    return told ? "" : "no event says why it has no volume";
  }
  if (mine.empty() && waits_for_refused(claim, volumes)) return "";
  if (mine.size() != 1) return "it has " + std::to_string(mine.size()) + " volumes";
  const ChaosVolume& volume = mine.front();
  const std::string phase = text_at(*object, {"status", "phase"});
  if (phase != "Bound") {
    return fmt::format("it is {}; its volume {} is {}{}, of claim {} ({})", phase, volume.pv,
                       volume.phase, volume.deleting ? " and being deleted" : "", volume.claim_name,
                       volume.claim_uid);
  }
  if (volume.pv != claim.pv()) return "its volume is called " + volume.pv;
  if (text_at(*object, {"spec", "volumeName"}) != volume.pv) return "it is bound to another volume";
  if (volume.claim_uid != claim.uid) return "its volume is of claim " + volume.claim_uid;
  // On an object that is being deleted nobody can put one any more.
  if (volume.deletes != volume.has_finalizer && !(volume.deletes && volume.deleting)) {
    return volume.pv + (volume.deletes ? " lacks our finalizer" : " has our finalizer");
  }
  std::error_code ignored;
  if (!fs::is_directory(volume.disk, ignored)) {
    return volume.pv + " has no directory " + volume.disk;
  }
  if (!claim.content.empty() && text_of(data_file(volume)) != claim.content) {
    return "the data in " + data_file(volume) + " is not what was written";
  }
  return "";
}

/// Removing it could take what is another volume's or was kept for another claim, nobody knows on
/// which node its directory is, or the directory may be anybody's: then it stays, and an Event says
/// why.
bool Promises::is_refused(const ChaosVolume& volume) {
  if (volume.phase != "Released") return false;
  const auto events = bed_.admin().events_about("PersistentVolume", {"", volume.pv});
  return std::any_of(events.begin(), events.end(), [](const std::string& event) {
    return event.starts_with("Warning VolumeFailedDelete: ") &&
           (event.find(": it overlaps the directory ") != std::string::npos ||
            event.find(" is by its record the directory of claim ") != std::string::npos ||
            event.find(": it is not clear on which node ") != std::string::npos ||
            event.find("it is below none of the configured base paths") != std::string::npos);
  });
}

/// The directory that it would get is that of a volume which nobody may remove; both Events say so.
bool Promises::waits_for_refused(const ChaosClaim& claim, const std::vector<ChaosVolume>& volumes) {
  const auto events = bed_.admin().events_about("PersistentVolumeClaim", claim.key);
  return std::any_of(volumes.begin(), volumes.end(), [&](const ChaosVolume& volume) {
    const bool told = std::any_of(events.begin(), events.end(), [&](const std::string& event) {
      return event.starts_with("Warning ProvisioningFailed: ") &&
             event.find(" overlaps the directory ") != std::string::npos &&
             event.find(" of volume " + volume.pv) != std::string::npos;
    });
    return told && is_refused(volume);
  });
}

std::string Promises::broken_volumes(const std::vector<ChaosVolume>& volumes) {
  for (const ChaosVolume& volume : volumes) {
    const bool wanted = std::any_of(model_.claims.begin(), model_.claims.end(),
                                    [&](const auto& one) { return one.second.pv() == volume.pv; });
    const bool available = !volume.deletes && volume.phase == "Available";
    if (!wanted && !volume.kept_after_claim() && !available && !is_refused(volume)) {
      return "volume " + volume.pv + " should be gone; it is " + volume.phase +
             (volume.deleting ? ", being deleted" : "") + ", on " + volume.node;
    }
    if (volume.has_affinity == volume.machine.empty()) {
      return volume.pv + (volume.has_affinity ? " has" : " lacks") + " a node affinity and is at " +
             volume.disk;
    }
    if (!wanted && !volume.deletes && volume.has_finalizer) {
      return "retained volume " + volume.pv + " has our finalizer";
    }
    for (const ChaosVolume& other : volumes) {
      const bool old = other.pv.starts_with(kOldPrefix) || volume.pv.starts_with(kOldPrefix);
      if (&other != &volume && !old && overlaps(other.disk, volume.disk)) {
        return volume.pv + " and " + other.pv + " overlap: " + volume.disk + ", " + other.disk;
      }
    }
  }
  for (const LedgerVolume& kept : ledger_.kept()) {
    const bool there = std::any_of(volumes.begin(), volumes.end(), [&](const ChaosVolume& volume) {
      return volume.pv == kept.pv && !volume.deletes;
    });
    if (!there) return "retained volume " + kept.pv + " is gone";
    std::error_code ignored;
    if (!fs::is_directory(kept.directory, ignored)) {
      return "retained volume " + kept.pv + " has no directory " + kept.directory;
    }
  }
  return "";
}

std::string Promises::stray_directories(const std::vector<ChaosVolume>& volumes) {
  excused_.clear();
  stayed_.clear();
  may_stay_ = ledger_.may_stay();
  for (const std::string& node : nodes_) {
    for (const std::string& base : bases_) {
      // Of a file system that all nodes have, one is enough; one that was gone excuses more.
      const auto& gone = model_.nodes_that_were_gone;
      const std::string& first = gone.empty() ? nodes_.front() : *gone.begin();
      if (base == bed_.shared_path() && node != first) continue;
      std::string stray = look_into(node, base, volumes);
      if (!stray.empty()) return stray;
    }
  }
  return "";
}

std::string Promises::look_into(const std::string& node, const std::string& path,
                                const std::vector<ChaosVolume>& volumes) {
  std::error_code error;
  fs::directory_iterator entries(bed_.on_disk(node, path), error);
  if (error) return "";  // not made yet
  for (const auto& entry : entries) {
    const std::string disk = entry.path().string();
    if (entry.path().filename() == node::kRecordFolder) {
      std::string left = unfinished(node, disk, volumes);
      if (!left.empty()) return left;
      continue;
    }
    const auto is_it = [&](const ChaosVolume& volume) { return volume.disk == disk; };
    if (std::any_of(volumes.begin(), volumes.end(), is_it)) continue;
    if (may_stay_.contains(disk)) continue;
    const std::string inner = path + "/" + entry.path().filename().string();
    std::error_code ignored;
    // The folder that a path pattern makes around directories.
    if (entry.path().filename() == kChaosNamespace && !fs::is_empty(entry.path(), ignored)) {
      std::string stray = look_into(node, inner, volumes);
      if (!stray.empty()) return stray;
      continue;
    }
    if (was_taken_back(disk)) {
      stayed_.push_back(disk);
    } else if (is_excused(node, disk) || is_left_parent(disk)) {
      excused_.push_back(disk);
    } else {
      return "no volume has the directory " + disk;
    }
  }
  return "";
}

/// What an agent has on record of an operation, or of what it makes or removes, goes when that is
/// over; what it knows of volumes stays. A machine that is called otherwise now is not asked for
/// what it began before.
std::string Promises::unfinished(const std::string& node, const std::string& records,
                                 const std::vector<ChaosVolume>& volumes) {
  if (std::find(agents_.begin(), agents_.end(), node) == agents_.end()) return "";
  if (model_.nodes_that_were_gone.contains(node) || model_.ever_renamed.contains(node)) return "";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(records, error)) {
    const std::string name = entry.path().filename();
    const bool is_over = !name.starts_with("work.") && !name.starts_with("new.") &&
                         !name.starts_with("gone.") && !name.starts_with("write.");
    // What is refused is tried again.
    const std::string text = is_over ? "" : text_of(entry.path());
    const bool refused =
        std::any_of(volumes.begin(), volumes.end(), [&](const ChaosVolume& volume) {
          return text.find('"' + volume.pv + '"') != std::string::npos && is_refused(volume);
        });
    if (!is_over && !refused)
      return "the agent on " + node + " is not done with " + entry.path().string();
  }
  return "";
}

/// Its name says nothing of a volume, so it is not certain who made it.
bool Promises::was_taken_back(const std::string& disk) const {
  const fs::path path(disk);
  if (path.filename() == kChaosNamespace) return !model_.taken_back.empty();
  return path.parent_path().filename() == kChaosNamespace &&
         model_.taken_back.contains(path.filename().string());
}

/// An empty folder of a path pattern, when volumes were removed whose base folder was not
/// configured any more: nobody knows then where the base ends and the pattern begins.
bool Promises::is_left_parent(const std::string& disk) const {
  std::error_code error;
  const bool unknown = model_.bases_changed || disk.find("-third/") != std::string::npos;
  return unknown && disk.ends_with(std::string("/") + kChaosNamespace) &&
         fs::is_empty(disk, error) && !error;
}

bool Promises::is_excused(const std::string& node, const std::string& disk) const {
  if (model_.nodes_that_were_gone.contains(node)) return true;
  if (model_.ever_relabelled.contains(node) && model_.ever_renamed.contains(node)) return true;
  return std::any_of(model_.lost_records.begin(), model_.lost_records.end(),
                     [&](const std::string& lost) { return overlaps(lost, disk); });
}

}  // namespace lpp::testing
