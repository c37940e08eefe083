// SPDX-License-Identifier: Apache-2.0
#include "cli/release_command.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/cluster.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "flags/flag_reader.h"
#include "k8s/event_recorder.h"
#include "provisioner/names.h"
#include "provisioner/node_lost.h"
#include "provisioner/volume_node.h"
#include "provisioner/volume_rules.h"

namespace lpp::cli {

namespace release_command {
namespace {

constexpr std::string_view kName = "release";

constexpr std::array kFlags = {
    Flag{.name = "node",
         .placeholder = "NAME",
         .help = "the node that was deleted from the cluster (required)"},
    Flag{.name = "dry-run",
         .fallback = "false",
         .help = "only show the claims and what would happen to them"},
    Flag{.name = "yes", .fallback = "false", .help = "do it; on a terminal it must be said"},
    kOutputFlag,
};

std::span<const FlagGroup> groups() {
  static const auto all = cluster_command_flags(kFlags);
  return all;
}

using Volume = std::shared_ptr<const k8s::PersistentVolume>;
using Claim = std::shared_ptr<const k8s::PersistentVolumeClaim>;

/// A volume that names the node, and what becomes of its claim.
struct Row {
  Volume volume{};
  Claim claim{};  // that is to be deleted; nullptr: none is
  enum class Result { kPlanned, kDone, kFailed } result = Result::kPlanned;
  std::string message{};
};

/// Why the claim stays; "" = it is to be deleted.
std::string why_it_stays(const k8s::PersistentVolume& volume, const Claim& claim,
                         const k8s::Store<k8s::Node>& nodes, const config::Config& config) {
  using Where = provisioner::VolumeNode::Kind;
  if (volume.node_affinity.empty() || provisioner::is_on_shared_filesystem(volume.path, config)) {
    return "its volume is on a filesystem that all nodes share";
  }
  const auto node = provisioner::node_of(volume, nodes);
  if (node.kind == Where::kNode) return "its volume is on node " + node.name;
  if (!provisioner::is_on_none_of(volume, nodes)) {
    return "it is not clear where its volume is: " + node.description;
  }
  if (volume.phase == "Released") return "the volume is released already";
  if (volume.meta.deleting()) return "the volume is being deleted already";
  if (volume.phase != "Bound" || claim == nullptr || claim->meta.uid != volume.claim_uid ||
      claim->volume_name != volume.meta.name) {
    return "no claim is bound to the volume";
  }
  if (claim->meta.deleting()) return "it is being deleted already";
  return {};
}

std::string what_becomes_of(const k8s::PersistentVolume& volume) {
  const bool goes = volume.reclaim_policy == "Delete";
  return std::string("the claim is deleted; the volume ") +
         (goes ? "goes, its directory stays on the node's disk"
               : "stays Released, its directory on the node's disk");
}

std::vector<Row> rows_of(const ClusterView& view, const std::string& name,
                         const k8s::Store<k8s::Node>& nodes, const config::Config& config) {
  k8s::Node gone;
  gone.meta.name = name;
  std::vector<Row> rows;
  for (const auto& volume : view.volumes.list()) {
    if (!provisioner::concerns(gone, *volume)) continue;
    const auto claim = view.claims.get(volume->claim);
    Row row{.volume = volume, .message = why_it_stays(*volume, claim, nodes, config)};
    if (row.message.empty()) {
      row.claim = claim;
      row.message = what_becomes_of(*volume);
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.volume->claim, a.volume->meta.name) <
           std::tie(b.volume->claim, b.volume->meta.name);
  });
  return rows;
}

/// On claim and volume, as the daemon tells it. That it was told is not what is asked for.
void tell(k8s::EventRecorder& events, const Row& row, const std::string& node) {
  const std::string why = "node " + node + " was deleted from the cluster: ";
  const auto store = [&](std::string_view kind, const k8s::ObjectMeta& meta,
                         const std::string& text) {
    (void)events.store(k8s::reference_to(kind, meta), k8s::EventType::kWarning,
                       provisioner::kClaimReleased, why + text);
  };
  store("PersistentVolumeClaim", row.claim->meta,
        "this claim was deleted by hand (release), its data stays in " + row.volume->path +
            " on that node's disk");
  store("PersistentVolume", row.volume->meta,
        "the claim of this volume was deleted by hand (release); nothing removes its directory " +
            row.volume->path + " should the node come back");
}

/// Marks the volume and deletes its claim, both as they were seen.
Result<void> let_go(k8s::ApiClient& api, const Clock& clock, const Row& row,
                    const std::string& node) {
  const auto there = api.get(k8s::kNodes, {"", node});
  if (there.ok()) {
    return Error{.code = ErrorCode::kConflict, .message = "node " + node + " is registered again"};
  }
  if (!there.error().is(ErrorCode::kNotFound)) return there.error().wrap("read node " + node);
  const auto marked = provisioner::mark_node_lost(api, *row.volume, clock.wall_now());
  if (!marked.ok()) return marked.error();
  return provisioner::delete_claim(api, *row.claim);
}

bool let_all_go(Cluster& cluster, Context& context, std::vector<Row>& rows,
                const std::string& node) {
  k8s::EventRecorder events(cluster.api(), context.clock, "local-path-provisioner");
  bool all = true;
  for (Row& row : rows) {
    if (row.claim == nullptr) continue;
    const auto done = let_go(cluster.api(), context.clock, row, node);
    if (done.ok()) {
      row.result = Row::Result::kDone;
      tell(events, row, node);
      continue;
    }
    all = false;
    row.result = Row::Result::kFailed;
    row.message = done.error().message;
    if (done.error().is(ErrorCode::kConflict)) row.message += "; look again and repeat";
  }
  return all;
}

std::string_view word_of(const Row& row) {
  if (row.claim == nullptr) return "kept";
  switch (row.result) {
    case Row::Result::kDone: return "deleted";
    case Row::Result::kFailed: return "failed";
    case Row::Result::kPlanned: break;
  }
  return "delete";
}

nlohmann::json to_json(const Row& row) {
  return {{"namespace", row.volume->claim.ns},
          {"claim", row.volume->claim.name},
          {"volume", row.volume->meta.name},
          {"storageClass", row.volume->storage_class_name},
          {"reclaimPolicy", row.volume->reclaim_policy},
          {"path", row.volume->path},
          {"action", word_of(row)},
          {"message", row.message}};
}

std::string table_of(const std::vector<Row>& rows, const std::string& node,
                     const Context& context) {
  std::vector<std::vector<Cell>> cells;
  for (const Row& row : rows) {
    const std::string claim = row.volume->claim.name.empty() ? "-" : row.volume->claim.to_string();
    const bool failed = row.result == Row::Result::kFailed;
    cells.push_back({{one_line(claim)},
                     {one_line(row.volume->meta.name)},
                     {one_line(node)},
                     {one_line(row.volume->reclaim_policy)},
                     {std::string(word_of(row)), failed ? Colour::kRed : Colour::kNone},
                     {one_line(row.message)}});
  }
  return table(context.terminal, {"CLAIM", "VOLUME", "NODE", "RECLAIM", "ACTION", "WHAT"}, cells);
}

int run_release(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, groups());
  const std::string node = flags.text("node");
  const std::string format = flags.choice("output");
  const bool dry_run = flags.boolean("dry-run");
  const bool yes = flags.boolean("yes");
  if (flags.error()) return fail(context, kName, *flags.error(), kExitUsage);
  if (node.empty() || !given.words.empty()) {
    const char* const wanted = "expected --node NAME and nothing else beside flags";
    return fail(context, kName, invalid(wanted), kExitUsage);
  }
  const auto cluster = Cluster::open(context, flags);
  if (!cluster.ok()) return fail(context, kName, cluster.error(), kExitProblem);

