// SPDX-License-Identifier: Apache-2.0
#include "cli/orphans_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "cli/orphans.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/text.h"

namespace lpp::cli {

namespace {

using nlohmann::json;

std::string claim_of(const Orphan& row) {
  return row.claim.name.empty() ? std::string() : row.claim.to_string();
}

json to_json(const Orphan& row) {
  json object{{"node", row.node},       {"path", row.path}, {"volume", row.volume},
              {"claim", claim_of(row)}, {"uid", row.uid},   {"size", row.size},
              {"since", row.since},     {"why", row.why},   {"message", row.message}};
  if (!row.disk.empty()) object["disk"] = row.disk;
  if (!row.cluster.empty()) object["cluster"] = row.cluster;
  if (row.used) object["used"] = *row.used;
  if (row.limit > 0) object["limit"] = row.limit;
  return object;
}

std::string table_of(const std::vector<Orphan>& rows, const Context& context, bool wide) {
  std::vector<std::string> headings{"NODE", "PATH", "SIZE", "USED", "AGE", "WHY", "CLAIM"};
  if (wide) headings.insert(headings.end(), {"VOLUME", "MESSAGE"});
  std::vector<std::vector<Cell>> cells;
  for (const Orphan& row : rows) {
    const WallTime since{std::chrono::seconds(row.since)};
    const auto age = std::chrono::duration_cast<Duration>(context.clock.wall_now() - since);
    std::vector<Cell> line{{or_dash(row.node)},
                           {or_dash(row.path)},
                           {row.size > 0 ? bytes_text(static_cast<std::uint64_t>(row.size)) : "-"},
                           {row.used ? bytes_text(*row.used) : "-"},
                           {row.since > 0 ? age_text(age) : "-"},
                           {or_dash(row.why)},
                           {or_dash(claim_of(row))}};
    if (wide) {
      line.push_back({or_dash(row.volume)});
      line.push_back({or_dash(row.message)});
    }
    cells.push_back(std::move(line));
  }
  return table(context.terminal, headings, cells, {.whole = wide, .middle = 1});
}

}  // namespace

int show_orphans(Cluster& cluster, const Installation& installation, const std::string& format,
                 Context& context) {
  Orphans orphans;
  {
    const Progress progress(context, "asking for directories that are nobody's");
    auto asked = ask_for_orphans(cluster, installation);
    if (!asked.ok()) return fail(context, "volumes", asked.error(), kExitProblem);
    orphans = *std::move(asked);
  }
  const std::vector<Orphan>& rows = orphans.listed;
  for (const auto& [node, count] : orphans.left_out) {
    context.err(one_line(fmt::format("note: {} more on node {} are not shown", count, node)) +
                "\n");
  }
  if (format == "json" || format == "yaml") {
    json items = json::array();
    for (const Orphan& row : rows) items.push_back(to_json(row));
    context.out(machine_text({{"items", items}}, format));
  } else if (format == "name") {
    for (const Orphan& row : rows) context.out(one_line(row.node + ":" + row.path) + "\n");
  } else if (rows.empty()) {
    context.err("No directories that are nobody's on nodes with an agent.\n");
  } else {
    context.out(table_of(rows, context, format == "wide"));
  }
  return kExitOk;
}

}  // namespace lpp::cli
