// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "chaos/agent_fleet.h"
#include "chaos/cluster_faults.h"
#include "chaos/fault_mix.h"
#include "chaos/leader_record.h"
#include "chaos/ledger.h"
#include "chaos/model.h"
#include "chaos/promises.h"
#include "chaos/schedule.h"
#include "chaos/tenants.h"
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
  std::vector<std::string> agents{};  // machines that have one; the bed grants its rights
  std::set<std::string> without{};    // names of steps that are not taken
  std::function<void(const std::string&)> say{};  // a line now and then; may be empty
};

struct ChaosSummary {
  std::size_t steps = 0;
  std::size_t quiet_points = 0;
  std::size_t volumes = 0;    // seen bound at quiet points
  std::size_t takeovers = 0;  // of the lease
  std::size_t excused = 0;    // directories that nobody could know of any more
  std::size_t stayed = 0;     // directories of patterns whose creation was taken back
  std::size_t saved = 0;      // volumes changed to Retain while their removal waited
  std::size_t written = 0;    // files of tenants
  std::size_t removed = 0;    // of these, as it should be
  std::size_t by_agents = 0;  // of the volumes
  std::size_t disks_away = 0;
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
  /// Whatever a run that failed has left goes.
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

  /// What becomes of retained volumes and directories at a quiet point.
  enum class Clearing { kSome, kAll };

  Result<void> prepare();
  Result<void> take(const Step& step);
  Result<void> claim_step(const Step& step);
  Result<void> node_step(const Step& step);
  Result<void> rename_node(const std::string& machine);
  Result<void> relabel_node(const std::string& machine, const Step& step);
  Result<void> settings_step(const Step& step);
  Result<void> daemon_step(const Step& step);
  Result<void> lease_step(const Step& step);
  Result<void> volume_step(const Step& step);
  Result<void> agent_step(const Step& step);
  Result<void> disk_step(const Step& step);

  Result<void> come_back(std::size_t slot, const Step& step);
  Result<void> save_volume(std::size_t slot);
  Result<void> bind_again(std::size_t slot, const Step& step);
  Result<void> make_old_volumes(const Step& step);
  Result<void> make_old_volume(const std::string& name, const std::string& machine,
                               const std::string& path, bool deletes);
  Result<void> save_old_volume(const Step& step);
  Result<void> change_in_time(const std::string& pv);
  Result<bool> may_take_disk(const std::string& machine, const std::string& base);
  Result<void> need_disk(const std::string& machine, const std::string& folder, const Step& step);
  bool is_away(const std::string& path) const;
  Result<void> bring_back(std::string folder);
  Result<void> bring_back_of(const std::string& machine);  // "" = of all
  Result<void> keep_disks_of(const std::string& machine);
  Result<void> name_disks();
  Result<void> forget_disk(const std::string& name);
  Result<void> forget_disks();
  Result<void> start_agents();
  /// Trouble of the machine, of which its agent has a part.
  void trouble_machine(const std::string& machine);
  Result<void> machine_goes(const std::string& machine);
  Result<void> machine_comes(const std::string& machine);
  Result<void> end_faults_of_agents();
  void kill_machine(const std::string& machine);
  Result<bool> set_policy(const std::string& pv, bool deletes);
  Result<void> forget_volume(const std::string& pv);
  Result<std::vector<ChaosVolume>> released();
  Result<std::size_t> removals_of(const std::set<std::string>& pvs);
  bool is_claimed(const std::string& name) const;
  bool is_claimed(const ChaosVolume& volume) const;
  void may_be_taken_back(const ChaosClaim& claim);
  void all_may_be_taken_back();
  Result<std::optional<LedgerVolume>> volume_in(const std::string& body) const;
  ProxyHooks watched(ProxyHooks hooks);
  std::string script_with(const std::string& key, const std::string& line, bool at_end);
  Result<void> fail_setup(const Step& step);

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

  Result<void> quiet_point(Clearing clearing);
  Result<void> end_faults();
  Result<void> repair();
  Result<void> select_nodes();
  Result<void> check_failures_told();
  Result<void> wait_for_saved();
  Result<void> free_names();
  Result<void> clear_retained(Clearing clearing);
  Result<void> clear_leftovers(Clearing clearing);
  void remove_by_hand(const std::string& directory);
  Result<void> remove_objects();
  void clean_up();
  Error explain(const Error& error) const;
  std::string known_node(std::size_t number) const;
  std::string known_name(const std::string& machine) const;

  TestBed& bed_;
  ClusterFaults& cluster_;
  const ChaosOptions options_;
  Schedule schedule_;
  LeaderRecord leaders_;
  ChaosModel model_;
  Ledger ledger_;
  Promises promises_;
  Random moods_;  // of the administrator at quiet points
  std::vector<Replica> replicas_;
  std::unique_ptr<AgentFleet> agents_;                // nullptr: there are none
  std::map<std::string, std::string> original_data_;  // of the ConfigMap
  std::vector<std::string> nodes_;
  std::map<std::string, ClusterFaults::NodeTrouble> troubles_;
  std::map<std::string, std::string> disks_away_;  // machines by the folder of the base path
  /// Disk and node that a volume names, by the folder of the base path.
  std::map<std::string, std::pair<std::string, std::string>> anchors_;
  std::set<std::string> just_named_;  // folders of these, at the last quiet point
  std::set<std::string> unsteady_;    // machines whose disks stay in place for now
  bool config_is_bad_ = false;
  std::size_t generation_ = 0;
  std::deque<std::string> last_steps_;
  ChaosSummary summary_;
  bool prepared_ = false;
  bool over_ = false;
  std::optional<Tenants> tenants_;  // last: ends before the rest is destroyed
};

}  // namespace lpp::testing
