// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "node/volume.h"
#include "node/volume_requests.h"

// What becomes of a directory that is to be removed, as far as it follows from what is found. No
// system call: volumes_remove.cpp looks and acts. The table is in docs/decisions.md.

namespace lpp::node {

/// What is found of one volume, under its lock.
struct RemovalScene {
  /// In the folder beside the records, which a directory leaves its place for.
  enum class Rest {
    kNone,   // there is no such folder
    kEmpty,  // a removal was about to begin, or has nothing left to remove
    kData,   // a removal has begun; it was called off, perhaps
  };

  std::optional<Volume> recorded{};  // not another claim's, see is_anothers() in volume.h
  Rest rest = Rest::kNone;
  std::optional<Identity> place{};  // of the directory that stands in the place

  /// Whether that is the one on record.
  bool is_in_place() const { return place && recorded && *place == recorded->directory; }
};

enum class RemovalDecision {
  kKeep,          // nothing is touched
  kRefuse,        // so, and nobody but a person can tell whose the rest is
  kOnlyIfEmpty,   // the directory goes from its place if nothing is in it, and its record with it
  kForget,        // the directory stays, its limits and record go
  kWhole,         // the directory leaves its place, and goes with the rest
  kRest,          // only the rest goes: what stands in the place, if anything, is not this volume's
  kNothingThere,  // there is nothing but the record, perhaps
};

/// `uid`: of the claim that the volume was made for; "" = nobody knows which.
RemovalDecision decide_removal(const RemovalScene& scene, Removal removal, const std::string& uid);

/// What the record must tell before the directory leaves its place, for beside the records nothing
/// else tells whose it is. nullopt: it tells it already. `id` and `path` are the volume's.
std::optional<Volume> record_to_leave_with(const RemovalScene& scene, const RemoveRequest& request);

/// The volume of the request as far as nothing is on record of it.
Volume unrecorded_volume(const RemoveRequest& request);

}  // namespace lpp::node
