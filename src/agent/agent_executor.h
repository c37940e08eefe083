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
#include <string_view>
#include <utility>
#include <vector>

#include "agent/agent_state.h"
#include "agent/identity.h"
#include "agent/orphan_board.h"
#include "agent/protocol.h"
#include "base/clock.h"
#include "base/sync.h"
#include "operation/belief.h"
#include "operation/executor.h"
#include "operation/node_load.h"
#include "operation/owner_slot.h"
#include "operation/path_ledger.h"
#include "operation/usage.h"

namespace lpp::agent {

/// The executor that lets agents on the nodes work. Knows no network: whoever speaks with the
/// agents hands in what they say (hello, tell, poll), each with the identity that was proved, and
/// calls tick() about once a second. The durable records are the agents'; those of a node are known
/// here from the moment on that its agent has told them, and between begin() and end() only.
/// A make or resize that was begun before an agent's restart, or ordered by another process, goes
/// on when the owner, woken for it, starts it again: its volume may be there by now, or larger. A
/// removal is called off instead, and what is left is put back: it begins anew if it is wanted. A
/// make that is called off stays on record with its outcome until it is forgotten. Starts no
/// thread, never waits; calls what it was given under no lock of its own. Thread-safe.
class AgentExecutor final : public operation::Executor {
 public:
  using Operation = operation::Operation;

  struct Settings {
    std::string program{};          // our version, for people
    std::string instance{};         // of this process: sessions of another one have another
    std::size_t most_per_node = 0;  // operations at once; 0 = no limit
    /// Of these; an agent does one after the other, and an order grows old. 0 = no limit.
    std::size_t most_removals = 0;
    Duration hold = std::chrono::seconds(240);  // of a poll for which there is no order
  };
  /// What surrounds it; called from any thread.
  struct Surroundings {
    std::function<std::chrono::seconds()> cmd_timeout;
    /// Configured for the node.
    std::function<std::vector<std::string>(const std::string& node)> base_paths;
    /// What the cluster has to say of work that was not ordered here.
    std::function<operation::Belief(const Operation& told)> belief;
    /// May ask the API server.
    std::function<Result<bool>(const std::string& node)> is_node_gone;
    /// Whether a pod of an agent is on the node, ready or not, that is not known never to have
    /// started. May ask the API server; kForbidden: nobody can tell.
    std::function<Result<bool>(const std::string& node)> has_agent_pod;
    std::function<void(const std::string& node, const std::vector<Base>& bases)> bases_told;
    /// The disks that volumes of the node below that base path name, that of the newest one first.
    std::function<std::vector<std::string>(const std::string& node, const std::string& base_path)>
        disks_named;
    /// A removal was called off, and the directory is not in its place again; `why`: for people.
    std::function<void(const Operation& removal, const std::string& why)> not_put_back;
    /// Tells the cluster from others; "" = nobody knows.
    std::function<std::string()> cluster;
    /// Of directories on the node those that no volume and no claim tells of; `idle`: and where
    /// nothing is being made, which passes.
    std::function<std::vector<Listed>(const std::string& node, std::vector<Listed> directories,
                                      bool idle)>
        nobodys;
    /// For people; either may be none. What the node's agent tells is left out, once for each thing
    /// under each leader; and two pods speak for the node and end each other's sessions, now and
    /// then while they do.
    std::function<void(const std::string& node, const LeftOut& what)> left_out{};
    std::function<void(const std::string& node, const std::string& pod, const std::string& other)>
        rivals{};
  };

  AgentExecutor(Clock& clock, operation::PathLedger& ledger, Settings settings,
                Surroundings surroundings);
  ~AgentExecutor() override;

  void begin(operation::Owner owner) override;
  void end(Duration limit) override;
  std::vector<operation::Recorded> recorded(std::string_view volume_name) override;
  operation::Admission admit(const Operation& operation) override;
  /// kUnavailable when the node's agent is not connected.
  Result<Start> start(const Operation& operation) override;
  Result<void> cancel(const operation::Id& id) override;
  Result<bool> forget(const operation::Id& id, When when) override;
  operation::Progress lost(const Operation& operation) const override;
  Result<bool> can_resize(const Operation& operation) override;

