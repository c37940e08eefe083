// SPDX-License-Identifier: Apache-2.0
#include "cli/adopt_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"
#include "cli/adoption.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"

namespace lpp::cli {

namespace adopt_command {

using k8s::member, k8s::text;

namespace {

constexpr std::string_view kName = "adopt";

constexpr std::array kFlags = {
    Flag{.name = "node",
         .placeholder = "NAME",
         .help = "the node that the directory is on (required)",
         .values = flags::Values::kNodes},
    Flag{.name = "path", .placeholder = "DIR", .help = "the directory, below a base path"},
    Flag{.name = "claim",
         .placeholder = "NAMESPACE/NAME",
         .help = "the claim that is to have it; it may be made afterwards"},
    Flag{.name = "other-claim",
         .fallback = "false",
         .help = "with --claim: also where the directory's record or name is another claim's"},
    Flag{.name = "all",
         .fallback = "false",
         .help = "instead of --path and --claim: all that the node has on record and no volume "
                 "shows"},
    Flag{.name = "from-records",
         .fallback = "false",
         .help = "with --all: each for the claim that its record names (required)"},
    Flag{.name = "class",
         .placeholder = "NAME",
         .fallback_note = "the claim's, or the only one of the provisioner",
         .help = "StorageClass of the volume"},
    Flag{.name = "size",
         .placeholder = "SIZE",
         .fallback_note = "as on record, or as the claim asks for",
         .help = "size of the volume, like 10Gi; nothing is limited by it"},
    Flag{.name = "policy",
         .placeholder = "POLICY",
         .fallback = "Retain",
         .help = "what becomes of the directory once the claim is deleted",
         .choices = "Retain|Delete"},
    Flag{.name = "dry-run", .fallback = "false", .help = "only show what would be made"},
    kOutputFlag,
};

std::span<const FlagGroup> groups() {
  static const auto all = cluster_command_flags(kFlags);
  return all;
}

/// What is asked for, and what came of it.
struct Row {
  AdoptionRequest request{};
  Adoption plan{};
  std::string uid{};  // of the volume that was made
  enum class Result { kPlanned, kDone, kRefused, kFailed, kPassedOver } result = Result::kPlanned;
  std::string message{};
};

std::string_view word_of(const Row& row) {
  switch (row.result) {
    case Row::Result::kDone: return "adopted";
    case Row::Result::kRefused: return "refused";
    case Row::Result::kFailed: return "failed";
    case Row::Result::kPassedOver: return "passed over";
    case Row::Result::kPlanned: break;
  }
  return "adopt";
}

std::string next_step(const Row& row) {
  const std::string claim = row.request.claim.to_string();
  std::string step = "claim " + claim + " is bound to it";
  if (!row.plan.claim_exists) {
    step = "make claim " + claim + " with storageClassName: " + row.plan.storage_class + " and " +
           row.plan.size + " at most: it is bound to it";
  }
  if (!row.plan.whose.empty()) step += "; " + row.plan.whose;
  if (!row.plan.lacks_limit) return step;
  const std::string& base = row.plan.place.base_path;
  return fmt::format(
      "{}; its class asks for a limit, which is set on node {} only: local-path-provisioner node "
      "adopt --base {} --path {} --size {}, and then kubectl annotate pv {} {}={}",
      step, row.request.node, shell_word(base),
      shell_word(row.request.path.substr(base.size() + 1)), shell_word(row.plan.size),
      shell_word(row.plan.volume), provisioner::kVolumeQuota, provisioner::kQuotaHard);
}

void plan(Row& row, const Surroundings& around) {
  auto planned = plan_adoption(row.request, around);
  if (planned.ok()) {
    row.plan = *std::move(planned);
    row.message = next_step(row);
    return;
  }
  row.result = Row::Result::kRefused;
  row.message = planned.error().message;
}

void adopt(k8s::ApiClient& api, Row& row, Surroundings& around) {
  if (row.result != Row::Result::kPlanned) return;
  const auto made = api.create(k8s::kPersistentVolumes, "", row.plan.manifest);
  if (!made.ok()) {
    row.result = Row::Result::kFailed;
    row.message = made.error().message;
    return;
  }
  row.result = Row::Result::kDone;
  row.uid = text(member(*made, "metadata"), "uid");
  add_object(*made, around.view);
}

/// Once the volume is there: nobody else who looks afterwards takes the place, and who took it
/// before is seen now. Only then may the directory go with its claim.
void confirm(k8s::ApiClient& api, Row& row, const Result<std::unique_ptr<Surroundings>>& around) {
  const std::string& volume = row.plan.volume;
  const auto fail = [&](const std::string& why) {
    row.result = Row::Result::kFailed;
    row.message = "volume " + volume + " is made and retains the directory, but " + why;
  };
  if (!around.ok()) return fail(around.error().message);
  if (const auto ours = check_nobodys(row.plan.place, volume, **around, volume); !ours.ok()) {
    return fail(ours.error().message + ": delete one of them");
  }
  if (row.request.reclaim_policy == "Retain") return;
  const auto set = set_reclaim_policy(api, volume, row.uid, row.request.reclaim_policy);
  if (!set.ok()) fail("its policy is not set: " + set.error().message);
}

/// One after the other: what one has made is in the way of the next.
void adopt_all(k8s::ApiClient& api, std::vector<Row>& rows, Surroundings& around, bool dry_run) {
  for (Row& row : rows) {
    if (row.result != Row::Result::kPlanned) continue;
    plan(row, around);
    if (row.result != Row::Result::kPlanned) continue;
    if (dry_run) {
      add_object(row.plan.manifest, around.view);
    } else {
      adopt(api, row, around);
    }
  }
}

std::string why_of(const Row& row) {
  return row.request.record == nullptr ? std::string() : row.request.record->why;
}

nlohmann::json to_json(const Row& row) {
  const Orphan* const record = row.request.record;
  return {{"namespace", row.request.claim.ns},
          {"claim", row.request.claim.name},
          {"volume", row.plan.volume},
          {"storageClass", row.plan.storage_class},
          {"reclaimPolicy", row.request.reclaim_policy},
          {"size", row.plan.size},
          {"path", row.request.path},
          {"why", why_of(row)},
          {"cluster", record == nullptr ? std::string() : record->cluster},
          {"action", word_of(row)},
          {"message", row.message}};
}

std::string table_of(const std::vector<Row>& rows, const Context& context) {
  std::vector<std::vector<Cell>> cells;
  for (const Row& row : rows) {
    const std::string claim = row.request.claim.name.empty() ? "" : row.request.claim.to_string();
    const bool good = row.result == Row::Result::kPlanned || row.result == Row::Result::kDone;
    const bool passed = row.result == Row::Result::kPassedOver;
    cells.push_back({{or_dash(claim)},
                     {or_dash(row.plan.volume)},
                     {one_line(row.request.path)},
                     {or_dash(row.plan.size)},
                     {or_dash(why_of(row))},
                     {good ? one_line(row.request.reclaim_policy) : "-"},
                     {std::string(word_of(row)), good || passed ? Colour::kNone : Colour::kRed},
                     {one_line(row.message)}});
  }
  return table(context.terminal,
               {"CLAIM", "VOLUME", "PATH", "SIZE", "WHY", "RECLAIM", "ACTION", "WHAT"}, cells,
               {.middle = 2});
}

/// Of the node, each for the claim on record.
std::vector<Row> rows_from_records(const std::vector<Orphan>& orphans,
                                   const AdoptionRequest& wanted) {
  std::vector<Row> rows;
  for (const Orphan& one : orphans) {
    if (one.node != wanted.node) continue;
    Row row{.request = wanted};
    row.request.path = one.path;
    row.request.claim = one.claim;
    row.request.record = &one;
    row.request.from_record = true;
    if (!one.has_record()) {
      row.result = Row::Result::kPassedOver;
      row.message = one.message.empty() ? one.why : one.message;
    } else if (one.claim.name.empty()) {
      row.result = Row::Result::kRefused;
      row.message = "its record names no claim: adopt it with --path and --claim";
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.request.claim, a.request.path) < std::tie(b.request.claim, b.request.path);
  });
  return rows;
}

struct Wanted {
  AdoptionRequest request{};
  bool all = false;
  bool dry_run = false;
  std::string format{};
};

Wanted read_flags(FlagReader& flags, const Given& given) {
  Wanted wanted{.all = flags.boolean("all"),
                .dry_run = flags.boolean("dry-run"),
                .format = flags.choice("output")};
  AdoptionRequest& request = wanted.request;
  request.node = flags.text("node");
  request.path = tidy_path(flags.text("path"));
  request.storage_class = flags.text("class");
  request.size = flags.text("size");
  request.reclaim_policy = flags.choice("policy");
  request.other_claim = flags.boolean("other-claim");
  const std::string claim = flags.text("claim");
  const bool from_records = flags.boolean("from-records");
  if (request.node.empty()) flags.fail("say on which node: --node NAME");
  if (!given.words.empty()) flags.fail("expected nothing beside flags");
  if (wanted.all) {
    if (!from_records) flags.fail("--all needs --from-records: each for the claim on record");
    if (flags.given("path") || flags.given("claim") || flags.given("size") || request.other_claim) {
      flags.fail("--all takes paths, claims and sizes from the records");
    }
    return wanted;
  }
  if (from_records) flags.fail("--from-records needs --all");
  if (request.path.empty()) flags.fail("say what: --path DIR, or --all --from-records");
  const auto slash = claim.find('/');
  if (slash == std::string::npos) {
    flags.fail("say for which claim: --claim NAMESPACE/NAME");
  } else {
    request.claim = {claim.substr(0, slash), claim.substr(slash + 1)};
  }
  return wanted;
}

int show(const std::vector<Row>& rows, const Wanted& wanted, Context& context) {
  if (!wanted.format.empty()) {
    nlohmann::json items = nlohmann::json::array();
    for (const Row& row : rows) items.push_back(to_json(row));
    context.out(machine_text(
        {{"node", wanted.request.node}, {"dryRun", wanted.dry_run}, {"items", std::move(items)}},
        wanted.format));
  } else if (rows.empty()) {
    context.err("Every directory on record on node " + wanted.request.node +
                " has its volume or its claim.\n");
  } else {
    context.out(table_of(rows, context));
  }
  const bool all_good = std::none_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.result == Row::Result::kRefused || row.result == Row::Result::kFailed;
  });
  return all_good ? kExitOk : kExitProblem;
}

