#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "k8s/resource.h"

namespace lpp::testing {

inline constexpr const char* kChaosNamespace = "chaos";

/// A claim that should be there.
struct ChaosClaim {
  k8s::ObjectKey key{};
  std::string uid{};
  std::string storage_class{};
  std::string content{};  // of the file in its volume; "" = not written yet
  std::string pv() const { return "pvc-" + uid; }
};

/// A volume with policy Retain whose claim is gone.
struct ChaosRetained {
  std::string pv{};
  std::string content{};
};

/// What should be true at the next quiet point, by what the steps did. A plain value.
struct ChaosModel {
  static constexpr std::size_t kSlots = 14;

  std::map<std::size_t, ChaosClaim> claims{};  // by slot
  std::map<std::string, ChaosRetained> retained{};
  std::set<std::string> deleted{};  // names of volumes that must be gone
  std::size_t next_name = 1;

  // What cannot be cleaned up by anybody, because the record of it was taken away.
  std::set<std::string> nodes_that_were_gone{};
  std::set<std::string> lost_records{};  // "node:path" of helper pods removed by hand

  bool bases_changed = false;  // since the last quiet point

  std::set<std::string> gone_nodes{};
  bool setup_fails = false;
  std::string setup_marker{};
  std::string teardown_marker{};  // "" = the script does not fail
};

/// Classes of the run; "chaos-refused" can never be served, "chaos-flip" comes and goes.
struct ChaosClass {
  std::string name;
  bool retain = false;
  bool possible = true;
};
const std::vector<ChaosClass>& chaos_classes();
const ChaosClass& chaos_class(const std::string& name);

}  // namespace lpp::testing