  Presence presence(const std::string& node) const;
  /// The pod of the agent that was heard last there; "" = none was.
  std::string heard_pod(const std::string& node) const;
  /// Whether others may work on the node, because no agent is connected, expected, or has a pod
  /// there that may be at work unheard. kUnavailable says why not. May ask the API server.
  Result<void> check_absent(const std::string& node);
  /// Whether the node's agent can work below that base path.
  bool sees(const std::string& node, const std::string& base_path) const;
  std::string sight(const std::string& node, const std::string& base_path) const override;
  std::string why_unfit(const std::string& node, const std::string& base_path) const override;
  void node_changed(std::string_view node) override;
  /// The disks that volumes name where a directory is to be made, with blanks in between: on any of
  /// them it is right. "" = no volume names one.
  std::string disks_named(const Operation& make) const;
  /// Whether others, who may compare no disks, may do it where sees() is false. kUnavailable: the
  /// agent cannot tell whether the disk that it needs is there, and says why.
  Result<void> may_be_done_unseen(const Operation& operation) const;
  /// By node.
  std::vector<AgentState> agents() const;
  /// Some of what the node's agent has on record. It looks at all of that.
  std::vector<AgentWork> oldest_works(const std::string& node) const;
  /// Of volumes on nodes whose agents can be reckoned with.
  std::vector<operation::UsageBoard::Entry> usage() const;
  /// Directories that were nobody's when they were told of, on nodes whose agents can be reckoned
  /// with; without those that an agent has on record as being worked at.
  std::vector<OrphanBoard::Entry> orphans() const;
  /// How many more of them there are at least, by node.
  std::map<std::string, std::int64_t> orphans_left_out() const { return orphans_.left_out(); }
  /// Parts of tells that were left out, by reason.
  std::map<std::string, std::uint64_t> left_out() const;
  /// Is told of each change; "" = any node's may have changed. Before begin().
  void on_presence(std::function<void(const std::string& node)> changed);
  /// The configuration is another one.
  void bases_changed();

  // What agents say. kUnavailable: we do not lead; kExpired: the session has ended; kInvalid: it is
  // refused as a whole. Error::reason has one word for counting.
  Result<Welcome> hello(const AgentIdentity& agent, const Hello& hello);
  Result<Told> tell(const AgentIdentity& agent, Tell tell);
  /// The answer is called once, at once or from any thread later, unless the poll is abandoned.
  using Answer = std::function<void(Result<Orders>)>;
  using Ticket = std::uint64_t;
  Ticket poll(const AgentIdentity& agent, const Poll& poll, Answer answer);
  /// Nobody waits for the answer any more.
  void abandon(const AgentIdentity& agent, Ticket ticket);

  /// What time brings. Returns when it is to be called next, at the latest.
  Duration tick();

 private:
  using State = operation::Progress::State;

  struct Entry {
    std::shared_ptr<const Operation> operation{};
    operation::Progress progress{};  // as told
    std::string serial{};            // of the order; "" = of an agent that keeps none
    TimePoint since{};
    TimePoint over_since{};  // when its outcome was told; zero: before the agent saw its disks
    /// When the owner wanted it; nullopt: its agent has been away since.
    std::optional<TimePoint> ordered{};
    bool is_ours = false;     // ordered by this process
    bool outdated = false;    // the owner is to order it anew
    bool sent = false;        // the agent may have it on record
    bool begun = false;       // told so
    bool had_before = false;  // it had the order before its latest session, and may have begun
    std::optional<TimePoint> cancelled{};
    std::int64_t gone = 0;   // of a removal, as told last
    bool suspended = false;  // the agent waits for the owner's word that it is to go on
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Pending {
    Order order{};
    std::size_t bytes = 0;
    EntryPtr entry{};  // kStart
    bool urgent = true;
  };
  struct Held {
    Ticket ticket = 0;
    Answer answer{};
    TimePoint until{};
  };
  struct Forgotten {
    operation::Id id{};
    std::string serial{};    // of the order whose outcome it was; "" = not known
    std::int64_t order = 0;  // its number; 0 = not ordered in this session
  };
  struct NodeAgent {
    std::string session{};
    std::string program{};
    std::string pod{};
    std::chrono::system_clock::time_point since{};
    bool complete = false;    // it has told everything
    TimePoint tells_since{};  // the first hello since it had
    TimePoint heard{};
    TimePoint lost{};
    std::chrono::system_clock::time_point lost_wall{};
    Presence shown = Presence::kAbsent;  // what was told last
    std::optional<Held> held{};
    std::deque<Pending> orders{};
    std::int64_t last_order = 0;
    std::int64_t last_given = 0;
    std::vector<std::string> base_paths{};  // as it was told
    std::vector<Base> bases{};
    TimePoint bases_told{};
    std::set<std::string> had_disk{};                 // paths where one was told of
    std::map<std::string, std::string> seen_disks{};  // by path: what this pod of it saw last
    std::map<std::string, EntryPtr> works{};          // by name_of(id)
    std::map<std::string, Forgotten> forgotten{};
    std::set<std::string> told{};               // so far, while it tells everything
    std::set<std::string> used{};               // paths whose usage it has told so far, as well
    std::set<std::string> troubles{};           // with what it tells, that have been logged
    std::map<std::string, LeftOut> left_out{};  // by name_of(id), of this session
    bool was_doubted = false;                   // something that it told is not believed for now
    std::string former_pod{};                   // that spoke for the node before this one
    TimePoint pod_since{};
    int came_again = 0;  // how often in a row the former one did
    std::optional<TimePoint> rivals_told{};
  };
  /// What is known of the pods of a node whose agent does not speak.
  struct Absence {
    TimePoint asked{};
    Result<void> answer{};
    std::optional<TimePoint> none_since{};
  };
  struct Woken {
    std::shared_ptr<const Operation> operation{};
    bool is_ours = true;  // ordered by this process
  };
  /// What is to be done when the lock is released.
  struct Effects {
    void wake(const Entry& entry) { woken.push_back({entry.operation, entry.is_ours}); }
    /// They have asked for room, which is ours to do.
    void wake(const std::vector<std::shared_ptr<const Operation>>& served) {
      for (const auto& operation : served) woken.push_back({operation});
    }

