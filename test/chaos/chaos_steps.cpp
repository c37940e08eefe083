// SPDX-License-Identifier: Apache-2.0
// What each step of a chaos run does.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "chaos/chaos_run.h"
#include "chaos/tolerate.h"
#include "harness/file_text.h"
#include "harness/kinds.h"
#include "harness/objects.h"
#include "harness/process_probe.h"
#include "helperpod/manifest.h"

namespace lpp::testing {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kSelectedNode = "volume.kubernetes.io/selected-node";
constexpr const char* kOperation = "local.path.provisioner/operation";

}  // namespace

Result<void> ChaosRun::take(const Step& step) {
  std::this_thread::sleep_for(milliseconds(step.c % 30));
  switch (step.kind) {
    case StepKind::kCreateClaim:
    case StepKind::kDeleteClaim:
    case StepKind::kRecreateClaim:
    case StepKind::kEditClaim:
    case StepKind::kMoveClaim:
    case StepKind::kDeleteVolume:
    case StepKind::kVerifyData: return claim_step(step);
    case StepKind::kComeBack:
    case StepKind::kChangePolicy:
    case StepKind::kSaveVolume:
    case StepKind::kForgetVolume:
    case StepKind::kBindAgain:
    case StepKind::kPatchLoop:
    case StepKind::kOldVolumes: return volume_step(step);
    case StepKind::kRemoveNode:
    case StepKind::kReturnNode:
    case StepKind::kRenameNode:
    case StepKind::kRelabelNode:
    case StepKind::kKillNode:
    case StepKind::kSlowNode:
    case StepKind::kFailPulls:
    case StepKind::kHealNode:
    case StepKind::kEvictHelper:
    case StepKind::kDeleteHelper: return node_step(step);
    case StepKind::kGoodConfig:
    case StepKind::kBadConfig:
    case StepKind::kShareClass:
    case StepKind::kDropClass:
    case StepKind::kMakeClass:
    case StepKind::kGoodTemplate:
    case StepKind::kBadTemplate:
    case StepKind::kFailSetup:
    case StepKind::kFailTeardown:
    case StepKind::kSlowScripts:
    case StepKind::kRepairScripts: return settings_step(step);
    case StepKind::kDeleteLease:
    case StepKind::kEditLease: return lease_step(step);
    case StepKind::kKillAgent:
    case StepKind::kStartAgent:
    case StepKind::kRemoveAgent:
    case StepKind::kFreezeAgent:
    case StepKind::kThawAgent:
    case StepKind::kCutAgent:
    case StepKind::kPartitionAgent:
    case StepKind::kHealAgent: return agent_step(step);
    case StepKind::kTakeDisk:
    case StepKind::kReturnDisk: return disk_step(step);
    case StepKind::kWait: std::this_thread::sleep_for(milliseconds(step.a % 300)); return {};
    default: return daemon_step(step);
  }
}

std::string ChaosRun::known_node(std::size_t number) const {
  return known_name(nodes_[number % nodes_.size()]);
}

std::string ChaosRun::known_name(const std::string& machine) const {
  return model_.renamed.contains(machine) ? machine + std::string(kRenamed) : machine;
}

Result<void> ChaosRun::create_claim(std::size_t slot, const std::string& name, const Step& step) {
  const auto& classes = chaos_classes();
  const ChaosClass& storage_class = classes[step.b % classes.size()];
  ChaosClaim claim{.key = {kChaosNamespace, name}, .storage_class = storage_class.name};
  std::size_t node = step.c;
  if (storage_class.comes_back) {
    // The same directory each time, on the same node unless it is to be another for once.
    claim.key.name = "k" + std::to_string(slot);
    if (step.c % 8 != 7) node = slot;
  } else if (name.empty()) {
    claim.key.name = "c" + std::to_string(model_.next_name++);
  }
  if (is_claimed(claim.key.name)) return {};  // its directory was given to another one
  const auto created = bed_.admin().create(claim_object(
      {.key = claim.key, .storage_class = claim.storage_class, .selected_node = known_node(node)}));
  if (!created.ok()) {
    // One of that name may be on its way out.
    if (created.error().is(ErrorCode::kAlreadyExists)) return {};
    return created.error();
  }
  claim.uid = (*created)["metadata"]["uid"];
  model_.claims[slot] = claim;
  return {};
}

