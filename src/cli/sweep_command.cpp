// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep_command.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/log.h"
#include "base/paths.h"
#include "cli/adoption.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/sweeping.h"
#include "cli/text.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"

namespace lpp::cli {

namespace sweep_command {

using k8s::member, k8s::text;

namespace {

using nlohmann::json;

constexpr std::string_view kName = "sweep";
constexpr std::chrono::milliseconds kLookEvery{500};

constexpr std::array kFlags = {
    Flag{.name = "node",
         .placeholder = "NAME",
         .help = "the node that the directory is on (required)",
         .values = flags::Values::kNodes},
    Flag{.name = "path", .placeholder = "DIR", .help = "the directory, as it is listed"},
    Flag{.name = "all",
         .fallback = "false",
         .help = "instead of --path: all that are on the node's records, but those of another "
                 "cluster"},
    Flag{.name = "dry-run", .fallback = "false", .help = "only show what would be removed"},
    Flag{.name = "yes", .fallback = "false", .help = "do it; with --all it must be said"},
    Flag{.name = "timeout",
         .placeholder = "TIME",
         .fallback = "5m",
         .help = "how long to wait for the removal, which goes on after it"},
    kOutputFlag,
};

std::span<const FlagGroup> groups() {
  static const auto all = cluster_command_flags(kFlags);
  return all;
}

struct Row {
  Orphan orphan{};
  enum class Result {
    kPlanned,
    kMade,   // its volume is there, and retains it
    kGoing,  // it is being removed
    kDone,
    kRefused,
    kFailed,
    kPassedOver
  } result = Result::kPlanned;
  json manifest{};
  std::string uid{};  // of its volume
  std::string message{};

  void end(Result how, std::string why) {
    result = how;
    message = std::move(why);
  }
};
using Outcome = Row::Result;

std::string_view word_of(const Row& row) {
  switch (row.result) {
    case Outcome::kMade:
    case Outcome::kGoing: return "being removed";
    case Outcome::kDone: return "removed";
    case Outcome::kRefused: return "refused";
    case Outcome::kFailed: return "failed";
    case Outcome::kPassedOver: return "passed over";
    case Outcome::kPlanned: break;
  }
  return "remove";
}

/// Looks at the cluster, and removes by means of volumes that it makes. One thread.
class Sweep {
 public:
  Sweep(Cluster& cluster, const Installation& installation, const std::string& node)
      : cluster_(cluster), installation_(installation), node_(node) {}

  Result<std::vector<Orphan>> ask() {
    LPP_ASSIGN_OR_RETURN(auto told, ask_for_orphans(cluster_, installation_), "nothing is done");
    orphans_ = std::move(told.listed);
    is_cut_ = told.left_out.contains(node_);
    return orphans_;
  }

  /// There is more on the node than the daemon lists.
  bool is_cut() const { return is_cut_; }

  /// Everything anew.
  Result<void> look() {
    LPP_ASSIGN_OR_RETURN(around_, look_around(cluster_, installation_), "nothing is done");
    LPP_ASSIGN_OR_RETURN(
        pods_, cluster_.list(k8s::kPods, "", {.field_selector = "spec.nodeName=" + node_}),
        "nothing is done");
    return {};
  }

  void plan(Row& row) const {
    const auto place = check_sweepable(row.orphan, orphans_, *around_, pods_);
    if (!place.ok()) return row.end(Outcome::kRefused, place.error().message);
    auto manifest = sweep_volume(*place, row.orphan, *around_, installation_.daemon_ns);
    if (!manifest.ok()) return row.end(Outcome::kRefused, manifest.error().message);
    row.manifest = *std::move(manifest);
    row.message = "the directory goes, with all that is in it";
  }

  /// The volume takes the place, so that nobody else's comes there, and does no harm yet.
  void take_place(Row& row) {
    const auto made = cluster_.api().create(k8s::kPersistentVolumes, "", row.manifest);
    if (!made.ok()) return row.end(Outcome::kFailed, made.error().message);
    row.uid = text(member(*made, "metadata"), "uid");
    if (row.uid.empty()) return row.end(Outcome::kFailed, "the API server tells no UID of it");
    row.result = Outcome::kMade;
  }

  /// What has come up since the first look counts as well. Only then is it to be removed.
  void condemn(Row& row) {
    const auto place = check_sweepable(row.orphan, orphans_, *around_, pods_, row.orphan.volume);
    if (!place.ok()) {
      give_back(row);
      return row.end(Outcome::kRefused, place.error().message);
    }
    const auto patched = set_reclaim_policy(cluster_.api(), row.orphan.volume, row.uid, "Delete");
    if (patched.ok()) {
      row.result = Outcome::kGoing;
      return;
    }
    const bool may_be_done =
        patched.error().is(ErrorCode::kTimeout) || patched.error().is(ErrorCode::kUnavailable);
    if (!may_be_done) give_back(row);
    row.end(
        Outcome::kFailed,
        patched.error().message +
            (may_be_done ? "; it may go on nevertheless, see volume " + row.orphan.volume : ""));
  }

