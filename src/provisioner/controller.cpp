// SPDX-License-Identifier: Apache-2.0
#include "provisioner/controller.h"

#include <exception>
#include <string>

#include "base/log.h"
#include "base/on_behalf_of.h"
#include "base/strings.h"
#include "k8s/work_queue.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/class_parameters.h"
#include "provisioner/crew.h"
#include "provisioner/names.h"
#include "provisioner/node_lost.h"
#include "provisioner/queued.h"
#include "provisioner/resize_reconciler.h"
#include "provisioner/told_work.h"
#include "provisioner/volume_reconciler.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

namespace {

constexpr k8s::BackoffPolicy kBackoff{.base = std::chrono::seconds(1),
                                      .cap = std::chrono::seconds(1000),
                                      .jitter = 0.1,
                                      .least = std::chrono::seconds(1)};

/// One namespace may have --worker-threads steps in work, however long they take: so many more can
/// be for others.
constexpr std::size_t kWorkersForOthers = 2;

/// Nothing else is to be done when no key has been handed out for so long.
constexpr std::chrono::milliseconds kQuietAfter{200};
/// What is left for a quiet moment may keep the lease so much longer.
constexpr std::chrono::seconds kRestLimit{2};

bool is_quiet(const k8s::WorkQueueState& queue) {
  return queue.ready == 0 && queue.in_work == 0 && queue.since_last_get >= kQuietAfter;
}

/// What a node tells of others, and exists, is looked at so much later, and so once in that time.
constexpr std::chrono::seconds kForeignWaits{1};

/// Adds the keys of all objects that are `wanted`.
template <typename Queue, typename T, typename Wanted>
void add_where(Queue& queue, const k8s::Store<T>& store, const Wanted& wanted) {
  for (const auto& object : store.list()) {
    if (wanted(*object)) queue.add(key_of(*object));
  }
}

/// Takes keys and runs one step each until the queue is shut down.
template <typename Queue, typename Step>
void work(Crew& crew, Queue& queue, const Step& step) {
  while (const auto key = queue.get()) {
    const Crew::Busy busy(crew);
    const OnBehalfOf tenant(key->line);
    Action action = Action::retry();
    try {
      action = step(key->key, queue.waiting_since(*key));
    } catch (const std::exception& exception) {
      // A defect of ours must not take the other volumes down with it.
      log::error("step failed unexpectedly: {}", exception.what());
    }
    switch (action.kind) {
      case Action::Kind::kDone: queue.forget(*key); break;
      case Action::Kind::kAwaitChange:
        queue.forget(*key);
        queue.add_after(*key, action.after);
        break;
      case Action::Kind::kRetry:
        queue.add_rate_limited(*key);
        if (action.after > Duration::zero()) queue.add_after(*key, action.after);
        break;
    }
    queue.done(*key);
  }
}

}  // namespace

struct Controller::Term {
  Term(World& world, const ControllerOptions& options, k8s::WorkQueueStats& claim_stats,
       k8s::WorkQueueStats& volume_stats)
      : names(world.names),
        known_claims(world.claims),
        known_volumes(world.volumes),
        known_nodes(world.nodes),
        executor(world.executor),
        claims(world.clock, kBackoff, &claim_stats, most_of_namespace(options)),
        volumes(world.clock, kBackoff, &volume_stats, most_of_namespace(options)),
        claim_memories(world.clock, kBackoff, options.provisioning_retry_count),
        volume_memories(world.clock, kBackoff, options.deletion_retry_count),
        resize_memories(world.clock, kBackoff, options.provisioning_retry_count),
        claim_reconciler(world, claim_memories),
        volume_reconciler(world, volume_memories),
        resize_reconciler(world, resize_memories),
        claim_workers("work-claim-", most_of_namespace(options) + kWorkersForOthers,
                      [this] { work_at_claims(); }),
        volume_workers("work-vol-", most_of_namespace(options) + kWorkersForOthers,
                       [this] { work_at_volumes(); }) {}
  ~Term() { stop(); }
  Term(const Term&) = delete;
  Term& operator=(const Term&) = delete;

  static std::size_t most_of_namespace(const ControllerOptions& options) {
    return static_cast<std::size_t>(options.worker_threads);
  }