Result<void> ChaosRun::delete_claim(std::size_t slot) {
  const ChaosClaim claim = model_.claims.at(slot);
  model_.claims.erase(slot);
  may_be_taken_back(claim);
  ledger_.claim_goes(claim.uid);
  return bed_.admin().remove(k8s::kPersistentVolumeClaims, claim.key);
}

Result<void> ChaosRun::touch_data(ChaosClaim& claim) {
  LPP_ASSIGN_OR_RETURN(const auto object,
                       bed_.admin().find(k8s::kPersistentVolumeClaims, claim.key), "data");
  if (!object || (*object).value("status", json::object()).value("phase", "") != "Bound") {
    return {};
  }
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "data");
  for (const ChaosVolume& volume : volumes) {
    if (volume.pv != claim.pv()) continue;
    if (is_away(volume.disk)) return {};
    const std::string file = Promises::data_file(volume);
    if (claim.content.empty()) {
      const std::string content = claim.pv() + " of seed " + std::to_string(options_.seed) + "\n";
      if (!ledger_.write(volume.disk, Promises::kDataFile, content)) {
        return Error{.message = "nothing can be written into " + volume.disk + " of bound claim " +
                                claim.key.name};
      }
      claim.content = content;
    }
    if (text_of(file) == claim.content) return {};
    return Error{.message = "the data in " + file + " is not what was written"};
  }
  return Error{.message = "bound claim " + claim.key.name + " has no volume"};
}

Result<void> ChaosRun::claim_step(const Step& step) {
  const std::size_t slot = step.a % ChaosModel::kSlots;
  const auto found = model_.claims.find(slot);
  if (step.kind == StepKind::kCreateClaim) {
    if (found != model_.claims.end()) return {};
    return create_claim(slot, "", step);
  }
  if (found == model_.claims.end()) return {};
  ChaosClaim& claim = found->second;
  switch (step.kind) {
    case StepKind::kDeleteClaim: return delete_claim(slot);
    case StepKind::kRecreateClaim: {
      const k8s::ObjectKey key = claim.key;
      LPP_RETURN_IF_ERROR(delete_claim(slot), "recreate");
      LPP_RETURN_IF_ERROR(bed_.admin().remove_and_wait(k8s::kPersistentVolumeClaims, key, {},
                                                       {.limit = options_.patience}),
                          "recreate");
      return create_claim(slot, key.name, step);
    }
    case StepKind::kEditClaim:
      return tolerate(bed_.admin().merge(
          k8s::kPersistentVolumeClaims, claim.key,
          {{"metadata", {{"annotations", {{"chaos", std::to_string(step.b)}}}}}}));
    case StepKind::kMoveClaim: {
      json node;
      if (step.b % 4 != 0) node = known_node(step.c);
      may_be_taken_back(claim);
      return tolerate(
          bed_.admin().merge(k8s::kPersistentVolumeClaims, claim.key,
                             {{"metadata", {{"annotations", {{kSelectedNode, node}}}}}}));
    }
    case StepKind::kDeleteVolume:
      // An administrator who removes a retained volume removes its directory himself.
      if (!ledger_.deletes(claim.pv()) || claim.content.empty()) return {};
      ledger_.object_deleted(claim.pv());
      return tolerate(bed_.admin().remove(k8s::kPersistentVolumes, {"", claim.pv()}));
    default: return touch_data(claim);
  }
}

