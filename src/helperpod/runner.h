// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "helperpod/manifest.h"
#include "helperpod/pod_logs.h"
#include "helperpod/settled_pods.h"
#include "helperpod/template.h"
#include "k8s/api_client.h"
#include "k8s/informer.h"
#include "operation/executor.h"
#include "operation/node_load.h"
#include "operation/owner_slot.h"
#include "operation/path_ledger.h"

namespace lpp::helperpod {

class Sweeper;

/// The executor that does each operation with a short-lived helper pod. The pod is the durable
/// record: it carries the operation in its annotations, so that the first pod list after a restart
/// is enough to go on. It stays until forget(); what was forgotten for a quiet moment stays until
/// its `Sweeper` finds one. A pod is never removed in a way that leaves its kubelet unasked: what
/// is not recorded any more does nothing any more. Thread-safe; everything passed in must outlive
/// it. observe() must see every change of the pods selected by label_selector(), after it is in the
/// store.
class HelperPodRunner final : public operation::Executor {
 public:
  using Operation = operation::Operation;

  /// What may change while we run; read for each pod made, and whenever a time limit is asked for.
  struct Current {
    std::shared_ptr<const Template> pod_template{};
    std::chrono::seconds cmd_timeout{120};
    std::string setup_command{};
    std::string teardown_command{};
    std::string resize_command{};
    std::optional<std::string> cluster{};
  };
  /// Constant settings; deadline, commands and cluster are filled from Current for each pod.
  using Settings = ManifestSettings;

  HelperPodRunner(k8s::ApiClient& client, Clock& clock, const k8s::Store<k8s::Pod>& pods,
                  operation::PathLedger& ledger, Settings settings,
                  std::function<Current()> current);
  ~HelperPodRunner() override;

  /// Wakes the owner, if there is one by now.
  void observe(const k8s::Change<k8s::Pod>& change);

  void begin(operation::Owner owner) override;
  void end(Duration limit) override;
  std::vector<operation::Recorded> recorded(std::string_view volume_name) override;
  operation::Admission admit(const Operation& operation) override;
  Result<Start> start(const Operation& operation) override;
  Result<void> cancel(const operation::Id& id) override;
  Result<bool> forget(const operation::Id& id, When when) override;
  operation::Progress lost(const Operation& operation) const override;
  Result<bool> can_resize(const Operation& operation) override;
  void node_changed(std::string_view node) override;

  /// Removes the oldest pod that was left for a quiet moment, if there is one. False if it could
  /// not be removed; its owner is woken then.
  bool remove_settled();
  const SettledPods& settled() const { return settled_; }

  /// Helper pods known, for metrics and tests.
  std::size_t size() const;

 private:
  /// A helper pod that exists or was just created (then it may not be in the store yet).
  struct Known {
    k8s::ObjectKey key{};
    std::string uid{};
    std::shared_ptr<const Operation> operation{};
    TimePoint first_seen{};
    bool removing = false;        // deleted by us, or seen with a deletionTimestamp
    TimePoint removing_since{};   // when that was first known
    bool settled = false;         // left for a quiet moment
    bool removal_failed = false;  // was so, and could not be removed: not again
    bool told = false;            // its output is in the log
    bool ended = false;           // was seen so
    bool started = false;         // by the API server's word, though the cache may not show it
    /// Since when a make is not wanted: it is let end.
    std::optional<TimePoint> unwanted_since{};

    /// As long as no cache shows it.
    TimePoint unseen_since() const { return removing ? removing_since : first_seen; }
  };

  /// One whose creation had no answer: whether it exists is not known.
  struct Unanswered {
    k8s::ObjectKey key{};
    std::shared_ptr<const Operation> operation{};
  };

  static std::chrono::seconds deadline_of(operation::Kind kind, std::chrono::seconds cmd_timeout);
  std::vector<operation::Recorded> unanswered(std::string_view volume_name);
  void note_unanswered(const k8s::ObjectKey& key, const Operation& operation);
  void forget_unanswered(const operation::Id& id);
  Result<Start> resolve_name_taken(const k8s::ObjectKey& key, const Operation& operation);
  std::optional<operation::Progress> progress_of(const Known& known);
  bool is_gone_unseen(const Known& known);
  operation::Progress progress_ending(const Known& known) const;
  operation::Progress progress_let_end(const Known& known) const;
  void note_lateness(const Known& known, const k8s::Pod& pod, operation::Progress& progress) const;
  /// False while what the pod has said is still to be read.
  bool complete_failure(const Known& known, const k8s::Pod& pod, operation::Progress& progress);
  void tell_output(const Known& known, std::string_view output);
  Result<void> remove(const Known& known, std::optional<int> grace_period_seconds,
                      const std::string& version = {});
  Result<void> cancel_make(const Known& known);
  void let_end(const Known& known, bool started);
  /// In which a kubelet that is there ends a make at its deadline, or tells of it.
  Duration patience() const;
  /// Nobody has told until after its deadline that it has started.
  bool is_overdue(const Known& known) const;
  void mark_removing(const Known& known);
  void note_removing(Known& known) const;
  bool has_ended(const Known& known) const;

  /// Leaves the pod for a quiet moment; false if it has to go now.
  bool settle(const Known& known);
  /// Somebody waits again until it is gone.
  void unsettle(const Known& known);
  void wake(const Operation& operation) const;
  void wake(const operation::NodeLoad::Waiting& operations) const;

  std::optional<Known> find(const std::string& uid) const;
  std::vector<Known> known(std::string_view volume_name) const;
  std::vector<Known> known(const operation::Id& id) const;
  void remember(Known known);
  void forget_pod(std::string_view uid);

  k8s::ApiClient& client_;
  Clock& clock_;
  const k8s::Store<k8s::Pod>& pods_;
  operation::PathLedger& ledger_;
  const Settings settings_;
  const std::function<Current()> current_;

  operation::OwnerSlot owner_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Known> by_uid_ LPP_GUARDED_BY(mutex_);
  /// UIDs by volume name.
  std::unordered_map<std::string, std::vector<std::string>> by_volume_ LPP_GUARDED_BY(mutex_);
  /// By volume name.
  std::map<std::string, std::vector<Unanswered>, std::less<>> unanswered_ LPP_GUARDED_BY(mutex_);
  /// Helper pods are critical: a kubelet ends applications to make room for too many of them.
  operation::NodeLoad load_;
  PodLogs logs_;
  SettledPods settled_;
  std::unique_ptr<Sweeper> sweeper_;
};

}  // namespace lpp::helperpod
