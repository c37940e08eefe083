// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cluster.h"

namespace lpp::cli {

/// A directory on a node that has neither a volume nor a claim, as the node's agent told of it.
/// What it says was written on the node: any of it may be anything.
struct Orphan {
  static constexpr const char* kNoVolume = "NoVolume";
  static constexpr const char* kNoRecord = "NoRecord";
  static constexpr const char* kOtherCluster = "OtherCluster";
  static constexpr const char* kUnfinished = "Unfinished";

  std::string node{};
  std::string path{};    // absolute
  std::string volume{};  // name that its volume had; "" = nobody knows
  k8s::ObjectKey claim{};
  std::string uid{};      // the claim's
  std::string cluster{};  // whose records its disk holds; "" = this one's, or nobody said
  std::int64_t size = 0;  // bytes that it was promised; 0 = nobody said
  std::optional<std::uint64_t> used{};  // bytes; nullopt = nobody counts
  std::int64_t limit = 0;               // bytes that it is held to; 0 = to none, or nobody said
  std::int64_t since = 0;               // seconds since 1970
  std::string disk{};  // what the agent calls the disk it is on; "" = it does not say
  std::string why{};
  std::string message{};

  bool has_record() const { return why == kNoVolume || why == kOtherCluster; }
};

struct Orphans {
  std::vector<Orphan> listed{};                     // by node and path, each once
  std::map<std::string, std::uint64_t> left_out{};  // how many more there are, by node
};

/// What a page /orphans of the daemon lists is added; what makes no sense is left out. Pure.
void add_orphans(const nlohmann::json& page, Orphans& to);

/// From all pods of the daemon.
Result<Orphans> ask_for_orphans(Cluster& cluster, const Installation& installation);

/// A line for who has asked for all of that node.
std::string more_left_out(const std::string& node);

/// The one of that place; nullptr = it is not listed. Pure.
const Orphan* find_orphan(const std::vector<Orphan>& orphans, const std::string& node,
                          const std::string& path);
/// One that is on record and lies in that place, or around it; nullptr = none is listed. Pure.
const Orphan* find_orphan_near(const std::vector<Orphan>& orphans, const std::string& node,
                               const std::string& path);

}  // namespace lpp::cli
