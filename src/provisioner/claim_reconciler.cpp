#include "provisioner/claim_reconciler.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

using helperpod::Operation;
using helperpod::Progress;

namespace {

/// A volume that we created should be in the cache long before this.
constexpr std::chrono::seconds kMadeVolumeLimit{30};

/// Errors that a repetition alone does not heal are worth an Event at once; the others (no
/// connection, overload, a stale cache) heal by themselves and would only be noise.
bool worth_an_event(const Error& error) {
  switch (error.code) {
    case ErrorCode::kForbidden:
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kInternal:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kConflict:
      return true;
    default:
      return false;
  }
}

/// What of a node a decision can depend on. Its resource version changes with every heartbeat.
std::string seen_of(const k8s::Node& node) {
  std::string seen = node.meta.uid;
  for (const auto& [key, value] : node.meta.labels)
    seen.append("/").append(key).append("=").append(value);
  return seen;
}

k8s::ObjectReference reference_to(const k8s::PersistentVolumeClaim& claim) {
  return {.kind = "PersistentVolumeClaim",
          .api_version = "v1",
          .ns = claim.meta.ns,
          .name = claim.meta.name,
          .uid = claim.meta.uid,
          .resource_version = claim.meta.resource_version};
}

/// Whether the volume's directory is the operation's.
bool shows_directory(const k8s::PersistentVolume& volume, const Operation& operation,
                     const k8s::Store<k8s::Node>& nodes) {
  return volume.path == operation.path && shares_directory(volume, operation, nodes);
}

/// "Kind" of "Kind/name".
std::string source_kind(const k8s::PersistentVolumeClaim& claim) {
  return claim.data_source.substr(0, claim.data_source.find('/'));
}

}  // namespace

struct ClaimReconciler::Scene {
  std::shared_ptr<const k8s::PersistentVolumeClaim> claim;
  std::shared_ptr<const k8s::StorageClass> storage_class;
  std::shared_ptr<const k8s::Node> node;
  std::shared_ptr<const config::Config> config;
  std::optional<Operation> recorded;
  Attempt attempt;
  std::string volume_name;
  std::string node_name;  // selected node, "" = none
  std::string seen;       // everything a refusal or failure can depend on
  std::optional<TimePoint> waiting_since;
};

Action ClaimReconciler::step(const ClaimKey& key, std::optional<TimePoint> waiting_since) {
  Scene scene;
  scene.waiting_since = waiting_since;
  scene.volume_name = volume_name_of(key.uid);
  scene.claim = world_.claims.get(key.claim);
  if (scene.claim != nullptr) scene.node_name = selected_node(*scene.claim);
  const std::string claim_name = key.claim.to_string();
  const log::Scope fields(
      {{"volume", scene.volume_name}, {"claim", claim_name}, {"node", scene.node_name}});

  // An undo once begun is finished first, whatever has happened to the claim since.
  const auto undo = undo_.begun(scene.volume_name);
  if (!undo.ok()) return Action::retry();
  if (*undo) {
    const Action action = undo_.go_on(**undo);
    if (action != Action::done()) return action;
  }
  if (scene.claim == nullptr || scene.claim->meta.uid != key.uid) {
    return claim_gone(key, scene.volume_name);
  }
  auto recorded = world_.executor.recorded(helperpod::HelperAction::kCreate, scene.volume_name);
  if (!recorded.ok()) return api_failed(scene, recorded.error());
  scene.recorded = *std::move(recorded);
  if (!scene.recorded && undo_.lost(scene.volume_name) == nullptr) undo_.forget(scene.volume_name);
  if (const auto volume = world_.volumes.get({"", scene.volume_name})) {
    return volume_exists(scene, *volume);
  }
  scene.storage_class = world_.classes.get({"", scene.claim->class_name()});
  if (!should_provision(*scene.claim, scene.storage_class.get(), world_.provisioner_name)) {
    // Bound to another volume, or no node is selected any more.
    world_.operations.forget(Work::kProvision, scene.volume_name);
    if (scene.recorded) return undo_.step(*scene.recorded);
    if (undo_.lost(scene.volume_name) != nullptr) return take_back_lost(scene.volume_name);
    const bool waits_for_a_node =
        scene.claim->volume_name.empty() && asks_for(*scene.claim, world_.provisioner_name);
    // What was made is remembered until the cache shows it.
    const bool made = attempts_.get(scene.volume_name).volume_made.has_value();
    if (!waits_for_a_node && !made) attempts_.erase(scene.volume_name);
    return Action::done();
  }
  return provision(scene);
}

