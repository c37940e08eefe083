#include "chaos/promises.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "harness/file_text.h"
#include "harness/installation.h"
#include "helperpod/manifest.h"

namespace lpp::testing {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kProvisioner = "rancher.io/local-path";
constexpr const char* kOurFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";

std::string text_at(const json& object, const char* pointer) {
  const json::json_pointer where(pointer);
  return object.contains(where) && object[where].is_string() ? object[where].get<std::string>()
                                                             : std::string();
}

ChaosVolume volume_of(const json& object, TestBed& bed) {
  ChaosVolume volume{
      .pv = text_at(object, "/metadata/name"),
      .node = text_at(object, "/metadata/annotations/local.path.provisioner~1selected-node"),
      .path = text_at(object, "/spec/hostPath/path") + text_at(object, "/spec/local/path"),
      .claim_uid = text_at(object, "/spec/claimRef/uid"),
      .phase = text_at(object, "/status/phase"),
      .deleting = object["metadata"].contains("deletionTimestamp"),
      .deletes = text_at(object, "/spec/persistentVolumeReclaimPolicy") == "Delete"};
  volume.disk = bed.on_disk(volume.node, volume.path);
  for (const json& finalizer : object["metadata"].value("finalizers", json::array())) {
    volume.has_finalizer = volume.has_finalizer || finalizer == kOurFinalizer;
  }
  return volume;
}

}  // namespace

Result<std::vector<ChaosVolume>> Promises::volumes() {
  LPP_ASSIGN_OR_RETURN(const auto objects, bed_.admin().list(k8s::kPersistentVolumes), "volumes");
  std::vector<ChaosVolume> found;
  for (const json& object : objects) {
    const json annotations = object["metadata"].value("annotations", json::object());
    if (annotations.value("pv.kubernetes.io/provisioned-by", "") != kProvisioner) continue;
    found.push_back(volume_of(object, bed_));
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
      if (text_at(one, "/metadata/uid") == claim.uid) object = &one;
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
    return "there is helper pod " + text_at(pod, "/metadata/name") + ", " +
           text_at(pod, "/status/phase") + ", on " + text_at(pod, "/spec/nodeName") +
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
  if (mine.size() != 1) return "it has " + std::to_string(mine.size()) + " volumes";
  const ChaosVolume& volume = mine.front();
  const std::string phase = text_at(*object, "/status/phase");
  if (phase != "Bound") return "it is " + phase;
  if (volume.pv != claim.pv()) return "its volume is called " + volume.pv;
  if (text_at(*object, "/spec/volumeName") != volume.pv) return "it is bound to another volume";
  if (volume.claim_uid != claim.uid) return "its volume is of claim " + volume.claim_uid;
  if (volume.deletes != volume.has_finalizer) {
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

std::string Promises::broken_volumes(const std::vector<ChaosVolume>& volumes) {
  for (const ChaosVolume& volume : volumes) {
    const bool wanted = std::any_of(model_.claims.begin(), model_.claims.end(),
                                    [&](const auto& one) { return one.second.pv() == volume.pv; });
    const auto retained = model_.retained.find(volume.pv);
    if (!wanted && !volume.kept_after_claim() && retained == model_.retained.end()) {
      return "volume " + volume.pv + " should be gone; it is " + volume.phase +
             (volume.deleting ? ", being deleted" : "") + ", on " + volume.node;
    }
    if (retained != model_.retained.end()) {
      if (volume.has_finalizer) return "retained volume " + volume.pv + " has our finalizer";
      std::error_code ignored;
      if (!fs::is_directory(volume.disk, ignored)) {
        return "retained volume " + volume.pv + " has no directory " + volume.disk;
      }
      if (!retained->second.content.empty() &&
          text_of(data_file(volume)) != retained->second.content) {
        return "the data of retained volume " + volume.pv + " is not what was written";
      }
    }
    for (const ChaosVolume& other : volumes) {
      if (&other != &volume && overlaps(other.disk, volume.disk)) {
        return volume.pv + " and " + other.pv + " overlap: " + volume.disk + ", " + other.disk;
      }
    }
  }
  return "";
}

std::string Promises::stray_directories(const std::vector<ChaosVolume>& volumes) {
  excused_.clear();
  for (const std::string& node : nodes_) {
    for (const std::string& base : bases_) {
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
    const auto is_it = [&](const ChaosVolume& volume) { return volume.disk == disk; };
    const auto is_in_it = [&](const ChaosVolume& volume) {
      return strictly_below(volume.disk, disk);
    };
    if (std::any_of(volumes.begin(), volumes.end(), is_it)) continue;
    const std::string inner = path + "/" + entry.path().filename().string();
    if (std::any_of(volumes.begin(), volumes.end(), is_in_it)) {
      std::string stray = look_into(node, inner, volumes);
      if (!stray.empty()) return stray;
      continue;
    }
    if (!is_excused(node, inner) && !is_left_parent(disk))
      return "no volume has the directory " + disk;
    excused_.push_back(disk);
  }
  return "";
}

/// An empty folder of a path pattern, when volumes were removed whose base folder was not
/// configured any more: nobody knows then where the base ends and the pattern begins.
bool Promises::is_left_parent(const std::string& disk) const {
  std::error_code error;
  const bool unknown = model_.bases_changed || disk.find("-third/") != std::string::npos;
  return unknown && disk.ends_with(std::string("/") + kChaosNamespace) &&
         fs::is_empty(disk, error) && !error;
}

bool Promises::is_excused(const std::string& node, const std::string& path) const {
  if (model_.nodes_that_were_gone.contains(node)) return true;
  return std::any_of(model_.lost_records.begin(), model_.lost_records.end(),
                     [&](const std::string& lost) {
                       const std::string mine = node + ":" + path;
                       return overlaps(lost, mine);
                     });
}

}  // namespace lpp::testing
