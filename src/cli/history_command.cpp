// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/history.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "k8s/json_access.h"
#include "provisioner/volume_rules.h"

namespace lpp::cli {

namespace history_command {

using k8s::member, k8s::number, k8s::text;

namespace {

using nlohmann::json;

constexpr std::string_view kName = "history";
constexpr int kMaxLog = 8 * 1024 * 1024;  // bytes of one request's answer
constexpr int kMaxLines = 20000;          // of one log, the newest

constexpr std::array kFlags = {
    Flag{.name = "since",
         .placeholder = "DURATION",
         .fallback = "24h",
         .help = "how far back, like 90m or 12h"},
    Flag{.name = "namespace",
         .short_name = 'n',
         .placeholder = "NAME",
         .fallback_note = "all",
         .help = "only what concerns the claims of this namespace; permissions there suffice",
         .values = flags::Values::kNamespaces},
    kMachineOutputFlag,
};

std::span<const FlagGroup> groups() {
  static const auto all = cluster_command_flags(kFlags);
  return all;
}

/// The log of one container; of the one before its last restart if there was one.
Result<std::string> read_log(Cluster& cluster, const k8s::ObjectKey& pod,
                             const std::string& container, std::chrono::seconds since,
                             bool previous, int lines) {
  k8s::Request request{
      .method = "GET",
      .target = fmt::format("{}?container={}&sinceSeconds={}&limitBytes={}&tailLines={}{}",
                            k8s::object_path(k8s::kPods, pod, "log"), percent_encode(container),
                            since.count(), kMaxLog, lines, previous ? "&previous=true" : "")};
  request.accept = "*/*";
  request.timeout = cluster.patience(std::chrono::seconds(30));
  auto response = cluster.transport().round_trip(request, {});
  if (!response.ok()) return std::move(response).error();
  if (response->status != 200) return k8s::error_from_response(*response);
  return std::move(response->body);
}

/// The newest lines of a log. A limit of bytes keeps the oldest, so that as many lines are asked
/// for as come within it.
Result<std::string> read_newest(Cluster& cluster, const k8s::ObjectKey& pod,
                                const std::string& container, std::chrono::seconds since,
                                bool previous, bool& cut) {
  int lines = kMaxLines;
  while (true) {
    auto log = read_log(cluster, pod, container, since, previous, lines);
    if (!log.ok()) return log;
    if (log->size() < kMaxLog || lines <= 100) {
      cut = std::count(log->begin(), log->end(), '\n') >= lines;
      return log;
    }
    lines /= 4;
  }
}

void read_logs(Cluster& cluster, const Installation& installation, std::chrono::seconds since,
               HistorySources& sources, std::vector<std::string>& notes) {
  const auto pods = cluster.list(k8s::kPods, installation.daemon_ns);
  if (!pods.ok()) {
    notes.push_back(fmt::format("{} (so its logs are not read)", pods.error().message));
    return;
  }
  bool found = false;
  for (const json& pod : *pods) {
    const json& meta = member(pod, "metadata");
    const k8s::ObjectKey key{installation.daemon_ns, text(meta, "name")};
    const std::string container = daemon_container(member(pod, "spec"));
    if (container.empty()) continue;
    found = true;
    int restarts = 0;
    for (const json& status : member(member(pod, "status"), "containerStatuses")) {
      if (text(status, "name") == container) restarts = number(status, "restartCount", 0);
    }
    for (const bool previous : {true, false}) {
      if (previous && restarts == 0) continue;
      bool cut = false;
      const auto log = read_newest(cluster, key, container, since, previous, cut);
      if (!log.ok()) {
        notes.push_back(fmt::format("log of pod {}: {}", key.to_string(), log.error().message));
        continue;
      }
      if (cut) {
        notes.push_back(
            fmt::format("log of pod {}: only the newest lines are read; a shorter "
                        "--since shows all of them",
                        key.to_string()));
      }
      for (const std::string_view line : split(*log, '\n')) {
        if (auto entry = log_entry(line)) sources.log.push_back(*std::move(entry));
      }
    }
  }
  if (!found) {
    notes.push_back(
        fmt::format("no pod of the provisioner was found in namespace {}: only Events "
                    "(kept for an hour by default) and volumes are shown",
                    installation.daemon_ns));
  }
}

void add_volumes(const std::vector<json>& volumes, const Installation& installation,
                 HistorySources& sources) {
  for (const json& object : volumes) {
    auto volume = k8s::decode<k8s::PersistentVolume>(object);
    if (volume.ok() && provisioner::is_ours(*volume, installation.names())) {
      sources.volumes.push_back(*std::move(volume));
    }
  }
}

void read_events(Cluster& cluster, const std::string& ns, HistorySources& sources,
                 std::vector<std::string>& notes) {
  const auto events = cluster.list(k8s::kEvents, ns);
  if (!events.ok()) {
    notes.push_back(events.error().message);
    return;
  }
  for (const json& event : *events) sources.events.push_back(event_note(event));
}

Colour colour_of(const HistoryEntry& entry) {
  if (entry.level == "error") return Colour::kRed;
  return entry.level == "warning" ? Colour::kYellow : Colour::kNone;
}

int run_history(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, groups());
  const std::string format = flags.choice("output");
  const auto since = std::chrono::ceil<std::chrono::seconds>(flags.duration("since"));
  check_connection_flags(flags);
  if (flags.error()) return fail(context, kName, *flags.error(), kExitUsage);
  const auto cluster = Cluster::open(context, flags);
  if (!cluster.ok()) return fail(context, kName, cluster.error(), kExitProblem);