    std::vector<Woken> woken{};
    std::vector<std::pair<Answer, Result<Orders>>> answers{};
    std::vector<std::string> nodes{};   // with another presence
    std::vector<std::string> sights{};  // nodes where other disks are seen
    /// Removals that were called off, and why their directories are not in place.
    std::vector<std::pair<std::shared_ptr<const Operation>, std::string>> not_put_back{};
  };

  // What is on record, and who is told of it once the lock is released. (agent_executor.cpp)

  void perform(const Effects& effects) const;
  void wake(const std::vector<Woken>& woken) const;
  EntryPtr add(NodeAgent& agent, std::shared_ptr<const Operation> operation) LPP_REQUIRES(mutex_);
  void drop(NodeAgent& agent, const EntryPtr& entry, Effects& effects) LPP_REQUIRES(mutex_);
  std::vector<EntryPtr> find(const operation::Id& id) const LPP_REQUIRES(mutex_);

  // Operations, how they stand, and how agents do. (agent_operations.cpp, agent_progress.cpp)

  void cancel(const EntryPtr& entry, Effects& effects) LPP_REQUIRES(mutex_);
  void order_forget(NodeAgent& agent, Forgotten& forgotten, bool urgent, Effects& effects)
      LPP_REQUIRES(mutex_);
  void forget(NodeAgent& agent, const EntryPtr& entry, bool urgent, Effects& effects)
      LPP_REQUIRES(mutex_);
  Result<Start> record(const Operation& operation, const std::vector<std::string>& disks,
                       Effects& effects) LPP_REQUIRES(mutex_);
  void go_on(const EntryPtr& entry, Effects& effects) LPP_REQUIRES(mutex_);
  Presence presence_of(const NodeAgent& agent, TimePoint now) const LPP_REQUIRES(mutex_);
  /// If it is not connected.
  TimePoint expected_until(const NodeAgent& agent, TimePoint now) const LPP_REQUIRES(mutex_);
  operation::Progress progress_of(const Entry& entry) const LPP_REQUIRES(mutex_);
  void doubt(const NodeAgent& agent, const Entry& entry, operation::Progress& progress) const
      LPP_REQUIRES(mutex_);
  void saw_bases(const std::string& node, NodeAgent& agent, std::vector<Base> bases,
                 Effects& effects) LPP_REQUIRES(mutex_);
  static void learn_disk(NodeAgent& agent, const Entry& made);
  AgentState state_of(const std::string& node, const NodeAgent& agent) const LPP_REQUIRES(mutex_);

  // What agents tell, and what they are told to do. (agent_sessions.cpp)