Result<void> ChaosRun::node_step(const Step& step) {
  const std::string node = nodes_[step.a % nodes_.size()];  // the machine
  ClusterFaults::NodeTrouble& trouble = troubles_[node];
  switch (step.kind) {
    case StepKind::kRemoveNode:
      if (!cluster_.can_remove_nodes() || !model_.gone_nodes.insert(node).second) return {};
      model_.nodes_that_were_gone.insert(node);
      all_may_be_taken_back();
      ledger_.machine_revived(node);
      LPP_RETURN_IF_ERROR(machine_goes(node), "remove node");
      cluster_.remove_node(known_name(node));
      return {};
    case StepKind::kReturnNode:
      if (model_.gone_nodes.erase(node) > 0) {
        ledger_.machine_revived(node);
        cluster_.return_node(known_name(node));
        trouble = {};
        return machine_comes(node);
      }
      return {};
    case StepKind::kRenameNode: return rename_node(node);
    case StepKind::kRelabelNode: return relabel_node(node, step);
    case StepKind::kKillNode: trouble.dead = true; break;
    case StepKind::kSlowNode:
      trouble.slow = true;
      trouble.silent = step.b % 2 == 0;
      break;
    case StepKind::kFailPulls: trouble.fail_pulls = true; break;
    case StepKind::kHealNode:
      ledger_.machine_revived(node);
      trouble = {};
      break;
    default: {
      LPP_ASSIGN_OR_RETURN(const auto pods,
                           bed_.admin().list(k8s::kPods, kDaemonNamespace,
                                             helperpod::label_selector("rancher.io/local-path")),
                           "helper pods");
      if (pods.empty()) return {};
      const json& pod = pods[step.b % pods.size()];
      const std::string name = pod["metadata"]["name"];
      if (step.kind == StepKind::kEvictHelper) {
        cluster_.evict(kDaemonNamespace, name);
        return {};
      }
      const json operation =
          json::parse(pod["metadata"].value("annotations", json::object()).value(kOperation, "{}"),
                      nullptr, false);
      if (operation.is_object()) {
        model_.lost_records.insert(
            promises_.disk_of(operation.value("node", ""), operation.value("path", "")));
      }
      const std::optional<int> grace = step.c % 2 == 0 ? std::optional<int>(0) : std::nullopt;
      return tolerate(bed_.admin().remove(k8s::kPods, {kDaemonNamespace, name}, grace));
    }
  }
  trouble_machine(node);
  if (trouble.dead && !model_.gone_nodes.contains(node)) ledger_.machine_died(node);
  return {};
}

Result<void> ChaosRun::rename_node(const std::string& machine) {
  if (!cluster_.can_rename_nodes() || model_.gone_nodes.contains(machine)) return {};
  const std::string from = known_name(machine);
  if (model_.renamed.erase(machine) == 0) model_.renamed.insert(machine);
  // What was recorded for the old name is out of reach.
  model_.nodes_that_were_gone.insert(machine);
  model_.ever_renamed.insert(machine);
  all_may_be_taken_back();
  ledger_.machine_revived(machine);
  troubles_.erase(machine);
  LPP_RETURN_IF_ERROR(machine_goes(machine), "rename node");
  cluster_.rename_node(from, known_name(machine), machine);
  return machine_comes(machine);
}

Result<void> ChaosRun::relabel_node(const std::string& machine, const Step& step) {
  LPP_RETURN_IF_ERROR(keep_disks_of(machine), "relabel node");  // volumes go by the label
  json labels = {{"chaos", std::to_string(step.b)}};
  if (step.b % 3 == 0) {
    labels = {{"kubernetes.io/hostname", machine + "-x"}};
    model_.ever_relabelled.insert(machine);
  }
  if (step.b % 3 == 1) labels = {{"kubernetes.io/hostname", machine}};
  return tolerate(bed_.admin().merge(k8s::kNodes, {"", known_name(machine)},
                                     {{"metadata", {{"labels", labels}}}}));
}

Result<void> ChaosRun::write_config(const json& config) {
  json fresh = config;
  // Each one differs: what was put off until the configuration changes is due again.
  if (fresh.is_object()) fresh["cmdTimeoutSeconds"] = 60 + ++generation_ % 50;
  for (const Replica& replica : replicas_) {
    LPP_RETURN_IF_ERROR(replica.installation->write_config(fresh), "configuration");
  }
  return {};
}

