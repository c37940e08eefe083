// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/config.h"
#include "k8s/objects.h"
#include "operation/executor.h"
#include "provisioner/memory.h"
#include "provisioner/served_names.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

/// Everything that what is to be done for a volume depends on: plain values, taken from the stores,
/// the executor and this process's memory at one moment.
struct VolumeScene {
  TimePoint now{};
  ServedNames names{};
  std::string name{};
  std::shared_ptr<const k8s::PersistentVolume> volume{};  // nullptr: gone
  bool is_wanted = false;  // to be removed: released, policy Delete, ours
  bool binds = false;      // that it is released is for us to write
  /// Where its directory is. Of a volume that is not to be removed: only if its class lets claims
  /// of lost nodes go, or one was let go.
  VolumeNode node{};
  std::shared_ptr<const k8s::PersistentVolumeClaim> claim{};  // that is bound to it, of those
  std::optional<Duration> lets_go_after{};  // the class lets go, so long after its node was lost
  std::shared_ptr<const config::Config> config{};
  std::vector<operation::Recorded> removals{};
  std::vector<operation::Recorded> makes{};
  std::vector<operation::Recorded> resizes{};  // for no claim that is bound to it
  /// Removals and resizes on record of a node where the volume is not: of another one that had its
  /// name, or a lie. They are called off, and keep nothing waiting.
  std::vector<operation::Recorded> elsewhere{};
  int last_other = 0;  // attempt of those, and of what takes back under the volume's name
  /// Another volume in whose directory, or around it, this one's lies.
  std::shared_ptr<const k8s::PersistentVolume> overlapping{};
  bool overlapping_goes_too = false;        // it is to be removed too
  bool overlapping_takes_it_along = false;  // so, with all that is in it
  std::string sight{};                      // of its node's disk there, see Executor::sight()
  Memory memory{};
  operation::Progress lost{};  // memory.in_flight's, should it not be on record any more

  /// What a refusal depends on, and what of it a failed removal does.
  std::string seen() const;
  std::string settings() const;
};

/// What is to be done for a volume. One of these, and then everything is looked at again.
namespace for_volume {

/// Nothing until something changes, or for this long.
struct Wait {
  std::optional<Duration> at_most{};
  bool forget = false;
};
/// Our finalizer is on volumes whose directory we will remove, and on no others.
struct AddFinalizer {};
struct RemoveFinalizer {};
/// Writes that the volume is released, if the API server itself says that its claim is gone.
struct MarkReleased {};
/// A removal that is not wanted, or not any more: it is to act no more.
struct Cancel {
  operation::Recorded removal{};
};
/// A record that is of no use any more.
struct Forget {
  std::shared_ptr<const operation::Operation> operation{};
  bool when_quiet = false;
};
/// Begins to remove the directory, if the API server itself says that it is still to be removed.
struct Remove {
  operation::Operation operation{};
};
/// It is under way: tells why it does not get on, if that is known.
struct Follow {
  operation::Recorded removal{};
};
struct Failed {
  operation::Recorded removal{};
};
/// The directory is gone: the volume goes.
struct Release {
  bool was_absent = false;        // it was not there when the last removal came
  bool was_tried_before = false;  // which another one may have done
};
/// Nobody can remove the directory any more, or another volume's removal will: the volume goes.
struct LetGo {
  std::string why{};
  std::string node{};  // to ask the API server for first; "" = none
  bool stays = false;  // its directory does, whether its node has come back or not
};
/// Its node seems to be gone: asks the API server, and tells what is going to happen.
struct NodeLost {
  std::string node{};
};
/// Deletes its claim, if the API server itself says that the node is still gone.
struct LetClaimGo {
  std::string node{};
};
/// Takes the mark off of which nothing has come: the node is back, or the claim is another one.
struct KeepClaim {};
struct PathTaken {};
struct Refuse {
  std::string message{};
};

}  // namespace for_volume

using VolumeDecision =
    std::variant<for_volume::Wait, for_volume::AddFinalizer, for_volume::RemoveFinalizer,
                 for_volume::Cancel, for_volume::Forget, for_volume::Remove, for_volume::Follow,
                 for_volume::Failed, for_volume::Release, for_volume::LetGo, for_volume::PathTaken,
                 for_volume::Refuse, for_volume::MarkReleased, for_volume::NodeLost,
                 for_volume::LetClaimGo, for_volume::KeepClaim>;

/// The table of docs/decisions.md. Pure. The order of its rows is the order of safety.
VolumeDecision decide(const VolumeScene& scene);

/// Of them, what is to be done for the claim of a volume whose node may have been lost; nothing
/// when it has what it needs, or is not to be let go. Pure.
std::optional<VolumeDecision> decide_node_lost(const VolumeScene& scene);

}  // namespace lpp::provisioner