  static void end_session(NodeAgent& agent, Effects& effects);
  Result<NodeAgent*> session_of(const AgentIdentity& agent, const std::string& session)
      LPP_REQUIRES(mutex_);
  void apply(NodeAgent& agent, Work work, bool everything, bool has_looked, Effects& effects)
      LPP_REQUIRES(mutex_);
  void told_everything(NodeAgent& agent, Effects& effects) LPP_REQUIRES(mutex_);
  static void outdate(Entry& entry, Effects& effects);
  void note_presence(const std::string& node, NodeAgent& agent, Effects& effects)
      LPP_REQUIRES(mutex_);
  void retold(const EntryPtr& entry, operation::Progress told, Effects& effects)
      LPP_REQUIRES(mutex_);
  void order_start(NodeAgent& agent, const EntryPtr& entry, Effects& effects) LPP_REQUIRES(mutex_);
  void order_cancel(NodeAgent& agent, const EntryPtr& entry, Effects& effects) LPP_REQUIRES(mutex_);
  std::int64_t order(NodeAgent& agent, Pending pending, Effects& effects) LPP_REQUIRES(mutex_);
  void give_orders(NodeAgent& agent, Effects& effects) LPP_REQUIRES(mutex_);
  Orders take_orders(NodeAgent& agent) LPP_REQUIRES(mutex_);

  // Which of what they tell is believed. (agent_trust.cpp)

  /// Leaves out what is not to be believed; what there is to be said of it for the first time.
  std::vector<LeftOut> sort_out(const std::string& node, NodeAgent& agent, Tell& tell,
                                const std::vector<operation::Belief>& beliefs, Effects& effects)
      LPP_REQUIRES(mutex_);
  /// Takes note of who speaks for the node; whether it is to be told that two do.
  bool is_rival(NodeAgent& agent, const std::string& pod) const LPP_REQUIRES(mutex_);
  std::string rival_of(const NodeAgent& agent) const LPP_REQUIRES(mutex_);
  void tell_left_out(const std::string& node, const std::vector<LeftOut>& news) const;
  /// Takes out of it what is not for agents to say. Of each what there is against it if it is new.
  std::vector<operation::Belief> judge(std::vector<Work>& works) const;
  operation::Belief belief_of(const Operation& told) const;
  static Work taken_for_other(const Entry& ours, const Work& told);
  /// Whether the id is another node's. Who tells of it without being at home gives way.
  bool is_taken(const Operation& told, bool at_home) const LPP_REQUIRES(mutex_);
  void drop_strangers(const Operation& told, Effects& effects) LPP_REQUIRES(mutex_);
  /// Who has told what was left out, and might not be any more, tells everything anew.
  void look_at_left_out();

  // Directories; nodes whose agent does not speak. (agent_directories.cpp, agent_absence.cpp)

  void note_uses(const std::string& node, NodeAgent& agent, const Tell& tell, bool everything)
      LPP_REQUIRES(mutex_);
  /// Of those that it was asked for.
  static void keep_below_bases(const NodeAgent& agent, std::vector<Listed>& directories);
  /// Where the agent has operations on record.
  struct WorkPlaces {
    std::set<std::string, std::less<>> paths{};
    std::set<std::string, std::less<>> ids{};  // of volumes, as in the node's records
    bool has(const Listed& directory) const;
  };
  static WorkPlaces work_places(const NodeAgent& agent);
  std::set<std::string> present_nodes() const;
  void drop_gone_agents(std::string_view volume_name);
  bool is_known_to_have_no_pod(const std::string& node);

  Clock& clock_;
  operation::PathLedger& ledger_;
  const Settings settings_;
  const Surroundings surroundings_;
  std::function<void(const std::string&)> presence_changed_;

  operation::OwnerSlot owner_;
  mutable Mutex mutex_;
  bool active_ LPP_GUARDED_BY(mutex_) = false;
  TimePoint begun_ LPP_GUARDED_BY(mutex_){};
  bool all_expected_ LPP_GUARDED_BY(mutex_) = false;
  std::uint64_t last_session_ LPP_GUARDED_BY(mutex_) = 0;
  Ticket last_ticket_ LPP_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_serial_ LPP_GUARDED_BY(mutex_) = 0;
  TimePoint left_out_due_ LPP_GUARDED_BY(mutex_){};
  std::map<std::string, NodeAgent> agents_ LPP_GUARDED_BY(mutex_);  // by node
  std::map<std::string, std::vector<EntryPtr>, std::less<>> by_volume_ LPP_GUARDED_BY(mutex_);
  std::map<std::string, Absence> absences_ LPP_GUARDED_BY(mutex_);  // by node
  std::map<std::string, std::uint64_t> left_out_ LPP_GUARDED_BY(mutex_);
  operation::NodeLoad load_;
  operation::UsageBoard usage_;  // of those in agents_
  OrphanBoard orphans_;          // the same
};

}  // namespace lpp::agent
