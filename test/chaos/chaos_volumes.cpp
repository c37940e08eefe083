// SPDX-License-Identifier: Apache-2.0
// Steps about volumes that outlive their claims, and about tenants' data in them.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "chaos/chaos_run.h"
#include "chaos/tolerate.h"
#include "harness/objects.h"
#include "helperpod/manifest.h"

namespace lpp::testing {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kNodeOfClaim = "volume.kubernetes.io/selected-node";
constexpr const char* kRetain = "Retain";
constexpr const char* kDelete = "Delete";
/// How long a step waits for what may never come while faults are about.
constexpr Patience kBriefly{.limit = milliseconds(1'500), .interval = milliseconds(10)};

}  // namespace

Result<std::optional<LedgerVolume>> ChaosRun::volume_in(const std::string& body) const {
  const json object = json::parse(body, nullptr, false);
  if (!object.is_object()) return std::optional<LedgerVolume>();
  const ChaosVolume volume = promises_.volume_of(object);
  return std::optional<LedgerVolume>({.pv = volume.pv,
                                      .directory = volume.disk,
                                      .machine = volume.machine,
                                      .claim_uid = volume.claim_uid,
                                      .deletes = volume.deletes});
}

/// What the API server is asked to take and what it takes is a fact, whoever asks.
ProxyHooks ChaosRun::watched(ProxyHooks hooks) {
  const auto note = [this](const ApiRequest& request, void (Ledger::*tell)(const LedgerVolume&)) {
    if (!request.is("create", "persistentvolumes")) return;
    const auto volume = volume_in(request.body);
    if (volume.ok() && *volume) (ledger_.*tell)(**volume);
  };
  const auto before = hooks.before;
  hooks.before = [before, note](const ApiRequest& request) {
    Decision decision = before(request);
    if (decision.kind != Decision::Kind::kReply && decision.kind != Decision::Kind::kCutBefore) {
      note(request, &Ledger::may_exist);
    }
    return decision;
  };
  const auto after = hooks.after;
  hooks.after = [after, note](const ApiRequest& request, int status) {
    if (status == 201) note(request, &Ledger::made);
    after(request, status);
  };
  return hooks;
}

Result<bool> ChaosRun::set_policy(const std::string& pv, bool deletes) {
  if (deletes) ledger_.will_delete(pv);
  const auto patched = bed_.admin().merge(
      k8s::kPersistentVolumes, {"", pv},
      {{"spec", {{"persistentVolumeReclaimPolicy", deletes ? kDelete : kRetain}}}});
  if (!patched.ok()) {
    LPP_RETURN_IF_ERROR(tolerate(patched), "policy");
    return false;
  }
  if (!deletes) ledger_.keeps(pv);
  return true;
}

/// The object of a volume that is to be kept; its directory stays.
Result<void> ChaosRun::forget_volume(const std::string& pv) {
  ledger_.object_deleted(pv);
  return tolerate(bed_.admin().remove(k8s::kPersistentVolumes, {"", pv}));
}

Result<std::vector<ChaosVolume>> ChaosRun::released() {
  LPP_ASSIGN_OR_RETURN(auto volumes, promises_.volumes(), "released");
  std::erase_if(volumes, [&](const ChaosVolume& volume) {
    return volume.deletes || volume.deleting || volume.phase != "Released" ||
           ledger_.deletes(volume.pv);
  });
  return volumes;
}

/// The volume may have been bound again to claims of other names: its directory keeps the first
/// one.
bool ChaosRun::is_claimed(const ChaosVolume& volume) const {
  return is_claimed(volume.claim_name) ||
         is_claimed(std::filesystem::path(volume.path).filename().string());
}

bool ChaosRun::is_claimed(const std::string& name) const {
  return std::any_of(model_.claims.begin(), model_.claims.end(), [&](const auto& one) {
    return one.second.key.name == name || one.second.first_name == name;
  });
}

/// A claim of a pattern that may have made something and is wanted no more, or not there.
void ChaosRun::may_be_taken_back(const ChaosClaim& claim) {
  if (chaos_class(claim.storage_class).pattern && claim.volume.empty() &&
      !ledger_.knows(claim.pv())) {
    model_.taken_back.insert(claim.key.name);
  }
}

void ChaosRun::all_may_be_taken_back() {
  for (const auto& [slot, claim] : model_.claims) may_be_taken_back(claim);
}

Result<void> ChaosRun::volume_step(const Step& step) {
  const std::size_t slot = step.a % ChaosModel::kSlots;
  const auto found = model_.claims.find(slot);
  switch (step.kind) {
    case StepKind::kComeBack: return come_back(slot, step);
    case StepKind::kSaveVolume:
      if (step.c % 2 == 0) return save_old_volume(step);
      return found == model_.claims.end() ? Result<void>() : save_volume(slot);
    case StepKind::kChangePolicy: {
      // Of any volume there is, released ones included.
      LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "policy");
      if (volumes.empty()) return {};
      const ChaosVolume& volume = volumes[step.b % volumes.size()];
      if (!ledger_.knows(volume.pv)) return {};
      return tolerate(set_policy(volume.pv, !ledger_.deletes(volume.pv)));
    }
    case StepKind::kForgetVolume: {
      LPP_ASSIGN_OR_RETURN(const auto volumes, released(), "forget");
      if (volumes.empty()) return {};
      return forget_volume(volumes[step.b % volumes.size()].pv);
    }
    case StepKind::kBindAgain:
      return found != model_.claims.end() ? Result<void>() : bind_again(slot, step);
    case StepKind::kOldVolumes: return make_old_volumes(step);
    default: {
      if (found == model_.claims.end()) return {};
      for (std::size_t i = 0; i < 20 + step.b % 30; ++i) {
        LPP_RETURN_IF_ERROR(
            tolerate(bed_.admin().merge(
                k8s::kPersistentVolumeClaims, found->second.key,
                {{"metadata", {{"annotations", {{"chaos", std::to_string(step.b + i)}}}}}})),
            "patch loop");
      }
      return {};
    }
  }
}

/// The way in which people use Retain with a pattern: the claim goes, its volume is forgotten, and
/// the claim is made again under its name to find its data. What can go wrong then, does.
Result<void> ChaosRun::come_back(std::size_t slot, const Step& step) {
  const auto found = model_.claims.find(slot);
  if (found == model_.claims.end()) {
    const auto& classes = chaos_classes();
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (classes[i].comes_back) fitting.push_back(i);
    }
    Step create = step;
    create.b = fitting[step.b % fitting.size()];
    return create_claim(slot, "", create);
  }
  const ChaosClaim claim = found->second;
  if (!chaos_class(claim.storage_class).comes_back || !claim.volume.empty()) return {};
  if (!ledger_.knows(claim.pv())) return {};
  LPP_RETURN_IF_ERROR(touch_data(found->second), "come back");
  if (found->second.content.empty()) return {};
  LPP_RETURN_IF_ERROR(set_policy(claim.pv(), false), "come back");
  LPP_RETURN_IF_ERROR(delete_claim(slot), "come back");
  LPP_RETURN_IF_ERROR(bed_.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim.key, {},
                                                   {.limit = options_.patience}),
                      "come back");
  LPP_RETURN_IF_ERROR(forget_volume(claim.pv()), "come back");
  static_cast<void>(wait_until(
      "the volume is forgotten",
      [&]() -> std::string {
        const auto there = bed_.admin().find(k8s::kPersistentVolumes, {"", claim.pv()});
        return there.ok() && !*there ? "" : "it is there";
      },
      kBriefly));
  const auto& classes = chaos_classes();
  const auto same = std::find_if(classes.begin(), classes.end(), [&](const ChaosClass& one) {
    return one.name == claim.storage_class;
  });
  Step create = step;
  create.b = static_cast<std::size_t>(same - classes.begin());
  const std::size_t what = step.c % 4;
  if (what == 1) LPP_RETURN_IF_ERROR(fail_setup(step), "come back");
  LPP_RETURN_IF_ERROR(create_claim(slot, "", create), "come back");
  if (what == 0) return {};
  std::this_thread::sleep_for(milliseconds(step.b % 400));
  if (what == 3) {
    may_be_taken_back(model_.claims.at(slot));
    return tolerate(bed_.admin().merge(
        k8s::kPersistentVolumeClaims, model_.claims.at(slot).key,
        {{"metadata", {{"annotations", {{kNodeOfClaim, known_node(step.b)}}}}}}));
  }
  // A failing one is sometimes left to be tried again.
  if (what == 1 && step.b % 2 == 0) return {};
  return delete_claim(slot);
}

