// SPDX-License-Identifier: Apache-2.0
#include "cli/history.h"

#include <algorithm>

#include "base/log.h"
#include "base/parse_time.h"
#include "base/strings.h"
#include "k8s/json_access.h"
#include "provisioner/names.h"

namespace lpp::cli {

using k8s::text;

namespace {

using nlohmann::json;

/// The first of the members that is there.
std::string first_text(const json& object, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = text(object, name); !value.empty()) return value;
  }
  return {};
}

std::string level_of(std::string_view word) {
  const std::string lower = to_lower(word);
  if (lower == "warn" || lower == "warning") return "warning";
  return lower == "error" || lower == "critical" ? "error" : lower;
}

std::optional<HistoryEntry> json_entry(std::string_view line) {
  const json object = json::parse(line, nullptr, false);
  const auto time = parse_rfc3339(first_text(object, {"time", "ts", "timestamp"}));
  if (!time) return std::nullopt;
  HistoryEntry entry{.time = *time,
                     .level = level_of(text(object, "level")),
                     .message = first_text(object, {"msg", "message"}),
                     .source = "log"};
  for (const char* key : {"volume", "claim", "node", "path"}) {
    const std::string value = text(object, key);
    if (value.empty() || entry.message.find(fmt::format("{}=", key)) != std::string::npos) continue;
    entry.message += fmt::format(" {}={}", key, log::quoted(value));
  }
  return entry;
}

bool is_ours(const EventNote& note, const std::string& provisioner_name) {
  return note.component == provisioner_name || note.component.starts_with(provisioner_name + "_");
}

/// Whether the text holds the name, and not only as a part of a longer one.
bool tells_of(const HistoryEntry& entry, std::string_view name) {
  const auto continues = [&](std::size_t at) {
    const char c = at < entry.message.size() ? entry.message[at] : ' ';
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  for (auto at = entry.message.find(name); at != std::string::npos;
       at = entry.message.find(name, at + 1)) {
    const bool begins = at == 0 || !continues(at - 1);
    if (begins && !continues(at + name.size())) return true;
  }
  return false;
}

/// Whether it concerns a claim of the namespace, or the volume of one.
bool concerns(const HistoryEntry& entry, const HistorySources& sources) {
  if (sources.ns.empty()) return true;
  if (entry.message.find(fmt::format("claim={}/", sources.ns)) != std::string::npos) return true;
  return std::any_of(sources.volumes.begin(), sources.volumes.end(), [&](const auto& volume) {
    return volume.claim.ns == sources.ns && tells_of(entry, volume.meta.name);
  });
}

/// Whether the log tells of the same object at about the time of the Event. The logs of the
/// replicas begin at different times, and nothing says which of them led then: so each Event is
/// looked for.
bool logged(const std::vector<HistoryEntry>& log, const EventNote& note) {
  constexpr auto kNear = std::chrono::minutes(1);
  return std::any_of(log.begin(), log.end(), [&](const HistoryEntry& entry) {
    return entry.time >= note.time - kNear && entry.time <= note.time + kNear &&
           worth_telling(entry) && tells_of(entry, note.about.to_string());
  });
}

}  // namespace

std::optional<HistoryEntry> log_entry(std::string_view line) {
  line = trim(line);
  if (line.starts_with('{')) return json_entry(line);
  // "2026-11-20T09:15:16.123Z info volume provisioned volume=..."
  const auto first = line.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const auto second = line.find(' ', first + 1);
  const auto time = parse_rfc3339(line.substr(0, first));
  if (!time || second == std::string_view::npos) return std::nullopt;
  return HistoryEntry{.time = *time,
                      .level = level_of(line.substr(first + 1, second - first - 1)),
                      .message = std::string(line.substr(second + 1)),
                      .source = "log"};
}

bool worth_telling(const HistoryEntry& entry) {
  if (entry.level == "warning" || entry.level == "error") return true;
  if (entry.level != "info") return false;
  constexpr std::string_view kSteps[] = {"helper pod created"};
  return entry.message.find("volume=") != std::string::npos &&
         std::none_of(std::begin(kSteps), std::end(kSteps),
                      [&](std::string_view step) { return entry.message.starts_with(step); });
}

std::vector<HistoryEntry> history(const HistorySources& sources, WallTime since) {
  std::vector<HistoryEntry> out;
  for (const HistoryEntry& entry : sources.log) {
    if (entry.time >= since && worth_telling(entry)) out.push_back(entry);
  }
  for (const EventNote& note : sources.events) {
    if (note.time < since || !is_ours(note, sources.provisioner_name)) continue;
    if (note.reason == provisioner::kProvisioning) continue;  // its outcome is what counts
    if (logged(sources.log, note)) continue;
    const std::string count = note.count > 1 ? fmt::format(" ({} times)", note.count) : "";
    const char* const kind = note.kind == "PersistentVolume"        ? "volume"
                             : note.kind == "PersistentVolumeClaim" ? "claim"
                                                                    : "object";
    out.push_back({.time = note.time,
                   .level = note.type == "Warning" ? "warning" : "info",
                   .message = fmt::format("{}: {}{} {}={}", note.reason, note.message, count, kind,
                                          note.about.to_string()),
                   .source = "event"});
  }
  for (const k8s::PersistentVolume& volume : sources.volumes) {
    const auto made = parse_rfc3339(volume.meta.creation_timestamp);
    if (!made || *made < since) continue;
    const bool told = std::any_of(out.begin(), out.end(), [&](const HistoryEntry& entry) {
      return tells_of(entry, volume.meta.name);
    });
    if (told) continue;
    out.push_back(
        {.time = *made,
         .level = "info",
         .message = fmt::format("volume provisioned volume={} claim={} path={}", volume.meta.name,
                                volume.claim.to_string(), log::quoted(volume.path)),
         .source = "volume"});
  }
  std::erase_if(out, [&](const HistoryEntry& entry) { return !concerns(entry, sources); });
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return out;
}

}  // namespace lpp::cli
