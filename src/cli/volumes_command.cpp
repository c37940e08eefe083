// SPDX-License-Identifier: Apache-2.0
#include "cli/volumes_command.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/orphans_table.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/volume_rows.h"
#include "cli/volume_usage.h"

namespace lpp::cli {

namespace volumes_command {
namespace {

constexpr std::string_view kName = "volumes";
constexpr std::size_t kShownEvents = 5;

constexpr std::array kFlags = {
    Flag{.name = "namespace",
         .short_name = 'n',
         .placeholder = "NAME",
         .fallback_note = "of the kubeconfig's context",
         .help = "show the claims of this namespace",
         .values = flags::Values::kNamespaces},
    Flag{.name = "all-namespaces",
         .short_name = 'A',
         .fallback = "false",
         .help = "show the claims of all namespaces"},
    Flag{.name = "orphans",
         .fallback = "false",
         .help = "show instead the directories on nodes with an agent that no volume tells of"},
    Flag{.name = "output",
         .short_name = 'o',
         .placeholder = "FORMAT",
         .fallback_note = "a table; all about the claims that are named",
         .help = "form of the output",
         .choices = "wide|json|yaml|name"},
};

std::span<const FlagGroup> groups() {
  static const auto all = cluster_command_flags(kFlags);
  return all;
}

Colour colour_of(const VolumeRow& row) {
  if (row.problem) return Colour::kRed;
  if (row.phase == "Bound") return Colour::kGreen;
  return row.phase == "Released" || row.phase == "Pending" || row.phase == "Terminating"
             ? Colour::kYellow
             : Colour::kNone;
}

/// Nearly full, so that somebody should look.
constexpr double kFull = 0.9;

Colour colour_of(const VolumeUsage& usage) {
  const bool is_full =
      static_cast<double>(usage.used_bytes) >= kFull * static_cast<double>(usage.capacity_bytes);
  return is_full ? Colour::kRed : Colour::kNone;
}

/// "40m ago", "" of what is known to be so now.
std::string told_when(const VolumeUsage& usage, const Context& context) {
  if (usage.told_at.empty()) return {};
  return age_of(usage.told_at, context.clock.wall_now()) + " ago";
}

void add_usage_cells(const VolumeRow& row, const Context& context, std::vector<Cell>& line) {
  const auto& usage = row.usage;
  std::string used = usage ? bytes_text(usage->used_bytes) : "-";
  const std::string when = usage ? told_when(*usage, context) : "";
  if (!when.empty()) used += " (" + when + ")";
  line.push_back({std::move(used)});
  if (usage) {
    line.push_back({share_text(usage->used_bytes, usage->capacity_bytes), colour_of(*usage)});
  } else {
    line.push_back({"-"});
  }
  std::string inodes = "-";
  if (usage && usage->inodes > 0) {
    inodes = fmt::format("{}/{}", usage->used_inodes, usage->inodes);
  } else if (usage && usage->used_inodes > 0) {
    inodes = std::to_string(usage->used_inodes);
  }
  line.push_back({std::move(inodes)});
}

std::string table_of(const std::vector<VolumeRow>& rows, const Context& context,
                     bool all_namespaces, bool wide) {
  const bool any_limited = std::any_of(
      rows.begin(), rows.end(), [](const VolumeRow& row) { return row.limited || row.usage; });
  const bool any_agent = std::any_of(rows.begin(), rows.end(),
                                     [](const VolumeRow& row) { return !row.executor.empty(); });
  std::vector<std::string> headings;
  if (all_namespaces) headings.emplace_back("NAMESPACE");
  for (const char* name : {"CLAIM", "NODE", "PATH", "SIZE"}) headings.emplace_back(name);
  if (any_limited) headings.insert(headings.end(), {"USED", "USE%", "INODES"});
  for (const char* name : {"PHASE", "AGE"}) headings.emplace_back(name);
  if (wide) {
    for (const char* name : {"VOLUME", "CLASS", "RECLAIM"}) headings.emplace_back(name);
    if (any_agent) headings.emplace_back("EXECUTOR");
    headings.emplace_back("HELPER POD");
  }
  headings.emplace_back("PENDING");
  std::vector<std::vector<Cell>> cells;
  for (const VolumeRow& row : rows) {
    std::vector<Cell> line;
    if (all_namespaces) line.push_back({or_dash(row.claim.ns)});
    line.push_back({or_dash(row.claim.name)});
    line.push_back({row.shared ? "(any)" : or_dash(row.node)});
    line.push_back({or_dash(row.path)});
    line.push_back({or_dash(row.size)});
    if (any_limited) add_usage_cells(row, context, line);
    line.push_back({or_dash(row.phase), colour_of(row)});
    line.push_back({age_of(row.created, context.clock.wall_now())});
    if (wide) {
      line.push_back({or_dash(row.volume)});
      line.push_back({or_dash(row.storage_class)});
      line.push_back({or_dash(row.reclaim_policy)});
      if (any_agent) line.push_back({or_dash(row.executor)});
      line.push_back({or_dash(row.helper_pod)});
    }
    line.push_back({or_dash(row.why)});
    cells.push_back(std::move(line));
  }
  return table(context.terminal, headings, cells,
               {.whole = wide, .middle = all_namespaces ? 3UL : 2UL});
}

std::string details_of(const VolumeRow& row, const ClusterView& view, const Context& context) {
  const WallTime now = context.clock.wall_now();
  std::vector<std::pair<std::string, Cell>> lines;
  const auto add = [&](const char* name, const std::string& text, Colour colour = Colour::kNone) {
    if (!text.empty()) lines.push_back({name, {one_line(text), colour}});
  };
  add("Claim", row.claim.to_string(), Colour::kBold);
  add("Phase", row.phase + ", " + age_of(row.created, now) + " old", colour_of(row));
  add("Pending", row.why, row.problem ? Colour::kRed : Colour::kNone);
  add("Next", row.next);
  add("Class", row.storage_class);
  add("Size", row.size + (row.limited ? ", enforced" : ""));
  if (row.usage) {
    std::string used = fmt::format("{} ({})", bytes_text(row.usage->used_bytes),
                                   share_text(row.usage->used_bytes, row.usage->capacity_bytes));
    // btrfs does not count them.
    if (row.usage->used_inodes > 0) used += fmt::format(", {} inodes", row.usage->used_inodes);
    if (const auto when = told_when(*row.usage, context); !when.empty()) {
      used += ", as a helper pod told " + when;
    }
    add("Used", used, colour_of(*row.usage));
  }
  add("Node", row.shared ? "any: the filesystem is shared" : row.node);
  add("Executor", row.executor);
  add("Path", row.path);
  add("Volume", row.volume);
  add("Reclaim policy", row.reclaim_policy);
  if (!row.helper_pod.empty()) {
    add("Helper pod",
        fmt::format("{} ({}, attempt {})", row.helper_pod, row.operation, row.attempt));
  }
  std::size_t shown = 0;
  for (const EventNote& note : view.events) {
    const bool about = (!row.claim_uid.empty() && note.uid == row.claim_uid) ||
                       (!row.volume.empty() && note.about.name == row.volume);
    if (!about || shown == kShownEvents) continue;
    const std::string age = age_text(std::chrono::duration_cast<Duration>(now - note.time));
    const std::string count = note.count > 1 ? fmt::format(" ({} times)", note.count) : "";
    lines.push_back(
        {shown++ == 0 ? "Warnings" : "",
         {one_line(fmt::format("{} ago{}: {}: {}", age, count, note.reason, note.message))}});
  }
  return details(context.terminal, lines);
}

std::string names_of(const std::vector<VolumeRow>& rows) {
  std::string out;
  for (const VolumeRow& row : rows) {
    out += row.volume.empty() ? "persistentvolumeclaim/" + row.claim.name + "\n"
                              : "persistentvolume/" + row.volume + "\n";
  }
  return out;
}

/// "name" or "ns/name" of a claim, "name" of a volume, or what -o name prints of either.
bool is_named(const VolumeRow& row, const std::string& word) {
  if (const auto claim = name_of_kind(word, "persistentvolumeclaim")) {
    return row.claim.name == *claim;
  }
  if (const auto volume = name_of_kind(word, "persistentvolume")) return row.volume == *volume;
  return row.claim.name == word || row.claim.to_string() == word ||
         (!row.volume.empty() && row.volume == word);
}

/// Where to look for the names: in one namespace if that can be, "" = in all of them.
std::string namespace_for(const std::vector<std::string>& words, const std::string& ns) {
  std::set<std::string> all;
  for (const std::string& word : words) {
    // A volume may be of a claim in any namespace.
    if (name_of_kind(word, "persistentvolume")) return {};
    const auto slash = word.find('/');
    const bool is_plain =
        slash == std::string::npos || name_of_kind(word, "persistentvolumeclaim").has_value();
    all.insert(is_plain ? ns : word.substr(0, slash));
  }
  if (all.empty()) return ns;
  return all.size() == 1 ? *all.begin() : std::string();
}

/// Why there is no row for this name.
Error not_ours(const std::string& word, const std::string& ns, const ClusterView& view) {
  const std::string where = ns.empty() ? "" : " in namespace " + ns;
  for (const auto& claim : view.claims.list()) {
    const auto key = claim->meta.key();
    if (word != key.to_string() && (word != key.name || key.ns != ns)) continue;
    const std::string name = claim->class_name();
    const auto storage_class = view.classes.get({"", name});
    std::string why = fmt::format("its StorageClass \"{}\" does not exist", name);
    if (name.empty()) {
      why = "it names no StorageClass, and there was no default class";
    } else if (storage_class != nullptr) {
      why = fmt::format("its StorageClass {} belongs to provisioner {}", name,
                        storage_class->provisioner);
    }
    if (!claim->volume_name.empty()) {
      why = fmt::format("it is bound to volume {}, which another provisioner made",
                        claim->volume_name);
    }
    return Error{ErrorCode::kNotFound, fmt::format("claim {} is not served by provisioner {}: {}",
                                                   key.to_string(), to_string(view.names), why)};
  }
  return Error{ErrorCode::kNotFound, fmt::format("no claim or volume {} of provisioner {}{}",
                                                 log::quoted(word), to_string(view.names), where)};
}

int run_volumes(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, groups());
  const std::string format = flags.choice("output");
  const bool named = !given.words.empty();
  bool everywhere = flags.boolean("all-namespaces");
  check_connection_flags(flags);
  const bool orphans = flags.boolean("orphans");
  if (orphans && (named || everywhere || flags.given("namespace"))) {
    flags.fail("--orphans is about nodes: it takes no names and no namespace");
  }
  if (flags.error()) return fail(context, kName, *flags.error(), kExitUsage);

