// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "bench/arguments.h"
#include "helperpod/template.h"
#include "k8s/api_client.h"
#include "k8s/reflector.h"
#include "operation/operation.h"

namespace lpp::bench {

/// What the floor asks for.
enum class FloorWork {
  kPods,     // helper pods and volumes
  kVolumes,  // volumes only, one call for each that is made and one for each that is removed
  kBound,  // volumes under a finalizer, and what binds them: this provisioner's writes with agents
};

struct FloorOptions {
  FloorWork work = FloorWork::kPods;
  std::string helper_ns = "local-path-storage";
  std::string storage_class = "local-path";
  std::string provisioner = "rancher.io/local-path";
  std::string image = "rancher/library-busybox:1.32.1";
  std::string base = "/opt/local-path-provisioner";
  /// Helper pods as the daemon makes them, from this template: the scripts of the namespace's
  /// ConfigMap really run. Without it bare pods that do nothing.
  std::optional<helperpod::Template> pod_template{};
  std::size_t connections = 32;  // calls at once
};

std::set<std::string> floor_flags();
Result<FloorOptions> floor_options(const Arguments& arguments);

/// The least that a provisioner with helper pods can ask of the API server: for a claim create the
/// pod, create the volume, delete the pod; for a released volume create the pod, delete the
/// volume, take its finalizer off, delete the pod; or, without pods, what FloorWork says. It waits
/// for watches, checks nothing, repeats nothing and remembers nothing: a measure for provisioners,
/// not one.
class Floor {
 public:
  /// The client and the clock must outlive it.
  Floor(k8s::ApiClient& client, Clock& clock, FloorOptions options);
  ~Floor();

  void start();
  bool has_synced() const;

 private:
  class Sink;
  using Call = std::function<Result<void>()>;

  void claim_seen(const nlohmann::json& claim);
  void volume_seen(const nlohmann::json& volume);
  void pod_seen(const nlohmann::json& pod);

  /// Once for each text.
  bool first_time(const std::string& text);
  void add(Call call);
  void work(const std::stop_token& stop);
  Result<void> create_pod(operation::Kind action, const std::string& volume,
                          const std::string& node);
  Result<nlohmann::json> pod_object(operation::Kind action, const std::string& volume,
                                    const std::string& node) const;
  Result<void> create_volume(const nlohmann::json& claim, const std::string& volume,
                             const std::string& node);
  Result<void> bind(const nlohmann::json& claim, const std::string& volume);
  Result<void> remove_volume(const std::string& volume);
  Result<void> remove_pod(const std::string& name);
  std::string path_of(const std::string& volume) const { return options_.base + "/" + volume; }

  k8s::ApiClient& client_;
  const FloorOptions options_;
  std::atomic<std::size_t> synced_ = 0;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  std::deque<Call> calls_ LPP_GUARDED_BY(mutex_);
  std::set<std::string> done_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::shared_ptr<const nlohmann::json>> claims_
      LPP_GUARDED_BY(mutex_);  // by the name of the volume to be

  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<k8s::Reflector>> reflectors_;
  std::vector<std::jthread> threads_;
};

}  // namespace lpp::bench