/// An administrator remembers in time that the data is needed: the node is down, so nothing has
/// happened yet, and nothing must.
Result<void> ChaosRun::save_volume(std::size_t slot) {
  const ChaosClaim claim = model_.claims.at(slot);
  if (claim.content.empty() || !ledger_.deletes(claim.pv())) return {};
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "save");
  const auto volume = std::find_if(volumes.begin(), volumes.end(),
                                   [&](const ChaosVolume& one) { return one.pv == claim.pv(); });
  if (volume == volumes.end() || volume->machine.empty()) return {};
  if (model_.gone_nodes.contains(volume->machine)) return {};
  kill_machine(volume->machine);
  LPP_RETURN_IF_ERROR(delete_claim(slot), "save");
  return change_in_time(claim.pv());
}

/// The same with one that has no finalizer of ours: nothing holds it but what is recorded.
Result<void> ChaosRun::save_old_volume(const Step& step) {
  const std::size_t number = model_.next_name++;
  const std::string machine = nodes_[step.a % nodes_.size()];
  const std::string path = fmt::format("{}/old-{}", bed_.base_paths().front(), number);
  if (model_.gone_nodes.contains(machine)) return {};
  const std::string directory = bed_.on_disk(machine, path);
  if (is_away(directory)) return {};
  std::error_code error;
  if (!std::filesystem::create_directory(directory, error)) return {};  // no base folder yet
  kill_machine(machine);
  static_cast<void>(ledger_.write(directory, "old-data", directory + "\n"));
  LPP_RETURN_IF_ERROR(make_old_volume(std::to_string(number), machine, path, true), "save");
  return change_in_time(kOldPrefix + std::to_string(number));
}

