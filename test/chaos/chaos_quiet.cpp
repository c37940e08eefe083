// SPDX-License-Identifier: Apache-2.0
// The quiet points of a chaos run, and what it leaves behind.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "chaos/chaos_run.h"
#include "chaos/tolerate.h"
#include "harness/kinds.h"
#include "harness/objects.h"
#include "helperpod/manifest.h"

namespace lpp::testing {

namespace {

using nlohmann::json;
using std::chrono::steady_clock;

bool is_folder_of_pattern(const std::string& directory) {
  return std::filesystem::path(directory).filename() == kChaosNamespace;
}

}  // namespace

Result<void> ChaosRun::end_faults() {
  LPP_RETURN_IF_ERROR(bring_back_of(""), "disks");
  for (Replica& replica : replicas_) {
    replica.faults->set_level(0);
    FaultProxy& proxy = replica.installation->proxy();
    proxy.refuse(false);
    replica.partitioned = false;
    if (std::exchange(replica.paused, false)) replica.installation->daemon().signal(SIGCONT);
    proxy.release_hung();
    proxy.cut_connections();
    proxy.clear_records();
  }
  for (const std::string& node : nodes_) {
    if (!ledger_.saved_on(node).empty()) continue;  // see wait_for_saved()
    ledger_.machine_revived(node);
    troubles_.erase(node);
    trouble_machine(node);
    if (model_.gone_nodes.erase(node) > 0) cluster_.return_node(known_name(node));
  }
  return end_faults_of_agents();
}

/// What an administrator and the scheduler would do: everything that can work shall work now.
Result<void> ChaosRun::repair() {
  for (const auto& [key, text] : original_data_) {
    LPP_RETURN_IF_ERROR(set_data(key, text), "repair");
  }
  model_.setup_fails = false;
  model_.teardown_marker.clear();
  LPP_RETURN_IF_ERROR(make_class("chaos-flip"), "repair");
  for (const std::string& machine : nodes_) {
    LPP_RETURN_IF_ERROR(tolerate(bed_.admin().merge(
                            k8s::kNodes, {"", known_name(machine)},
                            {{"metadata", {{"labels", {{"kubernetes.io/hostname", machine}}}}}})),
                        "repair");
  }
  LPP_RETURN_IF_ERROR(write_config(replicas_.front().installation->default_config()), "repair");
  config_is_bad_ = false;
  const k8s::ObjectKey lease{kDaemonNamespace, kDaemonLease};
  LPP_ASSIGN_OR_RETURN(const auto held, bed_.admin().find(k8s::kLeases, lease), "repair");
  if (held && (*held)["spec"].value("holderIdentity", "") == "somebody-else") {
    leaders_.tampered(kLeaderUnknown);
    auto removed = bed_.admin().remove(k8s::kLeases, lease);
    leaders_.tampered(kLeaderUnknown);
    if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) return removed;
  }
  return {};
}

/// Claims without a node get one, as from the scheduler: the daemon may have sent them back.
Result<void> ChaosRun::select_nodes() {
  std::size_t number = 0;
  for (const auto& [slot, claim] : model_.claims) {
    LPP_ASSIGN_OR_RETURN(const auto object,
                         bed_.admin().find(k8s::kPersistentVolumeClaims, claim.key), "node");
    if (!object) return Error{.message = "claim " + claim.key.name + " is gone"};
    const json annotations = (*object)["metadata"].value("annotations", json::object());
    if (annotations.contains("volume.kubernetes.io/selected-node")) continue;
    if (!claim.volume.empty()) continue;
    const json patch = {
        {"metadata",
         {{"annotations", {{"volume.kubernetes.io/selected-node", known_node(number++)}}}}}};
    LPP_RETURN_IF_ERROR(bed_.admin().merge(k8s::kPersistentVolumeClaims, claim.key, patch),
                        "repair");
  }
  return {};
}

/// Promise 3: a claim that the failing script keeps from its volume says so, with the script's
/// words. One that has moved waits for its directory on the node before to go first: if that fails
/// too, those are the words.
Result<void> ChaosRun::check_failures_told() {
  if (!model_.setup_fails) return {};
  LPP_RETURN_IF_ERROR(write_config(replicas_.front().installation->default_config()), "told");
  config_is_bad_ = false;
  for (const auto& [slot, claim] : model_.claims) {
    if (claim.storage_class != "local-path" && claim.storage_class != "chaos-local") continue;
    if (!claim.volume.empty()) continue;
    const auto told = wait_until(
        "an event of claim " + claim.key.name + " says \"" + model_.setup_marker + "\"",
        [&, key = claim.key]() -> std::string {
          const auto object = bed_.admin().get(k8s::kPersistentVolumeClaims, key);
          if (!object.ok()) return object.error().message;
          const json annotations = (*object)["metadata"].value("annotations", json::object());
          if (!annotations.contains("volume.kubernetes.io/selected-node")) return "";
          if ((*object).value("status", json::object()).value("phase", "") == "Bound") return "";
          std::string all;
          for (const auto& event : bed_.admin().events_about("PersistentVolumeClaim", key)) {
            if (event.find(model_.setup_marker) != std::string::npos) return "";
            if (!model_.teardown_marker.empty() &&
                event.find(model_.teardown_marker) != std::string::npos &&
                event.starts_with("Warning ProvisioningCleanupFailed: ")) {
              return "";
            }
            all += "\n  " + event;
          }
          return "its events:" + all;
        },
        {.limit = options_.patience, .interval = std::chrono::milliseconds(50)});
    if (!told.ok()) return told;
  }
  return {};
}

