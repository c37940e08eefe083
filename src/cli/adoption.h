// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "cli/orphans.h"
#include "cli/surroundings.h"

namespace lpp::cli {

/// A directory that is to become the volume of a claim.
struct AdoptionRequest {
  std::string node{};
  std::string path{};
  k8s::ObjectKey claim{};
  std::string storage_class{};  // "" = the claim's, or the only one there is
  std::string size{};           // a quantity; "" = as on record, or as the claim asks for
  std::string reclaim_policy = "Retain";
  bool other_claim = false;        // although its record, or its name, is another claim's
  bool from_record = false;        // the claim is the one that the record names
  const Orphan* record = nullptr;  // what the node's agent tells of it; nullptr = nothing
  const Orphan* near = nullptr;    // one that is on record and lies in it, or around it
};

struct Adoption {
  nlohmann::json manifest{};  // of the PersistentVolume, which retains the directory
  operation::Operation place{};
  std::string volume{};
  std::string storage_class{};
  std::string size{};
  bool claim_exists = false;
  std::string whose{};       // what the record tells of its owner and is no reason to refuse
  bool lacks_limit = false;  // the class asks for one that does not hold: only its node can set it
};

/// The volume by which the directory gets to the claim, or why it may not. Pure.
Result<Adoption> plan_adoption(const AdoptionRequest& request, const Surroundings& around);

/// Of a volume that was made to retain its directory, once a second look has found nobody else
/// there. Only of the very one that was made: by its UID.
Result<void> set_reclaim_policy(k8s::ApiClient& api, const std::string& volume,
                                const std::string& uid, const std::string& policy);

/// "10Gi" of so many bytes, or the bytes where that is not exact.
std::string quantity_of(std::int64_t bytes);

}  // namespace lpp::cli