void ChaosRun::kill_machine(const std::string& machine) {
  troubles_[machine].dead = true;
  trouble_machine(machine);
  ledger_.machine_died(machine);
}

Result<void> ChaosRun::change_in_time(const std::string& pv) {
  static_cast<void>(wait_until(
      "the removal is recorded",
      [&]() -> std::string {
        const auto waiting = removals_of({pv});
        return waiting.ok() && *waiting > 0 ? "" : "it is not";
      },
      kBriefly));
  return tolerate(set_policy(pv, false));
}

/// Helper pods that are to remove the directories of these volumes and are not on their way out.
Result<std::size_t> ChaosRun::removals_of(const std::set<std::string>& pvs) {
  LPP_ASSIGN_OR_RETURN(const auto pods,
                       bed_.admin().list(k8s::kPods, kDaemonNamespace,
                                         helperpod::label_selector("rancher.io/local-path")),
                       "helper pods");
  std::size_t count = 0;
  for (const json& pod : pods) {
    const json& meta = pod["metadata"];
    const std::string text =
        meta.value("annotations", json::object()).value("local.path.provisioner/operation", "");
    const bool removes =
        meta.value("labels", json::object()).value(std::string(helperpod::kActionLabel), "") ==
        "delete";
    const bool named = std::any_of(pvs.begin(), pvs.end(), [&](const std::string& pv) {
      return text.find(pv) != std::string::npos;
    });
    if (removes && named && !meta.contains("deletionTimestamp")) ++count;
  }
  return count;
}