  auto cluster = Cluster::open(context, flags);
  if (!cluster.ok()) return fail(context, kName, cluster.error(), kExitProblem);
  std::string ns =
      flags.given("namespace") ? flags.text("namespace") : (*cluster)->default_namespace();
  if (ns.empty()) ns = "default";
  if (!everywhere) ns = namespace_for(given.words, ns);
  everywhere = everywhere || ns.empty();

  ClusterView view;
  Installation installation;
  {
    Progress progress(context, "looking for the provisioner");
    installation = find_installation(**cluster, context, flags);
    if (!orphans) {
      progress.now("reading volumes");
      const LoadOptions options{.ns = everywhere ? "" : ns, .part_suffices = !everywhere};
      if (auto loaded = load(**cluster, installation, options, view); !loaded.ok()) {
        return fail(context, kName, loaded.error(), kExitProblem);
      }
    }
  }
  if (orphans) return show_orphans(**cluster, installation, format, context);

  std::vector<VolumeRow> rows = volume_rows(view);
  std::erase_if(rows, [&](const VolumeRow& row) {
    if (!everywhere && row.claim.ns != ns) return true;
    return named && std::none_of(given.words.begin(), given.words.end(),
                                 [&](const auto& word) { return is_named(row, word); });
  });
  for (const std::string& word : given.words) {
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const VolumeRow& row) { return is_named(row, word); })) {
      continue;
    }
    return fail(context, kName, not_ours(word, everywhere ? "" : ns, view), kExitProblem);
  }

  if (format != "name") {
    const Progress progress(context, "asking how full volumes are");
    add_usage(**cluster, installation, rows, view.notes);
  }
  for (const std::string& note : view.notes) context.err("note: " + one_line(note) + "\n");

  if (format == "json" || format == "yaml") {
    nlohmann::json items = nlohmann::json::array();
    for (const VolumeRow& row : rows) items.push_back(to_json(row));
    context.out(machine_text({{"provisioner", view.names.own()}, {"items", items}}, format));
  } else if (format == "name") {
    context.out(names_of(rows));
  } else if (rows.empty()) {
    context.err(everywhere
                    ? fmt::format("No volumes of provisioner {}.\n", to_string(view.names))
                    : fmt::format("No volumes of provisioner {} in namespace {}; -A shows all "
                                  "namespaces.\n",
                                  to_string(view.names), ns));
  } else if (named && format.empty()) {
    std::string out;
    for (const VolumeRow& row : rows) {
      out += (out.empty() ? "" : "\n") + details_of(row, view, context);
    }
    context.out(out);
  } else {
    context.out(table_of(rows, context, everywhere, format == "wide"));
  }
  return kExitOk;
}

}  // namespace
}  // namespace volumes_command

