// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "config/config.h"
#include "config/published.h"
#include "k8s/api_client.h"
#include "k8s/event_recorder.h"
#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/executor.h"
#include "operation/path_ledger.h"
#include "operation/space.h"
#include "operation/told_uses.h"
#include "provisioner/binding.h"
#include "provisioner/operation_figures.h"
#include "provisioner/served_names.h"

namespace lpp::provisioner {

/// Everything a reconciler sees and acts on. References only: the owner outlives the reconcilers.
/// What they refer to is thread-safe, and so is what is done with them here.
struct World {
  const ServedNames names;
  k8s::ApiClient& client;
  Clock& clock;
  k8s::EventSink& events;
  operation::Executor& executor;
  operation::PathLedger& ledger;
  const config::Published<config::Config>& config;
  const k8s::Store<k8s::PersistentVolumeClaim>& claims;
  const k8s::Store<k8s::PersistentVolume>& volumes;
  const k8s::Store<k8s::StorageClass>& classes;
  const k8s::Store<k8s::Node>& nodes;
  OperationFigures& figures;
  Binding& binding;
  operation::SpaceBoard& space;
  operation::ToldUses& uses;
};

/// A step in progress outside is looked at again after this, even if no change is seen.
inline constexpr std::chrono::seconds kRecheck{15};
/// More decisions in one step would mean that two of them undo each other.
inline constexpr int kMostDecisions = 16;
/// What the API server said is asked again after this before a removal begins.
inline constexpr std::chrono::seconds kWordIsGood{5};
/// The cache shows within this what stood in the way.
inline constexpr std::chrono::seconds kSoon{1};

/// The word by which failures of an API call are counted.
std::string reason_of(const Error& error);

/// True when the API server itself says that the node does not exist (the cache may be behind).
/// Errors other than "not found" are passed on.
Result<bool> node_is_gone(World& world, const std::string& node);

/// The node with that label, if it has it: of one with many labels the cache keeps a few, and the
/// API server is asked. nullptr when there is no such node.
Result<std::shared_ptr<const k8s::Node>> node_with_label(const k8s::Store<k8s::Node>& nodes,
                                                         k8s::ApiClient& client,
                                                         const std::string& name,
                                                         const std::string& label);

/// Puts on the boards what the work that is over tells of its base path and of its directory.
void note_told(World& world, const operation::Operation& operation,
               const operation::Progress& progress);

/// The claim and the volume as the API server has them now; nullopt when it says that there is
/// none.
Result<std::optional<k8s::PersistentVolumeClaim>> read_claim(World& world,
                                                             const k8s::ObjectKey& key);
/// The claim with all that patterns may ask for.
Result<std::optional<k8s::PersistentVolumeClaim>> read_whole_claim(World& world,
                                                                   const k8s::ObjectKey& key);
Result<std::optional<k8s::PersistentVolume>> read_volume(World& world, const std::string& name);

}  // namespace lpp::provisioner