  /// The directory stays: the volume retains it, and has no finalizer of ours.
  void give_back(const Row& row) {
    (void)cluster_.api().remove(k8s::kPersistentVolumes, {"", row.orphan.volume}, {.uid = row.uid});
  }

  void look_whether_gone(Row& row) {
    const auto volume = cluster_.api().get(k8s::kPersistentVolumes, {"", row.orphan.volume});
    const bool gone = volume.ok() ? text(member(*volume, "metadata"), "uid") != row.uid
                                  : volume.error().is(ErrorCode::kNotFound);
    if (gone) return row.end(Outcome::kDone, end_of(row));
    if (volume.ok() && text(member(*volume, "spec"), "persistentVolumeReclaimPolicy") != "Delete") {
      row.end(Outcome::kFailed, "somebody has changed the policy of volume " + row.orphan.volume +
                                    ": the directory stays");
    }
  }

  /// The last that was told of the volume, but for what it began with; "" = nothing.
  std::string told(const Row& row, std::string_view reason) {
    const auto events = cluster_.list(
        k8s::kEvents, "default",
        {.field_selector =
             "involvedObject.kind=PersistentVolume,involvedObject.name=" + row.orphan.volume});
    EventNote last;
    if (!events.ok()) return {};
    for (const json& event : *events) {
      const EventNote note = event_note(event);
      if (note.uid == row.uid && note.reason == reason && note.time >= last.time) last = note;
    }
    return last.message;
  }

 private:
  std::string end_of(const Row& row) {
    for (const auto reason : {provisioner::kDirectoryMissing, provisioner::kDirectoryKept,
                              provisioner::kVolumeNodeGone}) {
      if (auto message = told(row, reason); !message.empty()) return message;
    }
    return "the directory is gone, and the volume that was made for it";
  }

  Cluster& cluster_;
  const Installation& installation_;
  const std::string& node_;
  std::vector<Orphan> orphans_{};
  bool is_cut_ = false;
  std::unique_ptr<Surroundings> around_{};
  std::vector<json> pods_{};
};

bool is_any(const std::vector<Row>& rows, Outcome result) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Row& row) { return row.result == result; });
}

/// Each in its turn; a second look after all have their place.
Result<void> begin(Sweep& sweep, std::vector<Row>& rows) {
  for (Row& row : rows) {
    if (row.result == Outcome::kPlanned) sweep.take_place(row);
  }
  if (!is_any(rows, Outcome::kMade)) return {};
  auto looked = sweep.look();
  for (Row& row : rows) {
    if (row.result != Outcome::kMade) continue;
    if (looked.ok()) {
      sweep.condemn(row);
    } else {
      sweep.give_back(row);
      row.end(Outcome::kFailed, looked.error().message);
    }
  }
  return looked;
}

void wait_for(Sweep& sweep, std::vector<Row>& rows, Context& context, Duration patience) {
  Progress progress(context, "waiting for the removal");
  const TimePoint end = context.clock.now() + patience;
  while (is_any(rows, Outcome::kGoing)) {
    for (Row& row : rows) {
      if (row.result == Outcome::kGoing) sweep.look_whether_gone(row);
    }
    if (!is_any(rows, Outcome::kGoing) || context.clock.now() >= end) break;
    (void)context.clock.sleep_for(kLookEvery, {});
  }
  for (Row& row : rows) {
    if (row.result != Outcome::kGoing) continue;
    const std::string why = sweep.told(row, provisioner::kVolumeFailedDelete);
    row.message = "it goes on: volume " + row.orphan.volume +
                  " is there until the directory is gone; with the policy Retain it stays" +
                  (why.empty() ? "" : "; " + why);
  }
}

json to_json(const Row& row) {
  return {{"path", row.orphan.path},          {"volume", row.orphan.volume},
          {"namespace", row.orphan.claim.ns}, {"claim", row.orphan.claim.name},
          {"size", row.orphan.size},          {"why", row.orphan.why},
          {"action", word_of(row)},           {"message", row.message}};
}

std::string table_of(const std::vector<Row>& rows, const Context& context) {
  std::vector<std::vector<Cell>> cells;
  for (const Row& row : rows) {
    const Orphan& orphan = row.orphan;
    const bool bad = row.result == Outcome::kRefused || row.result == Outcome::kFailed;
    cells.push_back({{one_line(orphan.path)},
                     {orphan.size > 0 ? bytes_text(static_cast<std::uint64_t>(orphan.size)) : "-"},
                     {orphan.claim.name.empty() ? "-" : one_line(orphan.claim.to_string())},
                     {or_dash(orphan.why)},
                     {std::string(word_of(row)), bad ? Colour::kRed : Colour::kNone},
                     {one_line(row.message)}});
  }
  return table(context.terminal, {"PATH", "SIZE", "CLAIM", "WHY", "ACTION", "WHAT"}, cells,
               {.middle = 0});
}