  void start() {
    claim_workers.start();
    volume_workers.start();
    executor.begin(
        {.wake = [this](const operation::Operation& operation) { wake(operation); },
         .wake_told = [this](const operation::Operation& told) { wake_told(told); },
         .is_quiet = [this] { return is_quiet(claims.state()) && is_quiet(volumes.state()); },
         .wake_node = [this](const std::string& node) { wake_node(node); }});
  }

  /// The steps end before the executor does: they begin work with it.
  void stop() {
    if (std::exchange(stopped, true)) return;
    claims.shutdown();
    volumes.shutdown();
    claim_workers.join();
    volume_workers.join();
    executor.end(kRestLimit);
  }

  void work_at_claims() {
    work(claim_workers, claims, [this](const ClaimKey& key, TimePoint waiting_since) {
      const Action action = claim_reconciler.step(key, waiting_since);
      return sooner(action, resize_reconciler.step(key));
    });
  }

  void work_at_volumes() {
    work(volume_workers, volumes, [this](const std::string& name, TimePoint waiting_since) {
      return volume_reconciler.step(name, waiting_since);
    });
  }

  /// What has been begun is finished before something new is begun.
  void wake(const operation::Operation& operation) {
    wake_successor(operation);
    if (operation.kind == operation::Kind::kRemove) {
      volumes.add_urgent({operation.volume_name, operation.claim.ns});
    } else {
      claims.add_urgent(key_of(ClaimKey{operation.claim, operation.owner_uid}));
      const auto volume = known_volumes.get({"", operation.volume_name});
      if (operation.kind == operation::Kind::kResize &&
          (volume == nullptr || volume->claim_uid != operation.owner_uid)) {
        // No claim's step knows of it any more: the volume's ends it, also one that is gone.
        volumes.add({operation.volume_name, operation.claim.ns});
      } else if (volume != nullptr && volume->phase == "Released") {
        volumes.add(key_of(*volume));  // a removal waits until nothing is made any more
      }
    }
  }

  /// What is at home there comes as if it had been ordered. Else the node may name any claim and
  /// volume, and any number of them that nobody knows: these have to wait in a line of the node's.
  void wake_told(const operation::Operation& told) {
    if (is_all_at_home(told, known_claims, known_volumes, known_nodes)) return wake(told);
    const auto claim = known_claims.get(told.claim);
    const bool is_its_claim = claim != nullptr && claim->meta.uid == told.owner_uid;
    // Also one that waits for the directory of the one before.
    if (claim != nullptr) claims.add_after(key_of(*claim), kForeignWaits);
    if (told.kind != operation::Kind::kRemove && !is_its_claim) {
      claims.add({{told.claim, told.owner_uid}, line_of_node(told.node)});
    }
    const auto volume = known_volumes.get({"", told.volume_name});
    if (volume != nullptr) {
      volumes.add_after(key_of(*volume), kForeignWaits);
    } else {
      volumes.add({told.volume_name, line_of_node(told.node)});
    }
  }

  void wake_node(const std::string& node) {
    add_where(claims, known_claims, [&](const auto& claim) {
      const bool waits = claim.volume_name.empty() && selected_node(claim) == node;
      return wants_resize(claim) || (waits && may_ask_for(claim, names));
    });
    add_where(volumes, known_volumes, [&](const auto& volume) {
      const std::string* const on = k8s::find(volume.meta.annotations, kVolumeSelectedNode);
      const bool is_elsewhere = on != nullptr && *on != node;
      return volume.phase == "Released" && !is_elsewhere;
    });
  }

  /// A claim made again under its name may wait for the directory of the one before.
  void wake_successor(const operation::Operation& operation) {
    const auto claim = known_claims.get(operation.claim);
    const bool may_wait = claim != nullptr && claim->volume_name.empty() &&
                          claim->meta.uid != operation.owner_uid && may_ask_for(*claim, names);
    if (may_wait) claims.add(key_of(*claim));
  }

  const ServedNames& names;
  const k8s::Store<k8s::PersistentVolumeClaim>& known_claims;
  const k8s::Store<k8s::PersistentVolume>& known_volumes;
  const k8s::Store<k8s::Node>& known_nodes;
  operation::Executor& executor;
  bool stopped = false;