/// A released volume that is kept becomes available, and a new claim asks for it by name.
Result<void> ChaosRun::bind_again(std::size_t slot, const Step& step) {
  LPP_ASSIGN_OR_RETURN(auto volumes, released(), "bind again");
  std::erase_if(volumes, [&](const ChaosVolume& volume) {
    return volume.pv.starts_with(kOldPrefix) || is_claimed(volume);
  });
  if (volumes.empty()) return {};
  const ChaosVolume& volume = volumes[step.b % volumes.size()];
  // For a claim of this name and no other: one that waits could take it.
  const std::string name = "r" + std::to_string(model_.next_name++);
  const auto freed = bed_.admin().merge(k8s::kPersistentVolumes, {"", volume.pv},
                                        {{"spec",
                                          {{"claimRef",
                                            {{"namespace", kChaosNamespace},
                                             {"name", name},
                                             {"uid", nullptr},
                                             {"resourceVersion", nullptr}}}}}});
  if (!freed.ok()) return tolerate(freed);
  ledger_.bound_again(volume.pv, "");
  if ((*freed)["metadata"].contains("deletionTimestamp")) return {};  // too late
  ChaosClaim claim{.key = {kChaosNamespace, name},
                   .storage_class = (*freed)["spec"].value("storageClassName", ""),
                   .volume = volume.pv,
                   .first_name = std::filesystem::path(volume.path).filename().string()};
  json object = claim_object({.key = claim.key, .storage_class = claim.storage_class});
  object["spec"]["volumeName"] = volume.pv;
  LPP_ASSIGN_OR_RETURN(const auto created, bed_.admin().create(object), "bind again");
  claim.uid = created["metadata"]["uid"];
  ledger_.bound_again(volume.pv, claim.uid);
  model_.claims[slot] = claim;
  return {};
}

/// Two volumes with one directory, both released; or one with that of a volume in use.
Result<void> ChaosRun::make_old_volumes(const Step& step) {
  const std::size_t number = model_.next_name++;
  std::string machine = nodes_[step.a % nodes_.size()];
  std::string path = fmt::format("{}/old-{}", bed_.base_paths().front(), number);
  const bool shares = step.b % 4 == 3;
  if (shares) {
    LPP_ASSIGN_OR_RETURN(auto volumes, promises_.volumes(), "old volumes");
    std::erase_if(volumes, [&](const ChaosVolume& volume) {
      return volume.phase != "Bound" || volume.machine.empty();
    });
    if (volumes.empty()) return {};
    const ChaosVolume& volume = volumes[step.c % volumes.size()];
    machine = volume.machine;
    path = volume.path;
  }
  if (model_.gone_nodes.contains(machine)) return {};
  const std::string directory = bed_.on_disk(machine, path);
  if (is_away(directory)) return {};
  if (!shares) {
    std::error_code error;
    if (!std::filesystem::create_directory(directory, error)) return {};  // no base folder yet
  }
  // The one to keep first: as long as it is alone, the other may be removed with everything.
  const char* policies[][2] = {{kDelete, kDelete}, {kRetain, kDelete}, {kRetain, kDelete}};
  for (std::size_t i = 0; i < (shares ? 1U : 2U); ++i) {
    if (i == 0 && !shares) {
      static_cast<void>(ledger_.write(directory, "old-data", directory + "\n"));
    }
    const std::string policy = shares ? kDelete : policies[step.b % 4][i];
    LPP_RETURN_IF_ERROR(
        make_old_volume(fmt::format("{}-{}", number, i), machine, path, policy == kDelete),
        "old volumes");
  }
  return {};
}

/// Released, and without our finalizer.
Result<void> ChaosRun::make_old_volume(const std::string& name, const std::string& machine,
                                       const std::string& path, bool deletes) {
  const std::string uid = fmt::format("gone-claim-{}", name);
  const LedgerVolume volume{.pv = kOldPrefix + name,
                            .directory = bed_.on_disk(machine, path),
                            .machine = machine,
                            .claim_uid = uid,
                            .deletes = deletes};
  ledger_.claim_goes(uid);
  ledger_.may_exist(volume);
  json object = volume_object(
      {.name = volume.pv,
       .node = machine,
       .path = path,
       .reclaim_policy = deletes ? kDelete : kRetain,
       .annotations = {{"pv.kubernetes.io/provisioned-by", "rancher.io/local-path"},
                       {"local.path.provisioner/selected-node", known_name(machine)}}});
  object["spec"]["claimRef"] = {{"apiVersion", "v1"},
                                {"kind", "PersistentVolumeClaim"},
                                {"namespace", kChaosNamespace},
                                {"name", "old-" + name},
                                {"uid", uid}};
  LPP_RETURN_IF_ERROR(bed_.admin().create(object), "old volumes");
  ledger_.made(volume);
  return {};
}

}  // namespace lpp::testing