Action ClaimReconciler::claim_gone(const ClaimKey& key, const std::string& volume_name) {
  if (attempts_.get(volume_name).volume_made && world_.volumes.get({"", volume_name}) == nullptr) {
    // The directory is not free as long as there is a volume that the cache does not show.
    const auto volume = read_volume(world_, volume_name);
    if (!volume.ok()) {
      return volume.error().is(ErrorCode::kCancelled) ? Action::done() : Action::retry();
    }
    if (*volume) return Action::await_change(kRecheck);
  }
  attempts_.erase(volume_name);
  world_.operations.forget(Work::kProvision, volume_name);
  const auto recorded = world_.executor.recorded(helperpod::HelperAction::kCreate, volume_name);
  if (!recorded.ok()) return Action::retry();
  if (!*recorded) return take_back_lost(volume_name);
  log::debug("claim {} is gone, what was begun for it is taken back", key.uid);
  return undo_.step(**recorded);
}

/// A helper pod that had started was removed by somebody: what it may have made goes.
Action ClaimReconciler::take_back_lost(const std::string& volume_name) {
  if (const auto lost = undo_.lost(volume_name)) return undo_.take_back(*lost);
  undo_.forget(volume_name);
  return Action::done();
}

Action ClaimReconciler::volume_exists(const Scene& scene, const k8s::PersistentVolume& volume) {
  const std::string different = difference(volume, *scene.claim, world_.provisioner_name);
  if (!different.empty()) {
    const std::string text = "PersistentVolume " + scene.volume_name +
                             " exists but is not the one for this claim: " + different +
                             "; remove it if nothing uses it";
    count_failure(scene, "VolumeExists", text);
    report(scene, text);
    return Action::await_change(Attempts::kResync);
  }
  attempts_.erase(scene.volume_name);
  undo_.forget(scene.volume_name);
  world_.operations.forget(Work::kProvision, scene.volume_name);
  // A helper pod for another path or node can only be left from a cache that was behind: its
  // directory goes.
  if (scene.recorded && !shows_directory(volume, *scene.recorded, world_.nodes)) {
    return undo_.step(*scene.recorded);
  }
  const auto clean = clean_up(scene);
  if (!clean.ok()) return api_failed(scene, clean.error());
  return *clean ? Action::done() : Action::await_change(kRecheck);
}