  HistorySources sources;
  sources.ns = flags.text("namespace");
  std::vector<std::string> notes;
  {
    Progress progress(context, "looking for the provisioner");
    const Installation installation = find_installation(**cluster, context, flags);
    sources.provisioner_name = installation.provisioner_name;
    progress.now("reading volumes and Events");
    const auto volumes = (*cluster)->list(k8s::kPersistentVolumes);
    const bool one_namespace = !sources.ns.empty();
    if (volumes.ok()) {
      add_volumes(*volumes, installation, sources);
    } else if (one_namespace && volumes.error().is(ErrorCode::kForbidden)) {
      notes.push_back(
          fmt::format("{} (so volumes are not told of by themselves)", volumes.error().message));
    } else {
      return fail(context, kName, volumes.error(), kExitProblem);
    }
    read_events(**cluster, sources.ns, sources, notes);
    // Events about volumes stand in the namespace "default".
    if (one_namespace && sources.ns != "default") {
      read_events(**cluster, "default", sources, notes);
    }
    progress.now("reading the provisioner's logs");
    read_logs(**cluster, installation, since, sources, notes);
  }
  for (const std::string& note : notes) context.err("note: " + one_line(note) + "\n");

  const auto entries = history(sources, context.clock.wall_now() - since);
  if (!format.empty()) {
    json items = json::array();
    for (const HistoryEntry& entry : entries) {
      items.push_back({{"time", format_rfc3339(entry.time)},
                       {"level", entry.level},
                       {"source", entry.source},
                       {"message", entry.message}});
    }
    context.out(machine_text({{"items", std::move(items)}}, format));
    return kExitOk;
  }
  if (entries.empty()) {
    context.err(fmt::format("Nothing in the last {}.\n", age_text(since)));
    return kExitOk;
  }
  std::vector<std::vector<Cell>> rows;
  rows.reserve(entries.size());
  for (const HistoryEntry& entry : entries) {
    rows.push_back(
        {{format_rfc3339(entry.time)}, {entry.level, colour_of(entry)}, {one_line(entry.message)}});
  }
  context.out(table(context.terminal, {"TIME", "LEVEL", "WHAT"}, rows, {.whole = true}));
  return kExitOk;
}

}  // namespace
}  // namespace history_command

const Command kHistoryCommand{
    .name = "history",
    .summary = "tell what the provisioner did, and what failed",
    .text =
        "Tell what the provisioner did and what failed, oldest first: from the logs of its pods, "
        "and\n"
        "where they tell nothing from its Events and the volumes that exist.\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner history --since 12h   # what did it do last night?\n"
        "  local-path-provisioner history -n web        # what concerns these claims\n"
        "  local-path-provisioner history --since 1h -o json\n",
    .flags = history_command::groups(),
    .run = history_command::run_history,
};

}  // namespace lpp::cli