Result<void> ChaosRun::set_data(const std::string& key, const std::string& text) {
  return tolerate(bed_.admin().merge(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"},
                                     {{"data", {{key, text}}}}));
}

/// The script with one more line.
std::string ChaosRun::script_with(const std::string& key, const std::string& line, bool at_end) {
  std::string text = original_data_[key];
  if (at_end) return text + "\n" + line + "\n";
  return text.insert(text.find('\n') + 1, line + "\n");
}

Result<void> ChaosRun::fail_setup(const Step& step) {
  model_.setup_fails = true;
  model_.setup_marker = fmt::format("bees-{}-{}", step.a, summary_.steps);
  // At the end: the directory is there already.
  return set_data("setup", script_with("setup", "echo " + model_.setup_marker + " >&2; exit 7",
                                       step.b % 2 == 0));
}

Result<void> ChaosRun::settings_step(const Step& step) {
  const auto with = [&](const std::string& key, const std::string& line, bool at_end) {
    return script_with(key, line, at_end);
  };
  const auto map_of = [](const std::string& node, const json& paths) {
    return json{{"node", node}, {"paths", paths}};
  };
  const std::string everywhere = "DEFAULT_PATH_FOR_NON_LISTED_NODES";
  const json bases = bed_.base_paths();
  switch (step.kind) {
    case StepKind::kGoodConfig: {
      json map = json::array({map_of(everywhere, bases)});
      if (step.a % 3 == 0) {
        map = json::array({map_of(everywhere, {bed_.base_paths().front() + "-third"})});
      }
      if (step.a % 3 == 1) map.push_back(map_of(known_node(step.b), json::array()));
      config_is_bad_ = false;
      model_.bases_changed = true;
      all_may_be_taken_back();
      return write_config({{"nodePathMap", map}});
    }
    case StepKind::kBadConfig: {
      if (!all_were_ready()) return {};
      const json bad[] = {json("nothing"),
                          {{"nodePathMap", 5}},
                          {{"nodePathMap", json::array({map_of(everywhere, {"not/absolute"})})}},
                          {{"nodePathMap", json::array({map_of(everywhere, {"/"})})}}};
      config_is_bad_ = true;
      return write_config(bad[step.a % std::size(bad)]);
    }
    case StepKind::kShareClass: {
      config_is_bad_ = false;
      json config = replicas_.front().installation->default_config();
      if (step.a % 2 == 0) {
        config["storageClassConfigs"] = {
            {"chaos-shared", {{"sharedFileSystemPath", bed_.shared_path()}}}};
      }
      return write_config(config);
    }
    case StepKind::kDropClass:
      return tolerate(bed_.admin().remove(k8s::kStorageClasses, {"", "chaos-flip"}));
    case StepKind::kMakeClass: return make_class("chaos-flip");
    case StepKind::kGoodTemplate: {
      std::string text = original_data_["helperPod.yaml"];
      const std::string name = "name: helper-pod\n";
      text.insert(text.find(name) + name.size(),
                  fmt::format("  labels:\n    chaos: \"{}\"\n", step.a));
      return set_data("helperPod.yaml", text);
    }
    case StepKind::kBadTemplate:
      if (!all_were_ready()) return {};
      return set_data("helperPod.yaml", step.a % 2 == 0 ? "kind: [Pod" : "kind: Pod\nspec: 5\n");
    case StepKind::kFailSetup: return fail_setup(step);
    case StepKind::kFailTeardown:
      model_.teardown_marker = fmt::format("wasps-{}-{}", step.a, summary_.steps);
      return set_data(
          "teardown",
          with("teardown", "echo " + model_.teardown_marker + " >&2; exit 9", step.b % 2 == 0));
    case StepKind::kSlowScripts:
      if (!model_.setup_fails) {
        LPP_RETURN_IF_ERROR(set_data("setup", with("setup", "sleep 0.5", step.b % 2 == 0)), "slow");
      }
      model_.teardown_marker.clear();
      return set_data("teardown", with("teardown", "sleep 0.5", step.b % 2 == 0));
    default:
      model_.setup_fails = false;
      model_.teardown_marker.clear();
      LPP_RETURN_IF_ERROR(set_data("setup", original_data_["setup"]), "repair");
      return set_data("teardown", original_data_["teardown"]);
  }
}

