// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster.h"

namespace lpp::cli {

/// Something that the provisioner did, or that failed.
struct HistoryEntry {
  WallTime time{};
  std::string level{};    // "info", "warning" or "error"
  std::string message{};  // with volume=, claim=, node= as the log has them
  std::string source{};   // "log", "event" or "volume"
};

/// A line of the daemon's log, as text or JSON; nullopt for anything else.
std::optional<HistoryEntry> log_entry(std::string_view line);

/// What of the log belongs into the history: volumes made and removed, and everything that went
/// wrong.
bool worth_telling(const HistoryEntry& entry);

/// All that is known, oldest first: the logs; Events about what no line of the log tells near that
/// time (a replica that is gone took its log along); and the volumes of which neither knows. Pure.
struct HistorySources {
  std::vector<HistoryEntry> log{};
  std::vector<EventNote> events{};
  std::vector<k8s::PersistentVolume> volumes{};
  std::string provisioner_name{};
  std::string ns{};  // only what concerns its claims; "" = everything
};
std::vector<HistoryEntry> history(const HistorySources& sources, WallTime since);

/// `history`.
extern const Command kHistoryCommand;

}  // namespace lpp::cli
