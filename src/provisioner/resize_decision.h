// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "config/config.h"
#include "k8s/objects.h"
#include "operation/executor.h"
#include "provisioner/memory.h"
#include "provisioner/served_names.h"
#include "provisioner/volume_node.h"

namespace lpp::provisioner {

/// As the API spells it, and what it is.
struct Size {
  std::string text{};
  std::int64_t bytes = 0;
};

/// Whether the claim asks for more than it has, or an expansion was left half done: says nothing of
/// whose it is. Pure.
bool wants_resize(const k8s::PersistentVolumeClaim& claim);

/// Everything that the expansion of a claim's volume depends on: plain values, taken from the
/// stores, the executor and this process's memory at one moment.
struct ResizeScene {
  TimePoint now{};
  ServedNames names{};
  std::shared_ptr<const k8s::PersistentVolumeClaim> claim{};  // none, or another UID: nullptr
  std::shared_ptr<const k8s::PersistentVolume> volume{};      // the one that it names
  VolumeNode node{};                                          // where its directory is
  std::shared_ptr<const k8s::StorageClass> storage_class{};   // the volume's, if it is there
  std::shared_ptr<const config::Config> config{};
  std::vector<operation::Recorded> resizes{};  // on record for both, where the volume may be
  int last_elsewhere = 0;                      // attempt of one on record on another node
  std::optional<bool> has_way{};  // whether the executor can limit directories, if it was asked
  Memory memory{};
  operation::Progress lost{};  // memory.in_flight's, should it not be on record any more
};

/// What is to be done for a claim that grows. One of these, and then everything is looked at again.
namespace for_resize {

/// Nothing until something changes, or for this long.
struct Wait {
  std::optional<Duration> at_most{};
  bool forget = false;  // what is remembered is of no use any more
};
/// Writes down in the claim's status what it grows to; for others to see, and to go on from.
struct Begin {
  Size size{};
};
/// Asks the executor whether it can limit directories.
struct AskForWay {
  operation::Operation operation{};  // that would be begun
};
/// Records the work on the node and lets it begin.
struct Start {
  operation::Operation operation{};
};
/// It is under way: tells why it does not get on, if that is known.
struct Follow {
  operation::Recorded resize{};
};
/// Counts an attempt that failed and tells why; the next one is for the same size.
struct Failed {
  std::shared_ptr<const operation::Operation> operation{};
  operation::Progress progress{};
  Size size{};
};
/// The node cannot have it: the claim says so from now on, and its owner may ask for less.
struct Infeasible {
  std::shared_ptr<const operation::Operation> operation{};
  operation::Progress progress{};
  Size size{};
};
/// Nothing can be begun as things stand.
struct Refuse {
  std::string message{};
  Size size{};
};
struct Cancel {
  std::shared_ptr<const operation::Operation> operation{};
};
struct Forget {
  std::shared_ptr<const operation::Operation> operation{};
};
/// The volume, which comes before the claim: it never shrinks.
struct GrowVolume {
  Size size{};
};
/// The claim has it.
struct Finish {
  Size size{};
  enum class Limit { kEnforced, kNone, kSameAsBefore };
  Limit limit = Limit::kEnforced;
};

}  // namespace for_resize

using ResizeDecision = std::variant<for_resize::Wait, for_resize::Begin, for_resize::AskForWay,
                                    for_resize::Start, for_resize::Follow, for_resize::Failed,
                                    for_resize::Infeasible, for_resize::Refuse, for_resize::Cancel,
                                    for_resize::Forget, for_resize::GrowVolume, for_resize::Finish>;

/// The table of docs/decisions.md. Pure. Each row can be the first one of a new process: all that
/// is needed to go on stands in the claim's status, the volume and the executor's record. Where the
/// API server keeps no marks in the status, a new process begins once more.
ResizeDecision decide(const ResizeScene& scene);

}  // namespace lpp::provisioner
