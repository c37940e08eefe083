#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/path_index.h"
#include "base/sync.h"
#include "helperpod/executor.h"
#include "helperpod/manifest.h"
#include "helperpod/settled_pods.h"
#include "helperpod/template.h"
#include "k8s/api_client.h"
#include "k8s/informer.h"

namespace lpp::helperpod {

/// The executor that does each operation with a short-lived helper pod. The pod is the durable
/// record: it carries the operation in its annotations, so that the first pod list after a restart
/// is enough to go on. It stays until clean_up() or until the next attempt replaces it; one that
/// clean_up() left for a quiet moment until somebody who knows when that is calls remove_settled().
/// Thread-safe; everything passed in must outlive it. observe() must see every change of the pods
/// selected by label_selector(), after it is in the store and before anybody is woken by it.
class HelperPodRunner final : public Executor {
 public:
  /// What may change while we run; read once per pod made.
  struct Current {
    std::shared_ptr<const Template> pod_template{};
    std::chrono::seconds cmd_timeout{120};
    std::string setup_command{};
    std::string teardown_command{};
  };
  /// Constant settings; its deadline and command members are filled from Current for each pod.
  using Settings = ManifestSettings;

  HelperPodRunner(k8s::ApiClient& client, Clock& clock, const k8s::Store<k8s::Pod>& pods,
                  Settings settings, std::function<Current()> current);

  /// Returns the pod's operation, so that the caller knows whom to wake; nullptr when that is
  /// nobody, or not known because the pod is unreadable.
  std::shared_ptr<const Operation> observe(const k8s::Change<k8s::Pod>& change);

  Result<std::optional<Operation>> recorded(HelperAction action,
                                            std::string_view volume_name) override;
  Result<std::optional<Progress>> advance(const Operation& operation, bool is_recorded) override;
  Result<bool> clean_up(HelperAction action, std::string_view volume_name, When when) override;

  /// Removes the oldest pod that was left for a quiet moment, if there is one. If it could not be
  /// removed: the operation that it is of, so that the caller knows whom to wake.
  std::shared_ptr<const Operation> remove_settled();
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
    bool removing = false;          // deleted by us, or seen with a deletionTimestamp
    TimePoint removing_since{};     // when that was first known
    bool settled = false;           // left for a quiet moment
    bool removal_failed = false;    // was so, and could not be removed: not again
    std::string failure_message{};  // kept, so that a log is fetched once
  };

  Result<Progress> start(const Operation& operation);
  Result<Progress> create(const std::shared_ptr<const Operation>& operation);
  /// Makes the operation's path known before its pod is; kConflict when another volume's operation
  /// on the same node overlaps it.
  Result<void> reserve(const std::shared_ptr<const Operation>& operation);
  Result<Progress> resolve_name_taken(const k8s::ObjectKey& key, const Operation& operation);
  Result<Progress> progress_of(const Known& known);
  Result<Progress> progress_unseen(const Known& known);
  Result<void> remove(const Known& known, std::optional<int> grace_period_seconds);
  Result<void> remove_unstarted(const Known& known, const std::string& resource_version);
  void mark_removing(const Known& known);
  /// What is said of pods that have to go before an operation can begin.
  Progress waiting_for(const std::vector<Known>& others) const;
  void note_removing(Known& known) const;
  bool has_ended(const Known& known) const;
  std::string failure_text(const Known& known, const k8s::Pod& pod);

  /// Leaves the pod for a quiet moment; false if it has to go now.
  bool settle(const Known& known);

  std::optional<Known> find(const std::string& uid) const;
  std::vector<Known> known(HelperAction action, std::string_view volume_name) const;
  void remember(Known known);
  void forget(std::string_view uid);

  k8s::ApiClient& client_;
  Clock& clock_;
  const k8s::Store<k8s::Pod>& pods_;
  const Settings settings_;
  const std::function<Current()> current_;

  mutable Mutex mutex_;
  std::unordered_map<std::string, Known> by_uid_ LPP_GUARDED_BY(mutex_);
  /// "create/<volume>" or "delete/<volume>" to UIDs; more than one while an attempt
  /// replaces another, and after a change of template.
  std::unordered_map<std::string, std::vector<std::string>> by_operation_ LPP_GUARDED_BY(mutex_);
  /// Operations of by_uid_ that may be at work in their directory: all but settled deletions (a
  /// directory that was removed is in nobody's way; one that was made is its volume's).
  PathIndex<Operation> at_work_ LPP_GUARDED_BY(mutex_);
  /// Operations whose pod is being created.
  PathIndex<Operation> reserved_ LPP_GUARDED_BY(mutex_);
  SettledPods settled_;
};

}  // namespace lpp::helperpod