/// Volumes that were changed to Retain while their removal waited for a dead node: everybody gets
/// the time to take it back before the node comes again. Nothing else is wrong now.
Result<void> ChaosRun::wait_for_saved() {
  for (const std::string& machine : nodes_) {
    const auto saved = ledger_.saved_on(machine);
    if (!saved.empty()) {
      summary_.saved += saved.size();
      // What is left after that is judged by what it does to the data.
      static_cast<void>(
          wait_until("nothing is to be removed any more",
                     [&]() -> std::string {
                       const auto left = removals_of(saved);
                       if (!left.ok()) return left.error().message;
                       return *left == 0 ? "" : "something is";
                     },
                     {.limit = options_.patience, .interval = std::chrono::milliseconds(50)}));
    }
    ledger_.machine_revived_in_order(machine);
    troubles_.erase(machine);
    trouble_machine(machine);
  }
  return end_faults_of_agents();
}

/// A claim that was made again waits as long as the retained volume of the one before is there: an
/// administrator forgets that volume.
Result<void> ChaosRun::free_names() {
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "names");
  for (const ChaosVolume& volume : volumes) {
    if (!volume.kept_after_claim() || !is_claimed(volume)) continue;
    LPP_RETURN_IF_ERROR(forget_volume(volume.pv), "names");
  }
  return {};
}

/// As an administrator does, with the folder of a pattern around it when it was the last.
void ChaosRun::remove_by_hand(const std::string& directory) {
  ledger_.remove_directory(directory);
  std::error_code ignored;
  const std::string parent = std::filesystem::path(directory).parent_path();
  if (is_folder_of_pattern(parent)) std::filesystem::remove(parent, ignored);
}

/// Some retained volumes go with their directories, some without, some wait for what may come.
Result<void> ChaosRun::clear_retained(Clearing clearing) {
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "retained");
  for (const ChaosVolume& volume : volumes) {
    if (volume.deletes || volume.phase == "Bound") continue;
    const std::size_t mood = clearing == Clearing::kAll ? 0 : moods_.below(3);
    if (mood == 2) continue;
    ledger_.object_deleted(volume.pv);
    LPP_RETURN_IF_ERROR(bed_.admin().remove_and_wait(k8s::kPersistentVolumes, {"", volume.pv}, {},
                                                     {.limit = options_.patience}),
                        "retained");
    const bool shared = std::any_of(volumes.begin(), volumes.end(), [&](const ChaosVolume& other) {
      return other.pv != volume.pv && other.disk == volume.disk;
    });
    if (mood == 0 && !shared) remove_by_hand(volume.disk);
  }
  return {};
}

/// Directories without a volume: what nobody can know of any more goes; what was kept on purpose
/// goes at times, when no claim may want it.
Result<void> ChaosRun::clear_leftovers(Clearing clearing) {
  std::error_code ignored;
  for (const std::string& directory : promises_.excused()) {
    ++summary_.excused;
    if (is_folder_of_pattern(directory)) {
      std::filesystem::remove(directory, ignored);
    } else if (ledger_.holds_files(directory)) {
      ledger_.stays(directory);
    } else {
      remove_by_hand(directory);
    }
  }
  for (const std::string& directory : promises_.stayed()) {
    ++summary_.stayed;
    if (is_folder_of_pattern(directory)) {
      std::filesystem::remove(directory, ignored);
    } else {
      ledger_.stays(directory);
    }
  }
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "leftovers");
  std::set<std::string> names;
  for (const ChaosVolume& volume : volumes) names.insert(volume.pv);
  ledger_.settle(names);
  for (const std::string& directory : ledger_.may_stay()) {
    if (clearing == Clearing::kSome && moods_.chance(0.6)) continue;
    remove_by_hand(directory);
  }
  return {};
}

/// What prepare() made, for beds that are used for something else too.
Result<void> ChaosRun::remove_objects() {
  LPP_RETURN_IF_ERROR(forget_disks(), "end");
  for (const ChaosClass& one : chaos_classes()) {
    if (!one.name.starts_with("chaos-")) continue;
    LPP_RETURN_IF_ERROR(bed_.admin().remove_and_wait(k8s::kStorageClasses, {"", one.name}), "end");
  }
  return bed_.admin().remove(kNamespaces, {"", kChaosNamespace});
}