Action ClaimReconciler::provision(Scene& scene) {
  scene.config = world_.config.current();
  scene.attempt = attempts_.get(scene.volume_name);
  if (!scene.node_name.empty()) scene.node = world_.nodes.get({"", scene.node_name});
  scene.seen = fmt::format("{}/{}/{}/{}", scene.claim->meta.resource_version,
                           scene.storage_class ? scene.storage_class->meta.resource_version : "",
                           scene.node ? seen_of(*scene.node) : "", scene.config->generation);

  if (scene.attempt.volume_made) return await_made_volume(scene);
  if (const auto left = attempts_.held(scene.attempt, scene.seen)) {
    return Action::await_change(*left);
  }
  if (scene.storage_class == nullptr) {
    return refuse(scene,
                  {.message = "storageClass \"" + scene.claim->class_name() + "\" not found"});
  }
  if (!scene.node_name.empty() && scene.node == nullptr) {
    const auto gone = node_is_gone(world_, scene.node_name);
    if (!gone.ok()) return api_failed(scene, gone.error());
    if (*gone) {
      return refuse(scene, {.message = "nodes \"" + scene.node_name + "\" not found",
                            .node_is_the_reason = true});
    }
    return Action::await_change(std::chrono::seconds(1));  // the cache will show it
  }
  auto shape = make_shape(*scene.claim, *scene.storage_class, scene.node.get(), *scene.config);
  if (const auto* refusal = std::get_if<Refusal>(&shape)) return refuse(scene, *refusal);

  if (scene.recorded && scene.recorded->node != scene.node_name) {
    // The scheduler has chosen another node since.
    scene.attempt.in_flight = 0;
    attempts_.set(scene.volume_name, scene.attempt);
    const Action action = undo_.step(*scene.recorded, true);
    if (action != Action::done()) return action;
    scene.recorded.reset();
  }
  if (!scene.recorded) {
    const auto lost = undo_.lost(scene.volume_name);
    if (lost != nullptr && lost->node != scene.node_name) {
      scene.attempt.in_flight = 0;
      attempts_.set(scene.volume_name, scene.attempt);
      const Action action = undo_.take_back(*lost);
      if (action != Action::done()) return action;
    }
  }
  const bool has_failed = scene.recorded && scene.attempt.number >= scene.recorded->attempt;
  if (has_failed && scene.claim->meta.deleting()) return undo_.step(*scene.recorded);
  if (scene.recorded) {
    return run(scene, *scene.recorded, std::get<VolumeShape>(shape));
  }
  if (scene.attempt.in_flight > 0) {
    const int number = std::exchange(scene.attempt.in_flight, 0);
    return attempt_failed(scene, number, "the helper pod was removed before it ended",
                          "HelperPodRemoved");
  }
  if (scene.claim->meta.deleting())
    return Action::done();  // nothing new for a claim on its way out
  auto planned =
      make_operation(*scene.claim, *scene.storage_class, scene.node.get(), *scene.config);
  if (const auto* refusal = std::get_if<Refusal>(&planned)) return refuse(scene, *refusal);
  Operation& operation = std::get<Operation>(planned);
  operation.attempt = scene.attempt.number + 1;
  if (const auto other = overlapping_volume(world_.volumes, world_.nodes, operation,
                                            world_.provisioner_name, scene.volume_name)) {
    // It may be on its way out: the volume of a claim that was made again under its name, say.
    return path_taken(scene, operation.path, other->path, other->meta.name);
  }
  if (const auto other = attempts_.made_there(operation)) {
    return path_taken(scene, operation.path, other->path, other->volume_name);
  }
  announce(scene);
  return run(scene, std::move(operation), std::get<VolumeShape>(shape));
}

Action ClaimReconciler::path_taken(const Scene& scene, const std::string& path,
                                   const std::string& other_path, const std::string& other_volume) {
  const std::string text =
      "path " + path + " overlaps the directory " + other_path + " of volume " + other_volume;
  count_failure(scene, "PathTaken", text);
  report(scene, text);
  return Action::await_change(kRecheck);
}

Action ClaimReconciler::run(Scene& scene, Operation operation, const VolumeShape& shape) {
  // Reaching this point with a failed attempt means that its hold is over: the next one is due.
  if (scene.attempt.number >= operation.attempt) {
    operation.attempt = scene.attempt.number + 1;
    announce(scene);
  }
  const bool under_way = scene.recorded && scene.recorded->attempt == operation.attempt;
  if (!under_way) {
    world_.operations.progressed(Work::kProvision, operation, Step::kQueued, {},
                                 scene.waiting_since);
  }
  const auto reached = world_.executor.advance(operation, under_way);
  if (!reached.ok()) return api_failed(scene, reached.error());
  const auto& progress = *reached;
  if (!progress) return Action::await_change(kRecheck);
  world_.operations.progressed(Work::kProvision, operation, step_of(*progress), progress->message);
  if (progress->started) undo_.remember(operation);
  switch (progress->state) {
    case Progress::State::kSucceeded:
      return create_volume(scene, operation, shape);
    case Progress::State::kFailed:
      scene.attempt.in_flight = 0;
      return attempt_failed(scene, operation.attempt, progress->message, progress->reason);
    case Progress::State::kRunning:
      break;
  }
  if (!progress->message.empty()) report(scene, progress->message);
  if (under_way) {
    scene.attempt = attempts_.get(scene.volume_name);
    scene.attempt.in_flight = operation.attempt;
    attempts_.set(scene.volume_name, scene.attempt);
  }
  return Action::await_change(kRecheck);
}

