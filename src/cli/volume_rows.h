// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster.h"

namespace lpp::cli {

/// What a volume takes up. Bytes and numbers of inodes.
struct VolumeUsage {
  std::uint64_t used_bytes = 0;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t used_inodes = 0;
  std::uint64_t inodes = 0;  // 0 = not known
  std::string told_at{};     // by a helper pod, a while ago; "" = it is of now
  bool operator==(const VolumeUsage&) const = default;
};

/// One volume of ours, or a claim that is to get one.
struct VolumeRow {
  k8s::ObjectKey claim{};
  std::string claim_uid{};
  std::string volume{};  // name of the PersistentVolume; "" while it is not made
  std::string node{};    // "" = none yet, or any: see shared
  bool shared = false;   // on a filesystem that every node shares
  std::string path{};
  std::string size{};
  bool limited = false;  // its directory has a limit
  std::optional<VolumeUsage> usage{};
  std::string phase{};  // as kubectl shows it: Bound, Pending, Released, Terminating …
  std::string created{};
  std::string storage_class{};
  std::string reclaim_policy{};
  std::string executor{};    // who does the work on its node, as far as that is known
  std::string helper_pod{};  // "<namespace>/<name>" of the operation in progress
  std::string operation{};   // "create" or "delete"
  int attempt = 0;
  std::string why{};     // what is pending and why; "" = nothing is
  std::string next{};    // what to do about it; "" = nothing, or `why` says it
  bool problem = false;  // somebody has to do something
};

/// All rows of the view, by namespace and claim. Pure.
std::vector<VolumeRow> volume_rows(const ClusterView& view);

/// The row for machines; members without a value are left out.
nlohmann::json to_json(const VolumeRow& row);

/// Whether the claim is this provisioner's: by its volume, its annotations or its class.
bool is_our_claim(const ClusterView& view, const k8s::PersistentVolumeClaim& claim);

}  // namespace lpp::cli