int run_adopt(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, groups());
  Wanted wanted = read_flags(flags, given);
  check_connection_flags(flags);
  if (flags.error()) return fail(context, kName, *flags.error(), kExitUsage);
  const auto cluster = Cluster::open(context, flags);
  if (!cluster.ok()) return fail(context, kName, cluster.error(), kExitProblem);

  Orphans orphans;  // the rows refer to them
  std::vector<Row> rows;
  bool is_cut = false;
  {
    Progress progress(context, "looking for the provisioner");
    const Installation installation = find_installation(**cluster, context, flags);
    progress.now("asking what is on the nodes' records");
    auto asked = ask_for_orphans(**cluster, installation);
    if (!asked.ok() && wanted.all) {
      return fail(context, kName, asked.error(), kExitProblem);
    }
    if (asked.ok()) {
      orphans = *std::move(asked);
    } else {
      context.err("note: " + one_line(asked.error().message) +
                  "; so nobody has looked whether the directory is there, and whose it was\n");
    }
    progress.now("reading volumes and claims");
    auto around = look_around(**cluster, installation);
    if (!around.ok()) return fail(context, kName, around.error(), kExitProblem);
    if (wanted.all) {
      rows = rows_from_records(orphans.listed, wanted.request);
      is_cut = orphans.left_out.contains(wanted.request.node);
    } else {
      AdoptionRequest& request = wanted.request;
      request.record = find_orphan(orphans.listed, request.node, request.path);
      request.near = find_orphan_near(orphans.listed, request.node, request.path);
      rows.push_back({.request = wanted.request});
    }
    adopt_all((*cluster)->api(), rows, **around, wanted.dry_run);
    const auto is_done = [](const Row& row) { return row.result == Row::Result::kDone; };
    if (std::any_of(rows.begin(), rows.end(), is_done)) {
      progress.now("looking whether anybody else came there");
      const auto now = look_around(**cluster, installation);
      for (Row& row : rows) {
        if (is_done(row)) confirm((*cluster)->api(), row, now);
      }
    }
  }
  const int code = show(rows, wanted, context);
  if (!is_cut) return code;
  context.err(more_left_out(wanted.request.node));
  return kExitProblem;
}

}  // namespace
}  // namespace adopt_command

const Command kAdoptCommand{
    .name = "adopt",
    .summary = "make a directory that is on a node the volume of a claim",
    .text =
        "Make a PersistentVolume for a directory that is there, with all that is in it, bound\n"
        "beforehand to a claim: to keep data whose volume is gone, as after a restored backup of\n"
        "the cluster's state, or in a new cluster on old disks. Nothing on the node is changed.\n"
        "The claim may be there and wait, or be made afterwards. Refused are a directory that any\n"
        "volume on the node overlaps, and one whose record names another claim.\n"
        "The policy is Retain unless --policy says otherwise: to have the directory removed with\n"
        "its claim, as others are, change it on the volume when all is well.\n"
        "What is on record the provisioner knows of nodes with an agent: that needs the "
        "permission\n"
        "to get pods/proxy in its namespace. Needs the permission to create persistentvolumes; "
        "for\n"
        "--policy Delete, to patch them, too.\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner adopt --node worker-7 --path /opt/local-path-provisioner/old \\\n"
        "    --claim web/data --size 10Gi --dry-run\n"
        "  local-path-provisioner adopt --node worker-7 --all --from-records\n",
    .flags = adopt_command::groups(),
    .run = adopt_command::run_adopt,
};

}  // namespace lpp::cli
