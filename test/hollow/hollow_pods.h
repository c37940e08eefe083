// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "hollow/hollow_options.h"
#include "k8s/api_client.h"
#include "k8s/reflector.h"

namespace lpp::hollow {

/// Plays the kubelet for the pods bound to our nodes. A reflector's thread sees the pods and plans
/// what is to be written and when; workers write it. Thread-safe after start().
class Pods final : private k8s::ReflectorSink {
 public:
  struct Stats {
    std::atomic<std::uint64_t> seen = 0;
    std::atomic<std::uint64_t> ended = 0;
    std::atomic<std::uint64_t> failed = 0;
    std::atomic<std::uint64_t> removed = 0;
    std::atomic<std::uint64_t> errors = 0;
  };

  /// The client and the clock must outlive it.
  Pods(k8s::ApiClient& client, Clock& clock, const Options& options);
  ~Pods() override;

  void start();
  void stop();
  bool has_synced() const { return synced_; }
  const Stats& stats() const { return stats_; }

 private:
  struct PodInfo {
    k8s::ObjectKey key{};
    std::string uid{};
    bool ends = false;                                              // restartPolicy Never
    std::vector<std::pair<std::string, std::string>> containers{};  // name, image
  };
  enum class Step { kRun, kEnd, kRemove };
  struct Task {
    Step step;
    PodInfo pod;
  };
  enum class Seen { kStarted, kOver, kRemoving };

  void list_begin() override {}
  void list_item(k8s::Value object) override { see(k8s::to_json(object)); }
  void list_end() override { synced_ = true; }
  void applied(k8s::Value object) override { see(k8s::to_json(object)); }
  void deleted(k8s::Value object) override;

  /// Exceptions of malformed objects end here: they are counted and skipped.
  void see(const nlohmann::json& object);
  void plan(const nlohmann::json& object);
  void add(Task task, Duration delay);
  void work();
  /// What is to be done next, and after how long, if anything.
  Result<void> perform(const Task& task);
  Result<void> write_status(const PodInfo& pod, const char* phase);
  bool is_removing(const std::string& uid);

  k8s::ApiClient& client_;
  Clock& clock_;
  const Options& options_;
  const std::set<std::string> nodes_;
  Stats stats_;
  std::atomic<bool> synced_ = false;
  std::atomic<std::uint64_t> endings_ = 0;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  std::multimap<TimePoint, Task> tasks_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Seen> seen_ LPP_GUARDED_BY(mutex_);  // by UID

  k8s::Reflector reflector_;
  std::vector<std::jthread> threads_;
};

}  // namespace lpp::hollow
