// SPDX-License-Identifier: Apache-2.0
// Disks of machines with an agent that are missing for a while, or have another one in their place.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/paths.h"
#include "chaos/chaos_run.h"
#include "chaos/tolerate.h"
#include "harness/file_text.h"
#include "harness/objects.h"
#include "helperpod/manifest.h"
#include "node/volume.h"

namespace lpp::testing {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIdentityFile = "identity.json";

std::string records_in(const std::string& folder) {
  return folder + "/" + std::string(node::kRecordFolder);
}

/// "" = it has none yet.
std::string identity_in(const std::string& folder) {
  const json identity =
      json::parse(text_of(records_in(folder) + "/" + kIdentityFile), nullptr, false);
  return identity.is_object() ? identity.value("disk", "") : "";
}

/// "", or what there is of a volume, or of an operation.
std::string first_trace_in(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename() != node::kRecordFolder) return entry.path().string();
  }
  for (const auto& entry : fs::directory_iterator(records_in(folder), ignored)) {
    const std::string name = entry.path().filename();
    if (name != kIdentityFile && name != "lock" && name != "spare") return entry.path().string();
  }
  return "";
}

/// Another disk: like the right one, with an identity of its own and no volumes.
Result<void> put_other_disk(const std::string& folder, const std::string& like) {
  const std::string records = records_in(folder);
  std::error_code error;
  fs::create_directories(records, error);
  fs::permissions(records, fs::status(records_in(like)).permissions(), error);
  json identity = json::parse(text_of(records_in(like) + "/" + kIdentityFile));
  std::string disk = identity["disk"];
  std::reverse(disk.begin(), disk.end());
  identity["disk"] = disk;
  std::ofstream out(records + "/" + kIdentityFile);
  out << identity.dump() << "\n";
  out.close();
  return out && !error ? Result<void>() : Error{.message = records + " cannot be made"};
}

}  // namespace

bool ChaosRun::is_away(const std::string& path) const {
  return std::any_of(disks_away_.begin(), disks_away_.end(),
                     [&](const auto& one) { return is_at_or_below(path, one.first); });
}

Result<void> ChaosRun::disk_step(const Step& step) {
  if (step.kind == StepKind::kReturnDisk) {
    if (disks_away_.empty()) return {};
    const auto which =
        std::next(disks_away_.begin(), static_cast<std::ptrdiff_t>(step.a % disks_away_.size()));
    return bring_back(which->first);
  }
  const auto machines = agents_->machines();
  const std::string& machine = machines[step.a % machines.size()];
  const auto bases = bed_.base_paths();
  const std::string& base = bases[step.b % bases.size()];
  const std::string folder = bed_.on_disk(machine, base);
  LPP_ASSIGN_OR_RETURN(const bool may_go, may_take_disk(machine, base), "disk");
  if (!may_go) return {};
  const std::string away = folder + ".away";
  if (!ledger_.move_away(folder, away)) return Error{.message = folder + " cannot be moved"};
  disks_away_[folder] = machine;
  ++summary_.disks_away;
  // Else its mount point is gone, until an agent is started.
  if (step.c % 3 == 1) {
    std::error_code error;
    fs::create_directory(folder, error);
    if (error) return Error{.message = folder + ": " + error.message()};
  }
  if (step.c % 3 == 2) LPP_RETURN_IF_ERROR(put_other_disk(folder, away), "disk");
  return need_disk(machine, folder, step);
}

/// A volume on it is to go at once, and another one to be made on the machine; for a moment, so
/// that somebody tries.
Result<void> ChaosRun::need_disk(const std::string& machine, const std::string& folder,
                                 const Step& step) {
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "disk");
  for (const auto& [slot, claim] : model_.claims) {
    const std::string name = claim.pv();
    const bool is_there =
        std::any_of(volumes.begin(), volumes.end(), [&](const ChaosVolume& volume) {
          return volume.pv == name && is_at_or_below(volume.disk, folder);
        });
    if (!is_there || claim.content.empty()) continue;
    LPP_RETURN_IF_ERROR(delete_claim(slot), "disk");
    break;
  }
  std::size_t slot = 0;
  while (model_.claims.contains(slot)) ++slot;
  Step create = step;
  create.c =
      static_cast<std::size_t>(std::find(nodes_.begin(), nodes_.end(), machine) - nodes_.begin());
  if (slot < ChaosModel::kSlots) LPP_RETURN_IF_ERROR(create_claim(slot, "", create), "disk");
  std::this_thread::sleep_for(std::chrono::milliseconds(step.b % 600));
  return {};
}