  std::vector<Row> rows;
  {
    Progress progress(context, "looking for the provisioner");
    const Installation installation = find_installation(**cluster, context, flags);
    progress.now("reading volumes");
    ClusterView view;
    const LoadOptions options{.helper_pods = false,
                              .events = false,
                              .nodes = false,
                              .waiting_pods = false,
                              .config = true};
    if (auto loaded = load(**cluster, installation, options, view); !loaded.ok()) {
      return fail(context, kName, loaded.error(), kExitProblem);
    }
    const auto config = config_in_force(installation, view);
    if (!config.ok()) return fail(context, kName, config.error(), kExitProblem);
    // After the volumes: a node that has come back meanwhile is seen.
    const auto nodes = provisioner::ask_for_nodes((*cluster)->api());
    if (!nodes.ok()) return fail(context, kName, nodes.error(), kExitProblem);
    if ((*nodes)->get({"", node}) != nullptr) {
      return fail(context, kName,
                  invalid("node " + node +
                          " is registered: its claims can only be let go once it was deleted from "
                          "the cluster (kubectl delete node " +
                          node + "), which only a node that is gone for good should be"),
                  kExitProblem);
    }
    rows = rows_of(view, node, **nodes, *config);
  }
  const auto wanted =
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.claim != nullptr; });
  const bool must_ask = context.terminal.progress && !yes && wanted > 0;
  bool all = true;
  if (!dry_run && !must_ask) all = let_all_go(**cluster, context, rows, node);

  if (!format.empty()) {
    nlohmann::json items = nlohmann::json::array();
    for (const Row& row : rows) items.push_back(to_json(row));
    context.out(machine_text(
        {{"node", node}, {"dryRun", dry_run || must_ask}, {"items", std::move(items)}}, format));
  } else if (rows.empty()) {
    context.err("No volume of the provisioner is on a node of the name " + node + ".\n");
  } else {
    context.out(table_of(rows, node, context));
  }
  if (dry_run || !must_ask) return all ? kExitOk : kExitProblem;
  const std::string what = counted(static_cast<std::size_t>(wanted), "claim") + " would be deleted";
  return fail(context, kName, invalid(what + ", nothing was done: say it with --yes"), kExitUsage);
}

}  // namespace
}  // namespace release_command

const Command kReleaseCommand{
    .name = "release",
    .summary = "let the claims of a node go that was deleted from the cluster",
    .text =
        "Delete the claims whose volume is on a node that was deleted from the cluster, so that\n"
        "StatefulSets make new ones and their pods come up elsewhere. The data on that node's "
        "disk\n"
        "stays as it is, also when the node comes back. A node that is registered is refused.\n"
        "Needs the permissions to delete persistentvolumeclaims and to patch persistentvolumes.\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner release --node worker-7 --dry-run\n"
        "  local-path-provisioner release --node worker-7 --yes\n"
        "  local-path-provisioner release --node worker-7 --dry-run -o json\n",
    .flags = release_command::groups(),
    .run = release_command::run_release,
};

}  // namespace lpp::cli
