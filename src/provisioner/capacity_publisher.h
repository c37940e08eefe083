// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "provisioner/capacity.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// Keeps the CSIStorageCapacity objects of the served name with capacity as they should be, and the
/// CSIDriver after them: published before the objects it would keep every pod waiting.
///
/// Only the leader's publisher is started. What it needs to know of the cluster it lists, at the
/// start, now and then, and whenever an answer did not fit: so it may be killed at any point, and
/// somebody may delete or change its objects. Every kPeriod it looks once; a failure is counted and
/// the next look tries again. A right that is missing is told once, with the rule that grants it.
class CapacityPublisher {
 public:
  /// Whether a claim would be served on a node of which nothing is known: kNo where it would wait
  /// for an agent that is away. May ask the API server.
  enum class Served { kYes, kNo, kNotKnownYet };
  using IsServed = std::function<Served(const std::string& node, const std::stop_token& stop)>;

  /// No object is written more often.
  static constexpr std::chrono::seconds kPeriod{10};
  /// Between two writes, so that a large cluster's first round is no burst.
  static constexpr std::chrono::milliseconds kPace{20};
  /// How long its own memory of the objects counts.
  static constexpr std::chrono::minutes kListAgain{5};

  /// For monitoring. Thread-safe.
  struct Stats {
    std::atomic<std::size_t> objects = 0;     // there are, as far as is known
    std::atomic<std::uint64_t> writes = 0;    // done, creations and removals included
    std::atomic<std::uint64_t> failures = 0;  // calls that failed
  };

  /// `ns` is where the objects stand. The world outlives it. Without `is_served` all nodes are.
  CapacityPublisher(World& world, std::string ns, IsServed is_served = {});
  ~CapacityPublisher();
  CapacityPublisher(const CapacityPublisher&) = delete;
  CapacityPublisher& operator=(const CapacityPublisher&) = delete;

  /// A thread of its own, unless no name with capacity is served. Not thread-safe, as stop().
  void start();
  /// Cuts a call that is under way short. The objects stay: the next leader goes on with them.
  void stop();
  const Stats& stats() const { return stats_; }

  /// One look: true when everything stands as it should. For the thread, and for tests.
  bool look(const std::stop_token& stop);
  /// As if started now, without a thread.
  void begin(const std::stop_token& stop);

 private:
  struct Published {
    std::string storage_class{};
    std::string hostname{};
    std::int64_t bytes = -1;  // -1: it is not as we write it
  };
  using Objects = std::map<std::string, Published>;  // by name

  bool list();
  CapacityScene scene();
  void add_promised(CapacityScene& scene) const;
  static bool is_of_another(const Published& object, const Capacity& wanted);
  bool is_due(const Capacity& wanted, const std::string& name) const;
  Served served(const Capacity& wanted, const std::string& name, const std::stop_token& stop) const;
  bool put(const Capacity& wanted, const std::string& name);
  bool create(const Capacity& wanted, const std::string& name);
  bool remove(const std::string& name);
  bool ensure_driver();
  /// Counts and tells; false.
  bool failed(const Error& error, const k8s::Resource& resource, std::string_view verb);

  World& world_;
  const std::string provisioner_;
  const std::string ns_;
  const IsServed is_served_;
  Stats stats_;
  std::jthread thread_;

  // Of the thread.
  std::optional<k8s::ApiClient> client_;
  TimePoint began_{};
  std::optional<TimePoint> listed_at_;  // nothing: the objects are not known
  Objects objects_;
  bool driver_stands_ = false;
  FreshSpace fresh_;
  std::set<std::string> told_;  // rights that are missing
  bool trouble_told_ = false;
};

}  // namespace lpp::provisioner