/// For a bed that outlives a run that failed: nothing of it may trouble what comes after.
void ChaosRun::clean_up() {
  for (Replica& replica : replicas_) {
    if (replica.installation != nullptr) replica.installation->kill_daemon();
  }
  for (const auto& machine : options_.agents) {
    if (agents_ != nullptr) static_cast<void>(agents_->uninstall(machine));
  }
  static_cast<void>(bring_back_of(""));
  for (const std::string& node : nodes_) {
    cluster_.trouble_node(known_name(node), {});
    if (model_.gone_nodes.erase(node) > 0) cluster_.return_node(known_name(node));
  }
  // As far as it goes: the failure has been told already.
  const auto each = [&](const k8s::Resource& resource, const std::string& ns,
                        const std::string& selector, const auto& wanted) {
    const auto objects = bed_.admin().list(resource, ns, selector);
    if (!objects.ok()) return;
    for (const json& object : *objects) {
      if (!wanted(object)) continue;
      const k8s::ObjectKey key{ns, object["metadata"]["name"]};
      static_cast<void>(
          bed_.admin().merge(resource, key, {{"metadata", {{"finalizers", nullptr}}}}));
      static_cast<void>(bed_.admin().remove(resource, key, 0));
    }
  };
  const auto any = [](const json& /*object*/) { return true; };
  each(k8s::kPersistentVolumeClaims, kChaosNamespace, "", any);
  each(k8s::kPods, kDaemonNamespace, helperpod::label_selector("rancher.io/local-path"), any);
  std::vector<std::string> directories;
  each(k8s::kPersistentVolumes, "", "", [&](const json& object) {
    const std::string ns = object["spec"].value("claimRef", json::object()).value("namespace", "");
    const ChaosVolume volume = promises_.volume_of(object);
    const bool mine = ns == kChaosNamespace || ledger_.knows(volume.pv);
    if (mine) directories.push_back(volume.disk);
    return mine;
  });
  for (const std::string& directory : directories) remove_by_hand(directory);
  for (const std::string& directory : ledger_.may_stay()) remove_by_hand(directory);
  static_cast<void>(remove_objects());
}

Result<void> ChaosRun::quiet_point(Clearing clearing) {
  const auto began = steady_clock::now();
  std::string last;  // what came right last
  std::string lost;
  LPP_RETURN_IF_ERROR(end_faults(), "quiet point");
  for (Replica& replica : replicas_) {
    LPP_RETURN_IF_ERROR(start(replica), "quiet point");
    LPP_RETURN_IF_ERROR(replica.installation->wait_ready(), "quiet point");
  }
  LPP_RETURN_IF_ERROR(wait_for_saved(), "quiet point");
  LPP_RETURN_IF_ERROR(check_failures_told(), "quiet point");
  LPP_RETURN_IF_ERROR(repair(), "quiet point");
  LPP_RETURN_IF_ERROR(
      wait_until("every promise is kept",
                 [&]() -> std::string {
                   lost = ledger_.lost();  // and will not come again
                   if (!lost.empty()) return "";
                   auto helped = select_nodes();
                   // A volume of a claim that is gone may have been made just now.
                   if (helped.ok()) helped = free_names();
                   std::string broken = helped.ok() ? promises_.broken() : helped.error().message;
                   if (!broken.empty()) last = broken;
                   return broken;
                 },
                 {.limit = options_.patience, .interval = std::chrono::milliseconds(50)}),
      "quiet point");
  if (!lost.empty()) return Error{.message = lost};
  LPP_RETURN_IF_ERROR(check_alive(), "quiet point");
  LPP_RETURN_IF_ERROR(clear_retained(clearing), "quiet point");
  LPP_RETURN_IF_ERROR(clear_leftovers(clearing), "quiet point");
  model_.nodes_that_were_gone.clear();
  model_.lost_records.clear();
  model_.taken_back.clear();
  model_.bases_changed = false;
  for (auto& [slot, claim] : model_.claims) {
    LPP_RETURN_IF_ERROR(touch_data(claim), "quiet point");
    if (!claim.content.empty()) ++summary_.volumes;
  }
  LPP_RETURN_IF_ERROR(name_disks(), "quiet point");
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "quiet point");
  summary_.by_agents += static_cast<std::size_t>(
      std::count_if(volumes.begin(), volumes.end(), [](const auto& one) { return one.by_agent; }));
  ++summary_.quiet_points;
  if (options_.say) {
    const auto took = std::chrono::duration<double>(steady_clock::now() - began).count();
    options_.say(fmt::format(
        "{} steps, {} claims, {} files, quiet after {:.1f} s, {} takeovers; last: {}",
        summary_.steps, model_.claims.size(), ledger_.files(), took, leaders_.takeovers(), last));
  }
  return {};
}

}  // namespace lpp::testing
