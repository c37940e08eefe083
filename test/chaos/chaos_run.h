#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "chaos/cluster_faults.h"
#include "chaos/fault_mix.h"
#include "chaos/leader_record.h"
#include "chaos/model.h"
#include "chaos/promises.h"
#include "chaos/schedule.h"
#include "harness/installation.h"

namespace lpp::testing {

struct ChaosOptions {
  std::string daemon{};
  std::string folder{};  // exists; gets a folder for each replica
  std::uint64_t seed = 1;
  std::size_t steps = 0;            // 0 = by time
  std::chrono::seconds seconds{0};  // 0 = by steps
  std::size_t replicas = 2;
  std::size_t round = 40;  // steps between two quiet points
  std::chrono::seconds patience{60};
  std::function<void(const std::string&)> say{};  // a line now and then; may be empty
};

struct ChaosSummary {
  std::size_t steps = 0;
  std::size_t quiet_points = 0;
  std::size_t volumes = 0;    // seen bound at quiet points
  std::size_t takeovers = 0;  // of the lease
  std::size_t excused = 0;    // directories that nobody could know of any more
  std::map<std::string, std::size_t> faults{};
  std::map<std::string, std::size_t> kinds{};  // steps by kind
};

/// The real daemon, one or more replicas of it as processes behind a fault proxy each, while a
/// random schedule of steps changes everything around it. After each round comes a quiet point:
/// all faults end, and within its patience everything must be as the promises say. One thread.
class ChaosRun {
 public:
  /// The bed must outlive the object.
  ChaosRun(TestBed& bed, ClusterFaults& cluster, ChaosOptions options);
  ~ChaosRun();

  /// The error says what was broken, the last steps and where the logs are.
  Result<ChaosSummary> run();

 private:
  struct Replica {
    std::unique_ptr<Installation> installation{};
    std::unique_ptr<FaultMix> faults{};
    bool running = false;
    bool was_ready = false;  // since its last start
    bool paused = false;
    bool partitioned = false;
  };

  /// After the lease was taken away by hand: until the replica that led looks at it again.
  static constexpr std::chrono::milliseconds kLeaderUnknown{6'000};

  Result<void> prepare();
  Result<void> take(const Step& step);
  Result<void> claim_step(const Step& step);
  Result<void> node_step(const Step& step);
  Result<void> settings_step(const Step& step);
  Result<void> daemon_step(const Step& step);
  Result<void> lease_step(const Step& step);

  Result<void> create_claim(std::size_t slot, const std::string& name, const Step& step);
  Result<void> delete_claim(std::size_t slot);
  Result<void> touch_data(ChaosClaim& claim);
  Result<void> write_config(const nlohmann::json& config);
  Result<void> set_data(const std::string& key, const std::string& text);
  Result<void> make_class(const std::string& name);
  Result<void> start(Replica& replica);
  static Result<void> stop(Replica& replica);
  Result<void> check_alive();
  bool all_were_ready();

  Result<void> quiet_point();
  void end_faults();
  Result<void> repair();
  Result<void> select_nodes();
  Result<void> check_failures_told();
  Result<void> clear_retained();
  Result<void> remove_objects();
  Error explain(const Error& error) const;
  std::string known_node(std::size_t number) const;

  TestBed& bed_;
  ClusterFaults& cluster_;
  const ChaosOptions options_;
  Schedule schedule_;
  LeaderRecord leaders_;
  ChaosModel model_;
  Promises promises_;
  std::vector<Replica> replicas_;
  std::map<std::string, std::string> original_data_;  // of the ConfigMap
  std::vector<std::string> nodes_;
  std::map<std::string, ClusterFaults::NodeTrouble> troubles_;
  bool config_is_bad_ = false;
  std::size_t generation_ = 0;
  std::deque<std::string> last_steps_;
  ChaosSummary summary_;
};

}  // namespace lpp::testing