  LinesOf<ClaimKey> claims;
  LinesOf<std::string> volumes;
  Memories claim_memories;
  Memories volume_memories;
  Memories resize_memories;
  ClaimReconciler claim_reconciler;
  VolumeReconciler volume_reconciler;
  ResizeReconciler resize_reconciler;
  // The last ones: they are at work with all of the above.
  Crew claim_workers;
  Crew volume_workers;
};

Controller::Controller(World& world, Informers informers, ControllerOptions options)
    : world_(world), informers_(informers), options_(options) {
  informers_.claims.add_handler([this](const auto& change) { on_claim(change); });
  informers_.volumes.add_handler([this](const auto& change) { on_volume(change); });
  informers_.classes.add_handler([this](const auto& change) { on_class(change); });
  informers_.nodes.add_handler([this](const auto& change) { on_node(change); });
}

Controller::~Controller() { stop_working(); }

void Controller::start_working() {
  // The caches are newer than what an earlier term decided: they show it, or a leader undid it.
  world_.ledger.release_all();
  auto term = std::make_shared<Term>(world_, options_, claim_stats_, volume_stats_);
  term->start();
  {
    MutexLock lock(mutex_);
    term_ = term;
  }
  // From here on changes reach the queues; what was there before is enqueued now.
  add_where(term->claims, world_.claims, [this](const auto& claim) {
    const bool is_half_bound =
        !claim.volume_name.empty() && claim.phase != "Bound" && may_ask_for(claim, world_.names);
    return may_want_volume(claim) || may_want_more(claim) || is_half_bound;
  });
  for (const auto& volume : world_.volumes.list()) term->volumes.add(key_of(*volume));
}

void Controller::stop_working() {
  std::shared_ptr<Term> term;
  {
    MutexLock lock(mutex_);
    term = std::move(term_);
    term_.reset();
  }
  if (!term) return;
  term->stop();
  world_.figures.forget_all();
  world_.space.forget_all();
}

void Controller::config_changed() {
  const auto term = this->term();
  if (!term) return;
  add_where(term->claims, world_.claims,
            [this](const auto& claim) { return may_want_volume(claim) || may_want_more(claim); });
  add_where(term->volumes, world_.volumes,
            [](const auto& volume) { return volume.phase == "Released"; });
}

std::shared_ptr<Controller::Term> Controller::term() const {
  MutexLock lock(mutex_);
  return term_;
}

bool Controller::may_want_volume(const k8s::PersistentVolumeClaim& claim) const {
  return claim.volume_name.empty() && may_ask_for(claim, world_.names);
}

bool Controller::may_want_more(const k8s::PersistentVolumeClaim& claim) const {
  if (!wants_resize(claim)) return false;
  const auto volume = world_.volumes.get({"", claim.volume_name});
  return volume != nullptr && is_ours(*volume, world_.names);
}

bool Controller::may_be_lost(const k8s::PersistentVolume& volume) const {
  if (volume.phase != "Bound" || !is_ours(volume, world_.names)) return false;
  if (has_node_lost_mark(volume)) return true;
  const auto storage_class = world_.classes.get({"", volume.storage_class_name});
  if (storage_class == nullptr) return false;
  const auto wanted = on_node_lost_of(*storage_class);
  const auto* const on_node_lost = std::get_if<OnNodeLost>(&wanted);
  return on_node_lost != nullptr && on_node_lost->release;
}

std::optional<k8s::WorkQueueState> Controller::claim_queue() const {
  const auto term = this->term();
  return term ? std::optional(term->claims.state()) : std::nullopt;
}

std::optional<k8s::WorkQueueState> Controller::volume_queue() const {
  const auto term = this->term();
  return term ? std::optional(term->volumes.state()) : std::nullopt;
}