Action ClaimReconciler::attempt_failed(Scene& scene, int number, const std::string& message,
                                       std::string reason) {
  const Duration wait = attempts_.wait_after(number);
  scene.attempt.number = number;
  scene.attempt.hold_until = world_.clock.now() + wait;
  scene.attempt.seen = scene.seen;
  scene.attempt.reported.clear();
  attempts_.set(scene.volume_name, scene.attempt);
  count_failure(scene, std::move(reason), message);
  report(scene, message);
  return Action::await_change(wait);
}

Action ClaimReconciler::create_volume(Scene& scene, const Operation& operation,
                                      const VolumeShape& shape) {
  const auto manifest = make_volume(operation, shape, *scene.claim, *scene.storage_class);
  const auto created =
      world_.client.create(k8s::kPersistentVolumes, {}, manifest, k8s::Answer::kIdentity);
  if (!created.ok() && created.error().is(ErrorCode::kAlreadyExists)) {
    const auto volume = read_volume(world_, scene.volume_name);
    if (!volume.ok()) return api_failed(scene, volume.error());
    if (!*volume) return Action::retry();
    // Ours if the answer to an earlier request was lost.
    const bool made_by_us = difference(**volume, *scene.claim, world_.provisioner_name).empty() &&
                            shows_directory(**volume, operation, world_.nodes);
    if (!made_by_us) return volume_exists(scene, **volume);
  } else if (!created.ok()) {
    return api_failed(scene,
                      created.error().wrap("Error creating provisioned PV object for claim " +
                                           scene.claim->meta.key().to_string()));
  }
  const log::Scope fields({{"path", operation.path}, {"class", operation.storage_class}});
  log::info("volume provisioned");
  world_.events.event(reference_to(*scene.claim), k8s::EventType::kNormal, kProvisioningSucceeded,
                      "Successfully provisioned volume " + scene.volume_name);
  world_.operations.succeeded(Work::kProvision, scene.volume_name, operation.storage_class,
                              source_kind(*scene.claim));
  undo_.forget(scene.volume_name);
  Attempt made;
  made.volume_made = world_.clock.now();
  made.made_by = std::make_shared<const Operation>(operation);
  attempts_.set(scene.volume_name, made);
  const auto clean = clean_up(scene);
  if (!clean.ok()) return api_failed(scene, clean.error());
  return Action::await_change(kRecheck);
}

/// The volume is the record now of what was made.
Result<bool> ClaimReconciler::clean_up(const Scene& scene) {
  return world_.executor.clean_up(helperpod::HelperAction::kCreate, scene.volume_name,
                                  helperpod::Executor::When::kWhenQuiet);
}

/// The volume was created but the cache does not show it yet.
Action ClaimReconciler::await_made_volume(Scene& scene) {
  if (world_.clock.now() - *scene.attempt.volume_made < kMadeVolumeLimit) {
    return Action::await_change(kRecheck);
  }
  const auto volume = read_volume(world_, scene.volume_name);
  if (!volume.ok()) return api_failed(scene, volume.error());
  if (*volume) return Action::await_change(kRecheck);
  attempts_.erase(scene.volume_name);  // removed by somebody before we saw it: begin again
  return Action::retry();
}