const Command kVolumesCommand{
    .name = "volumes",
    .summary = "list volumes, and why a claim is Pending",
    .arguments = "[[NAMESPACE/]CLAIM...]",
    .text =
        "List the volumes of this provisioner and the claims that wait for one: where each\n"
        "directory is, and what is pending and why. With names: all about these claims.\n"
        "Names that -o name prints are accepted, too. Permissions in one namespace suffice to ask\n"
        "about it: what they do not show is left out, and said.\n"
        "How full a volume with a limit is (quota: hard) the provisioner knows of nodes with an\n"
        "agent: that needs the permission to get pods/proxy in its namespace. Else the node's\n"
        "kubelet is asked, while a pod has the volume mounted: to get nodes/proxy.\n"
        "With --orphans: directories below the base paths of nodes with an agent that no volume\n"
        "and no claim tells of, since when and why: NoVolume (on record, its objects are gone),\n"
        "NoRecord (nothing tells of it), OtherCluster (the disk's records are another cluster's),\n"
        "Unfinished (a make or removal that was interrupted).\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner volumes -A\n"
        "  local-path-provisioner volumes -n web data   # why is this claim Pending?\n"
        "  local-path-provisioner volumes -A -o json\n"
        "  local-path-provisioner volumes --orphans     # what was lost, as after a restored "
        "backup\n",
    .flags = volumes_command::groups(),
    .run = volumes_command::run_volumes,
    .values = flags::Values::kClaims,
};

}  // namespace lpp::cli