void Controller::on_claim(const k8s::Change<k8s::PersistentVolumeClaim>& change) {
  const auto term = this->term();
  if (!term) return;
  const auto& [before, after] = change;
  if (before && (!after || before->meta.uid != after->meta.uid)) {
    term->claims.add(key_of(*before));
    // Anybody may name any volume in his claim: it does not get into that one's line by this.
    const auto volume = world_.volumes.get({"", before->volume_name});
    if (volume != nullptr) term->volumes.add(key_of(*volume));
  }
  // One that has what it asked for may have left a record.
  if (after && (may_want_more(*after) || (before && may_want_more(*before)))) {
    term->claims.add(key_of(*after));
  }
  if (!after || !may_ask_for(*after, world_.names)) return;
  // A claim that stays bound needs nothing; one that has just been bound may have left a record.
  const bool stays_bound = !after->volume_name.empty() && before && !before->volume_name.empty() &&
                           after->phase == before->phase;
  if (!stays_bound) term->claims.add(key_of(*after));
}

void Controller::on_volume(const k8s::Change<k8s::PersistentVolume>& change) {
  const auto term = this->term();
  if (!term) return;
  const k8s::PersistentVolume& volume = change.object();
  term->volumes.add(key_of(volume));
  // A claim that was made again under its name may wait for the directory of the one before.
  if (!change.after) {
    if (const auto claim = world_.claims.get(volume.claim)) on_claim({nullptr, claim});
  }
  if (!change.after || volume.phase != "Bound") term->resize_memories.erase(volume.meta.name);
  const auto bound = change.after ? world_.claims.get(volume.claim) : nullptr;
  if (bound && bound->volume_name == volume.meta.name && may_want_more(*bound)) {
    term->claims.add(key_of(*bound));
  }
  // The claim's step is interested in the volume's coming and going, and before it is bound in its
  // changes: a write of the binding may have met them.
  const bool is_its_name = volume.meta.name == volume_name_of(volume.claim_uid);
  const bool is_to_be_bound = volume.phase == "Pending" || volume.phase == "Available";
  if ((!change.before || !change.after || is_to_be_bound) && is_its_name) {
    // Anybody may write a volume with the UID of a claim of another name.
    const auto claim = world_.claims.get(volume.claim);
    if (claim == nullptr || claim->meta.uid == volume.claim_uid) {
      term->claims.add(key_of(ClaimKey{volume.claim, volume.claim_uid}));
    }
  }
}

void Controller::on_class(const k8s::Change<k8s::StorageClass>& change) {
  const auto term = this->term();
  if (!term) return;
  const std::string& name = change.object().meta.name;
  add_where(term->claims, world_.claims, [&](const auto& claim) {
    return may_want_volume(claim) && claim.class_name() == name;
  });
  add_where(term->volumes, world_.volumes, [&](const auto& volume) {
    return volume.storage_class_name == name && may_be_lost(volume);
  });
}

void Controller::on_node(const k8s::Change<k8s::Node>& change) {
  // Nodes change all the time (heartbeats); only their existence and their labels matter.
  if (change.before && change.after && change.before->meta.uid == change.after->meta.uid &&
      change.before->meta.labels == change.after->meta.labels) {
    return;
  }
  const std::string& name = change.object().meta.name;
  if (!change.after) world_.space.forget(name);
  const auto term = this->term();
  if (!term) return;
  add_where(term->claims, world_.claims, [&](const auto& claim) {
    return claim.volume_name.empty() && selected_node(claim) == name;
  });
  add_where(term->volumes, world_.volumes, [&](const auto& volume) {
    const bool is_named = (change.before && concerns(*change.before, volume)) ||
                          (change.after && concerns(*change.after, volume));
    return volume.phase == "Released" || (is_named && may_be_lost(volume));
  });
  world_.executor.node_changed(name);
}

void Controller::event_dropped(const k8s::ObjectReference& about) {
  const auto term = this->term();
  if (!term) return;
  if (about.kind == "PersistentVolume") {
    term->volume_memories.unsay(about.name);
  } else if (about.kind == "PersistentVolumeClaim") {
    term->claim_memories.unsay(volume_name_of(about.uid));
    const auto claim = world_.claims.get({about.ns, about.name});
    const auto volume = claim ? world_.volumes.get({"", claim->volume_name}) : nullptr;
    if (volume != nullptr && volume->claim_uid == about.uid) {
      term->resize_memories.unsay(volume->meta.name);
    }
  } else if (about.kind.empty()) {  // any of them
    term->volume_memories.unsay_all();
    term->claim_memories.unsay_all();
    term->resize_memories.unsay_all();
  }
}

}  // namespace lpp::provisioner
