// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/resource.h"

namespace lpp::testing {

inline constexpr const char* kChaosNamespace = "chaos";
/// Volumes made by hand as old versions made them; nobody has a claim for them.
inline constexpr const char* kOldPrefix = "chaos-old-";

/// A machine's Node object is called like the machine, or so with this behind it.
inline constexpr std::string_view kRenamed = "-again";
std::string machine_of(std::string_view node);

/// A claim that should be there.
struct ChaosClaim {
  k8s::ObjectKey key{};
  std::string uid{};
  std::string storage_class{};
  std::string content{};     // of the file in its volume; "" = not written yet
  std::string volume{};      // that it was bound to by hand; "" = it gets its own
  std::string first_name{};  // of the claim that the volume was made for, if it is not its own
  std::string pv() const { return volume.empty() ? "pvc-" + uid : volume; }
};

/// What should be true at the next quiet point, by what the steps did; the rest is in the Ledger.
/// A plain value.
struct ChaosModel {
  static constexpr std::size_t kSlots = 14;

  std::map<std::size_t, ChaosClaim> claims{};  // by slot
  std::size_t next_name = 1;

  // What cannot be cleaned up by anybody, because the record of it was taken away.
  std::set<std::string> nodes_that_were_gone{};
  std::set<std::string> lost_records{};  // directories of helper pods removed by hand

  /// Claims of path patterns whose creation may have been taken back since the last quiet point:
  /// nobody can tell whether their directories were there before, so they may stay.
  std::set<std::string> taken_back{};

  bool bases_changed = false;  // since the last quiet point

  std::set<std::string> gone_nodes{};  // machines
  std::set<std::string> renamed{};     // machines whose Node object has the other name
  /// Machines that had another hostname label for a while, and another name: a volume that was made
  /// while they had both says nothing that leads there.
  std::set<std::string> ever_relabelled{};
  std::set<std::string> ever_renamed{};
  bool setup_fails = false;
  std::string setup_marker{};
  std::string teardown_marker{};  // "" = the script does not fail
};

/// Classes of the run; "chaos-refused" can never be served, "chaos-flip" comes and goes.
struct ChaosClass {
  std::string name;
  bool retain = false;
  bool possible = true;
  bool pattern = false;     // directories are <namespace>/<claim>
  bool comes_back = false;  // claims have the same few names again and again
};
const std::vector<ChaosClass>& chaos_classes();
const ChaosClass& chaos_class(const std::string& name);

}  // namespace lpp::testing
