// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "config/config.h"
#include "k8s/objects.h"
#include "operation/executor.h"
#include "provisioner/memory.h"
#include "provisioner/plan.h"
#include "provisioner/served_names.h"

namespace lpp::provisioner {

/// A directory that was, or may have been, made for the claim, as a step finds it.
struct Make {
  Begun begun{};
  std::optional<operation::Progress> progress{};  // nothing: it is not on record
  bool shown = false;                             // the claim's own volume is there

  const operation::Operation& operation() const { return *begun.operation; }
  bool has_failed() const;
  /// Certainly: there is nothing to be taken back.
  bool has_done_nothing() const;
  /// It is over, and no volume may show it: its base path cannot serve the claim, or nobody on the
  /// node has set the limits that were asked for.
  bool falls_short() const;
};

/// An operation on record that takes a directory back.
struct TakingBack {
  std::shared_ptr<const operation::Operation> operation{};
  operation::Progress progress{};
  bool in_use = false;  // a volume is there, whichever
};

/// The disk where something was begun, as it is seen now, see Executor.
struct DiskThere {
  std::string sight{};
  std::string why_unfit{};  // of what is over
};

/// Everything that what is to be done for a claim depends on: plain values, taken from the stores,
/// the executor and this process's memory at one moment.
struct ClaimScene {
  TimePoint now{};
  ServedNames names{};
  std::string volume_name{};
  std::shared_ptr<const k8s::PersistentVolumeClaim> claim{};  // none, or another UID: nullptr
  std::shared_ptr<const k8s::StorageClass> storage_class{};
  std::shared_ptr<const k8s::Node> node{};  // the selected one, if there is one and it is there
  std::string node_name{};                  // the selected one; "" = none
  std::shared_ptr<const config::Config> config{};
  std::shared_ptr<const k8s::PersistentVolume> volume{};  // of the claim's volume name
  std::vector<Make> makes{};
  std::vector<TakingBack> taking_back{};
  std::vector<operation::Recorded> removals{};  // on record under the volume's name
  bool binds = false;                           // the binding is for us to write
  BasePaths base_paths{};                       // of the selected node
  std::string sight{};                          // of its disks, see Executor::sight()
  std::map<std::string, DiskThere> disks{};     // by place_key(), on whichever node
  Memory memory{};
  operation::Progress lost{};  // memory.in_flight's, should it not be on record any more
  std::vector<TakingBack> lost_taking_back{};  // of memory.taking_back, not on record any more

  /// What a refusal depends on, and what of it only an administrator can change.
  std::string seen() const;
  std::string settings() const;
};

/// What is to be done for a claim. One of these, and then everything is looked at again.
namespace for_claim {

/// Nothing until something changes, or for this long.
struct Wait {
  std::optional<Duration> at_most{};
  bool forget = false;  // what is remembered of the claim is of no use any more
};
/// Records a make operation and lets it begin.
struct Start {
  operation::Operation operation{};
};
/// It is under way: tells why it does not get on, if that is known.
struct Follow {
  Make make{};
};
/// The directory is there: creates the volume.
struct Publish {
  Make make{};
};
/// Counts an attempt that failed and tells why.
struct Failed {
  std::shared_ptr<const operation::Operation> operation{};
  std::string message{};
  std::string reason{};
  bool unfit = false;  // the base path is not to be tried again for a while
};
/// Stops what may still act.
struct Cancel {
  std::shared_ptr<const operation::Operation> operation{};
  /// It is all that is known of its directory: that is taken back if it is empty, and a teardown
  /// that does not look is told of.
  bool is_last_record = false;
};
/// Stops a make that nobody waits for, if the API server itself says so.
struct Withdraw {
  Make make{};
};
/// The record is of no use any more. Its directory is the volume's, or another operation's.
struct Forget {
  std::shared_ptr<const operation::Operation> operation{};
  bool when_quiet = false;
  std::shared_ptr<const operation::Operation> heir{};  // the later attempt that has it now
};
/// Begins to take back what was made, if the API server itself says that it is of no use.
struct TakeBack {
  Make make{};
  int attempt = 1;
};
/// It is taken back, as far as it may be: nothing of it needs a record any more.
struct FinishTakeBack {
  TakingBack done{};
};
struct TakeBackFailed {
  TakingBack failed{};
};
struct TakeBackStuck {
  std::shared_ptr<const operation::Operation> operation{};
  operation::Progress progress{};
};
/// Asks the API server whether the selected node is gone, and the volume there that should be.
struct CheckNode {};
struct CheckPublished {};
/// A volume of the claim's volume name is in the way.
struct OtherVolume {
  std::string difference{};
};
struct Refuse {
  Refusal refusal{};
};
/// Writes what is missing of the binding of the claim and its volume: of the volume its phase, of
/// the claim the volume's name, and always the claim's phase.
struct Bind {
  bool volume_status = false;
  bool claim = false;
};
/// It could not be written: the control plane's binder finishes it.
struct LeaveUnbound {
  std::string reason{};  // a word for counting, see binding.h
  std::string message{};
};

}  // namespace for_claim

using ClaimDecision =
    std::variant<for_claim::Wait, for_claim::Start, for_claim::Follow, for_claim::Publish,
                 for_claim::Failed, for_claim::Cancel, for_claim::Withdraw, for_claim::Forget,
                 for_claim::TakeBack, for_claim::FinishTakeBack, for_claim::TakeBackFailed,
                 for_claim::TakeBackStuck, for_claim::CheckNode, for_claim::CheckPublished,
                 for_claim::OtherVolume, for_claim::Refuse, for_claim::Bind,
                 for_claim::LeaveUnbound>;

/// The table of docs/decisions.md. Pure. The order of its rows is the order of safety: what a
/// tenant may have written, then what was begun, then what is new.
ClaimDecision decide(const ClaimScene& scene);

/// Whether the make's record, as far as is known, has kept everybody else out of the directory.
bool keeps_others_out(const Make& make);
/// What has failed is not tried again yet.
bool waits_for_next_attempt(const ClaimScene& scene);

/// Whether the teardown may take the make back: it is certain that it made the directory, and that
/// no volume ever showed it. If not, the directory goes only when it is empty. What the script said
/// counts only as long as the record keeps others out of the directory.
bool may_tear_down(const Make& make);

}  // namespace lpp::provisioner