/// What helper pods have made or begun names no disk, and they compare none: where they were at
/// work since the last quiet point nothing is promised. Nor of a disk that no volume names, as far
/// as a slow watch has told.
Result<bool> ChaosRun::may_take_disk(const std::string& machine, const std::string& base) {
  const std::string folder = bed_.on_disk(machine, base);
  if (!cluster_.can_take_disks() || unsteady_.contains(machine) || is_away(folder)) return false;
  if (just_named_.contains(folder)) return false;
  const auto anchor = anchors_.find(folder);
  if (anchor == anchors_.end() || anchor->second.first != identity_in(folder)) return false;
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "disk");
  if (std::any_of(volumes.begin(), volumes.end(), [&](const ChaosVolume& volume) {
        return volume.machine == machine && !volume.by_agent && is_at_or_below(volume.path, base);
      })) {
    return false;
  }
  LPP_ASSIGN_OR_RETURN(const auto pods,
                       bed_.admin().list(k8s::kPods, kDaemonNamespace,
                                         helperpod::label_selector("rancher.io/local-path")),
                       "disk");
  return std::none_of(pods.begin(), pods.end(), [&](const json& pod) {
    return pod["spec"].value("nodeName", "") == known_name(machine);
  });
}

/// Promise: nothing was made on the disk in its place, or noted there. That nothing was removed
/// from the one that was away is the ledger's.
// NOLINTNEXTLINE(performance-unnecessary-value-param): a copy; the caller may have it from the set
Result<void> ChaosRun::bring_back(std::string folder) {
  disks_away_.erase(folder);
  const std::string trace = first_trace_in(folder);
  if (!trace.empty()) return Error{.message = "WRONG DISK: something was made there: " + trace};
  std::error_code error;
  fs::remove_all(folder, error);
  if (ledger_.move_back(folder)) return {};
  return Error{.message = folder + " cannot be moved back"};
}

Result<void> ChaosRun::bring_back_of(const std::string& machine) {
  const auto all = disks_away_;
  for (const auto& [folder, of] : all) {
    if (machine.empty() || of == machine) LPP_RETURN_IF_ERROR(bring_back(folder), "disk");
  }
  return {};
}

/// An administrator does this with all disks in place only; until the next quiet point they stay.
Result<void> ChaosRun::keep_disks_of(const std::string& machine) {
  unsteady_.insert(machine);
  return bring_back_of(machine);
}

/// A volume of somebody else on each disk that has an identity, so that one at least names it
/// whatever becomes of the others.
Result<void> ChaosRun::name_disks() {
  unsteady_.clear();
  just_named_.clear();
  if (agents_ == nullptr || !cluster_.can_take_disks()) return {};
  for (const auto& machine : agents_->machines()) {
    for (const auto& base : bed_.base_paths()) {
      const std::string folder = bed_.on_disk(machine, base);
      const std::pair anchor{identity_in(folder), known_name(machine)};
      if (anchor.first.empty() || anchors_[folder] == anchor) continue;
      const std::string name =
          "disk-of-" + machine + (base == bed_.base_paths().front() ? "" : "-2");
      LPP_RETURN_IF_ERROR(forget_disk(name), "disks");
      const json object =
          volume_object({.name = name,
                         .node = machine,
                         .path = base + "/somebody-else",
                         .reclaim_policy = "Retain",
                         .storage_class = "somebody-else",
                         .annotations = {{"local.path.provisioner/selected-node", anchor.second},
                                         {"local.path.provisioner/base-path", base},
                                         {"local.path.provisioner/disk", anchor.first}}});
      LPP_ASSIGN_OR_RETURN(const auto created, bed_.admin().create(object), "disks");
      static_cast<void>(created);
      anchors_[folder] = anchor;
      just_named_.insert(folder);
    }
  }
  return {};
}

Result<void> ChaosRun::forget_disk(const std::string& name) {
  LPP_ASSIGN_OR_RETURN(const auto there, bed_.admin().find(k8s::kPersistentVolumes, {"", name}),
                       "disks");
  if (!there) return {};
  return bed_.admin().remove_and_wait(k8s::kPersistentVolumes, {"", name}, {},
                                      {.limit = options_.patience});
}

Result<void> ChaosRun::forget_disks() {
  for (const auto& machine : options_.agents) {
    for (const char* which : {"", "-2"}) {
      LPP_RETURN_IF_ERROR(forget_disk("disk-of-" + machine + which), "disks");
    }
  }
  return {};
}

}  // namespace lpp::testing