/// SIGTERM: it ends properly and in time, whatever is wrong around it.
Result<void> ChaosRun::stop(Replica& replica) {
  LPP_ASSIGN_OR_RETURN(const auto ended,
                       replica.installation->daemon().terminate(std::chrono::seconds(12)), "stop");
  // One that has only just begun has no handlers of signals yet.
  if (ended.exit == ChildExit{} || ended.exit == ChildExit{.signal = SIGTERM}) return {};
  return Error{.message = "the daemon stopped with " + ended.exit.to_string()};
}

Result<void> ChaosRun::daemon_step(const Step& step) {
  Replica& replica = replicas_[step.a % replicas_.size()];
  FaultProxy& proxy = replica.installation->proxy();
  switch (step.kind) {
    case StepKind::kKillDaemon:
      if (!std::exchange(replica.running, false)) return {};
      replica.paused = false;
      replica.installation->kill_daemon();
      return {};
    case StepKind::kStopDaemon:
      if (replica.paused || !std::exchange(replica.running, false)) return {};
      return stop(replica);
    case StepKind::kStartDaemon: return start(replica);
    case StepKind::kPauseDaemon:
      if (!replica.running || std::exchange(replica.paused, true)) return {};
      // A call that it has sent already would be let through while it sleeps: here such calls are
      // lost, so that whatever comes from it later was sent when it was awake again.
      (void)freeze(replica.installation->daemon().pid());
      proxy.cut_connections();
      return {};
    case StepKind::kResumeDaemon:
      if (!replica.running || !std::exchange(replica.paused, false)) return {};
      replica.installation->daemon().signal(SIGCONT);
      return {};
    case StepKind::kPartition:
      replica.partitioned = true;
      proxy.refuse(true);
      proxy.cut_connections();
      return {};
    case StepKind::kHealPartition:
      replica.partitioned = false;
      proxy.refuse(false);
      return {};
    case StepKind::kCutConnections:
      if (step.b % 2 == 0) cluster_.cut_connections();
      proxy.cut_connections();
      return {};
    case StepKind::kForgetHistory:
      cluster_.forget_history();
      for (const Replica& one : replicas_) one.faults->expire_watches();
      if (step.b % 2 == 0) proxy.cut_connections();
      return {};
    case StepKind::kReleaseHung: proxy.release_hung(); return {};
    default: {
      const double levels[] = {0, 0.02, 0.05, 0.1, 0.2, 0.4};
      replica.faults->set_level(levels[step.b % std::size(levels)]);
      return {};
    }
  }
}

Result<void> ChaosRun::lease_step(const Step& step) {
  const k8s::ObjectKey lease{kDaemonNamespace, kDaemonLease};
  // From before the edit until long after it, however long it takes.
  const auto unknown = [this](Result<void> edited) {
    leaders_.tampered(kLeaderUnknown);
    return edited;
  };
  const auto edit = [&](const json& spec) {
    return tolerate(bed_.admin().merge(k8s::kLeases, lease, {{"spec", spec}}));
  };
  if (step.kind == StepKind::kDeleteLease) {
    leaders_.tampered(kLeaderUnknown);
    return unknown(tolerate(bed_.admin().remove(k8s::kLeases, lease)));
  }
  switch (step.a % 4) {
    case 0:
      // Nobody may take it at once, so this one is judged.
      return edit({{"holderIdentity", "somebody-else"}, {"leaseDurationSeconds", 3}});
    case 1: leaders_.tampered(kLeaderUnknown); return unknown(edit({{"holderIdentity", ""}}));
    case 2: return edit({{"leaseTransitions", 7}});
    default: leaders_.tampered(kLeaderUnknown); return unknown(edit({{"leaseDurationSeconds", 1}}));
  }
}

}  // namespace lpp::testing