std::vector<Row> rows_of(const std::vector<Orphan>& orphans, const std::string& node,
                         const std::string& path) {
  std::vector<Row> rows;
  for (const Orphan& one : orphans) {
    if (one.node != node || (!path.empty() && one.path != path)) continue;
    Row row{.orphan = one};
    if (path.empty() && one.why != Orphan::kNoVolume) {
      row.end(Outcome::kPassedOver, one.why == Orphan::kOtherCluster
                                        ? "of another cluster: name it with --path"
                                        : one.message);
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.orphan.path < b.orphan.path; });
  return rows;
}

int show(const std::vector<Row>& rows, const std::string& node, bool dry_run,
         const std::string& format, Context& context) {
  if (!format.empty()) {
    json items = json::array();
    for (const Row& row : rows) items.push_back(to_json(row));
    context.out(
        machine_text({{"node", node}, {"dryRun", dry_run}, {"items", std::move(items)}}, format));
  } else if (rows.empty()) {
    context.err("Every directory on record on node " + node + " has its volume or its claim.\n");
  } else {
    context.out(table_of(rows, context));
  }
  const bool good = !is_any(rows, Outcome::kRefused) && !is_any(rows, Outcome::kFailed) &&
                    !is_any(rows, Outcome::kGoing);
  return good ? kExitOk : kExitProblem;
}

int run_sweep(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, groups());
  const std::string node = flags.text("node");
  const std::string path = tidy_path(flags.text("path"));
  const std::string format = flags.choice("output");
  const bool all = flags.boolean("all");
  const bool dry_run = flags.boolean("dry-run");
  const bool yes = flags.boolean("yes");
  const Duration patience = flags.duration("timeout");
  if (node.empty()) flags.fail("say on which node: --node NAME");
  if (!given.words.empty()) flags.fail("expected nothing beside flags");
  if (all == flags.given("path")) flags.fail("say what: --path DIR, or --all");
  if (!all && path.empty()) flags.fail("--path: expected a directory");
  if (all && !dry_run && !yes) flags.fail("--all removes data for good: --dry-run, or --yes");
  check_connection_flags(flags);
  if (flags.error()) return fail(context, kName, *flags.error(), kExitUsage);
  const auto cluster = Cluster::open(context, flags);
  if (!cluster.ok()) return fail(context, kName, cluster.error(), kExitProblem);

  const Installation installation = find_installation(**cluster, context, flags);
  Sweep sweep(**cluster, installation, node);
  std::vector<Row> rows;
  {
    Progress progress(context, "asking what is on the nodes' records");
    const auto orphans = sweep.ask();
    if (!orphans.ok()) return fail(context, kName, orphans.error(), kExitProblem);
    rows = rows_of(*orphans, node, path);
    if (rows.empty() && !all) {
      return fail(context, kName,
                  Error{ErrorCode::kNotFound,
                        path + " on node " + node +
                            " is not among the directories that nobody needs: it has a volume or "
                            "a claim, or no agent has told of it"},
                  kExitProblem);
    }
    progress.now("reading volumes, claims and pods");
    if (auto looked = sweep.look(); !looked.ok()) {
      return fail(context, kName, looked.error(), kExitProblem);
    }
    for (Row& row : rows) {
      if (row.result == Outcome::kPlanned) sweep.plan(row);
    }
    if (!dry_run) {
      if (auto begun = begin(sweep, rows); !begun.ok()) {
        context.err("note: " + one_line(begun.error().message) + "\n");
      }
    }
  }
  wait_for(sweep, rows, context, patience);
  const int code = show(rows, node, dry_run, format, context);
  if (!all || !sweep.is_cut()) return code;
  context.err(more_left_out(node));
  return kExitProblem;
}

}  // namespace
}  // namespace sweep_command

const Command kSweepCommand{
    .name = "sweep",
    .summary = "have directories removed that no volume shows",
    .text =
        "Remove a directory that is on a node's records and has neither a volume nor a claim, "
        "with\n"
        "all that is in it: by a PersistentVolume that is made for it and is released, so that "
        "the\n"
        "provisioner removes it as it does others, with its Events. There is no way back. "
        "Whatever\n"
        "may still be needed is refused: a directory that a volume overlaps, or a pod uses; one\n"
        "without a record; one that all nodes share. One on record of another cluster must be\n"
        "named with --path.\n"
        "Waits for the end; when it is interrupted the removal goes on. To call it off in time, "
        "set\n"
        "the volume's policy to Retain.\n"
        "Needs the permissions to get pods/proxy in the provisioner's namespace, to list nodes,\n"
        "pods, claims, volumes and classes, and to create, patch, get and delete "
        "persistentvolumes.\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner sweep --node worker-7 --all --dry-run\n"
        "  local-path-provisioner sweep --node worker-7 --path /opt/local-path-provisioner/old\n",
    .flags = sweep_command::groups(),
    .run = sweep_command::run_sweep,
};

}  // namespace lpp::cli