Action ClaimReconciler::refuse(Scene& scene, const Refusal& refusal) {
  // What can be done is begun early; that it cannot is said when the control plane has asked.
  if (!asks_for(*scene.claim, world_.provisioner_name)) return Action::await_change(kRecheck);
  const bool another_node_may_serve =
      refusal.node_is_the_reason && scene.storage_class != nullptr &&
      k8s::find(scene.claim->meta.annotations, kSelectedNode) != nullptr;
  const TimePoint now = world_.clock.now();
  const bool reschedule_now = another_node_may_serve && now >= scene.attempt.reschedule_at;
  const Duration wait = !another_node_may_serve ? Duration(Attempts::kResync)
                        : reschedule_now        ? Duration::zero()
                                                : scene.attempt.reschedule_at - now;
  scene.attempt.hold_until = now + wait;
  scene.attempt.seen = scene.seen;
  attempts_.set(scene.volume_name, scene.attempt);
  count_failure(scene, refusal.node_is_the_reason ? "NodeUnusable" : "Refused", refusal.message);
  if (reschedule_now) return reschedule(scene, refusal.message);
  report(scene, refusal.message);
  return Action::await_change(wait);
}

/// Takes the selected node off the claim, so that the scheduler chooses again; each time a little
/// later, since it may choose the same node.
Action ClaimReconciler::reschedule(Scene& scene, const std::string& why) {
  const nlohmann::json patch{{"metadata",
                              {{"uid", scene.claim->meta.uid},
                               {"resourceVersion", scene.claim->meta.resource_version},
                               {"annotations", {{kSelectedNode, nullptr}}}}}};
  const auto patched =
      world_.client.patch(k8s::kPersistentVolumeClaims, scene.claim->meta.key(),
                          k8s::PatchType::kMerge, patch, {}, k8s::Answer::kIdentity);
  if (!patched.ok()) {
    // One message for both, or each attempt would say first the one and then the other again.
    const Error error = patched.error().wrap(why + "; remove the selected node from the claim");
    if (!worth_an_event(error)) report(scene, why);
    return api_failed(scene, error);
  }
  report(scene, why);
  scene.attempt = attempts_.get(scene.volume_name);
  ++scene.attempt.reschedules;
  scene.attempt.reschedule_at =
      world_.clock.now() + attempts_.wait_after(scene.attempt.reschedules);
  attempts_.set(scene.volume_name, scene.attempt);
  log::info("the selected node cannot serve: the scheduler is asked for another one");
  return Action::done();
}

Action ClaimReconciler::api_failed(const Scene& scene, const Error& error) {
  if (error.is(ErrorCode::kCancelled)) return Action::done();
  count_failure(scene, reason_of(error), error.message);
  if (worth_an_event(error)) {
    report(scene, error.message);
  } else {
    log::warn("tried again soon: {}", error.message);
  }
  return Action::retry();
}

/// Once for each attempt.
void ClaimReconciler::announce(const Scene& scene) {
  world_.events.event(reference_to(*scene.claim), k8s::EventType::kNormal, kProvisioning,
                      "External provisioner is provisioning volume for claim \"" +
                          scene.claim->meta.key().to_string() + "\"");
}

void ClaimReconciler::count_failure(const Scene& scene, std::string reason,
                                    const std::string& message) {
  world_.operations.failed({.work = Work::kProvision,
                            .volume = scene.volume_name,
                            .claim = scene.claim->meta.key(),
                            .node = scene.node_name,
                            .storage_class = scene.claim->class_name(),
                            .source = source_kind(*scene.claim),
                            .reason = std::move(reason),
                            .message = message});
}

/// One Warning event and log line per distinct message and attempt.
void ClaimReconciler::report(const Scene& scene, const std::string& message) {
  if (!attempts_.worth_saying(scene.volume_name, message)) return;
  const std::string text = "failed to provision volume with StorageClass \"" +
                           scene.claim->class_name() + "\": " + message;
  world_.events.event(reference_to(*scene.claim), k8s::EventType::kWarning, kProvisioningFailed,
                      text);
  log::warn("{}", first_line(text));
}

}  // namespace lpp::provisioner
