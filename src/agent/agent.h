// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_stats.h"
#include "agent/inventory_notes.h"
#include "agent/protocol.h"
#include "agent/usage_notes.h"
#include "agent/work_book.h"
#include "base/clock.h"
#include "base/sync.h"
#include "node/kernel.h"
#include "node/volumes.h"

namespace lpp::agent {

/// The work of one node's agent, without the way to the controller: orders come in, what there is
/// to tell goes out. It begins nothing by itself: what its work books show as begun is told, and
/// goes on only when it is ordered again, so that whoever decides can cancel it first. What another
/// cluster has begun on a disk is left alone. Makes and resizes have threads of their own, so that
/// they never wait for the removal of a large tree.
///
/// No disk is held open between two pieces of work. Thread-safe; open_bases() waits for the disks,
/// everything else is quick. Kernel and clock must outlive it.
class Agent {
 public:
  struct Options {
    std::string root{};  // where the node's file system is; "" = as it is here
    Duration look_every = std::chrono::seconds(60);  // at the base paths, for what they hold
    bool tells_usage = true;                         // of each volume with a limit
    /// What a make or removal has left that holds nothing, and nobody is at, goes after this; zero
    /// = it stays.
    Duration sweep_after = std::chrono::hours(1);
    /// Called a while after each look, when nothing is at work: until the next one there is only to
    /// wait. May be empty.
    std::function<void()> at_rest{};
  };

  Agent(node::Kernel& kernel, Clock& clock, Options options);
  /// Stops.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Like stop(), on the thread that owns it.
  void start();
  /// Makes and resizes that run end, a removal stops where it is, nothing else is begun. Returns
  /// when no thread works any more. Repeatable.
  void stop();

  /// These are the node's base paths from now on, and that is its cluster ("" = as far as is
  /// known). When it returns their work books have been read.
  void open_bases(const std::vector<std::string>& paths, const std::string& cluster = {});

  void take(const Order& order);

  // For monitoring.
  const WorkStats& stats() const { return stats_; }
  WorkView view();

  // For one session at a time, on one thread.

  /// From now on everything is to be told anew.
  void begin_session();
  /// The next part of what is to be told, without the session; nullopt: nothing. The same again
  /// until told(). Bounded as the protocol says.
  std::optional<Tell> next_tell();
  /// What next_tell() gave last was sent at that time and has arrived; the answer.
  void told(const Told& answer, TimePoint sent);
  /// False when the stop came first.
  bool wait_to_tell(const std::stop_token& stop);

 private:
  /// An answer that is older says nothing about what the controller wants now.
  static constexpr std::chrono::seconds kLeaveIsGood{2};

  /// An operation on record. Guarded by mutex_. It comes by an order or from a work book, is
  /// `active` until there is an outcome, stays with that for the controller to hear, and goes with
  /// drop() once it is `forgotten`, or `cancelling` and at rest.
  struct Entry {
    operation::Operation operation{};
    operation::Progress progress{};
    std::string serial{};    // of the order; "" = it had none
    std::string disk{};      // whose book has it; "" = not known
    std::string cluster{};   // that began it, as far as the book tells
    bool from_book = false;  // was begun before this process
    bool foreign = false;    // another cluster's: is touched no more

    // What has been done of it.
    bool active = false;     // queued, or a worker has it
    bool begun = false;      // something may have been done, and be in the work book
    bool had_begun = false;  // before it was taken up last
    bool removing = false;   // certainly a removal has begun, here or by the disk's word
    std::int64_t gone = 0;   // files and directories, of a removal
    TimePoint gone_told{};

    // Leave to begin, of a removal.
    bool asking = false;               // it waits for that
    std::optional<TimePoint> asked{};  // and got it, as of then

    // How it ends.
    bool cancelling = false;      // is to act no more, and to be dropped
    bool forgotten = false;       // is to be dropped
    bool stays = false;           // could not be dropped, as was told
    bool gives_way = false;       // to other work under its id
    std::optional<Order> next{};  // under the same id, for when it is dropped
    std::stop_source stop{};

    std::uint64_t version = 0;  // of what there is to tell of it
    std::uint64_t told = 0;
  };
  using EntryPtr = std::shared_ptr<Entry>;
  using Queue = std::deque<EntryPtr>;

  /// What may be swept as soon as it is known that nobody needs it.
  struct Leftover {
    std::string base_path{};
    std::string disk{};
    Listed listed{};
    bool lost = false;  // a record alone
    TimePoint asked{};  // of one that nobody needs: when that was asked
    std::pair<std::string, std::string> place() const { return {disk, listed.path}; }
  };
  /// What the last tell that has not been acknowledged yet holds.
  struct Pending {
    Tell tell{};
    std::vector<std::pair<EntryPtr, std::uint64_t>> versions{};
    std::uint64_t bases_version = 0;
    std::size_t ended = 0;
    std::size_t nothing_left = 0;
    std::vector<Leftover> sweeps{};
  };

  // Orders are taken, and what they are about is queued. (agent.cpp)

  bool is_known(const std::string& base_path) const LPP_REQUIRES(mutex_);
  void obey(const Order& order) LPP_REQUIRES(mutex_);
  void start_work(const Order& order) LPP_REQUIRES(mutex_);
  void cancel(const Order& order) LPP_REQUIRES(mutex_);
  bool keep_ended(Entry& entry) LPP_REQUIRES(mutex_);
  void forget(const Order& order) LPP_REQUIRES(mutex_);
  void tell_end(const operation::Id& id, const std::string& serial) LPP_REQUIRES(mutex_);
  void enqueue(const EntryPtr& entry) LPP_REQUIRES(mutex_);
  void changed(Entry& entry) LPP_REQUIRES(mutex_);

  // An order for an id under which other work is on record. (agent_former.cpp)

  bool comes_after(const EntryPtr& former, const Order& order) LPP_REQUIRES(mutex_);
  void give_way(const EntryPtr& former, const Order& order) LPP_REQUIRES(mutex_);
  bool takes_over(const EntryPtr& former, const Order& order) LPP_REQUIRES(mutex_);
  void not_dropped(const EntryPtr& former, const Error& error) LPP_REQUIRES(mutex_);

  // The work, which the threads take from the queues. (agent_work.cpp)

  bool needs_leave(const Entry& entry) const LPP_REQUIRES(mutex_);
  void ask(Entry& entry) LPP_REQUIRES(mutex_);
  void work_off(Queue Agent::*queue);
  void serve(const EntryPtr& entry);
  /// nullopt: stopped, or it may not begin any more.
  std::optional<operation::Progress> work_at(const EntryPtr& entry);
  void note_gone(const EntryPtr& entry, std::uint64_t gone);
  std::optional<operation::Progress> work_counted(const EntryPtr& entry);
  /// As it stands in the work book.
  Work on_record(const Entry& entry, const operation::Progress& progress);
  Result<void> drop(const EntryPtr& entry);
  /// Takes away what it has left beside the records, which is empty.
  static void give_up_making(const operation::Operation& make, const node::Volumes& volumes);
  /// What a removal has left goes back into its place.
  Result<node::PutBack> put_back(const EntryPtr& entry, const node::Volumes& volumes);
  /// Takes note of the disk that is there; true: there was another one, or none, when it was seen
  /// last.
  bool saw_disk(const std::string& path, const std::string& disk);
  void tell_new_disk(const std::string& path);
  /// kOtherDisk: it is not the one that the volume is on; without word of that, not the first one
  /// that was seen at the base path. Which it is: "" = it has no identity, or is full.
  Result<std::string> check_disk(const operation::Operation& operation,
                                 const node::Volumes& volumes);
  std::string at(const std::string& path) const;

  // Looks at the base paths, and what may be swept from them. (agent_look.cpp)

  void look_soon() LPP_REQUIRES(mutex_);
  bool wait_to_look(TimePoint until, const std::stop_token& stop) LPP_REQUIRES(mutex_);
  bool is_at_work() const LPP_REQUIRES(mutex_);
  /// What is called off or forgotten, and could not go from the records yet.
  void drop_again() LPP_REQUIRES(mutex_);
  /// Which disk is there, in any words.
  std::string glance_at(const std::string& path);
  /// Other disks, or none, are there than before the last look.
  bool sees_change();
  void watch_bases(const std::stop_token& stop);
  void look_at_bases();
  /// What a look finds out beside what is told of the base paths.
  struct Sights {
    UsageNotes::Seen uses{};
    InventoryNotes::Seen inventory{};
  };
  Base look_at(const std::string& path, Sights& sights) LPP_REQUIRES(looks_mutex_);
  Result<void> read_book(const std::string& path, const node::Volumes& volumes,
                         const std::string& identity, const WorkBook::Whose& whose);
  /// Whether work of another disk has its id no more.
  bool may_be_taken_in(const std::string& path) LPP_REQUIRES(books_mutex_);
  /// What was read while nobody knew whose it was may turn out to be another cluster's: it stays on
  /// the disk, and is nothing of this agent's any more. How many there were.
  std::size_t leave_foreign(const std::string& path, const std::string& disk,
                            const WorkBook::Whose& whose) LPP_REQUIRES(mutex_);
  std::string cluster();
  void saw_cluster(const std::string& path, const std::string& foreign);
  /// Once, until it is closed.
  void warn_of_open_base(const std::string& path, const node::Volumes& volumes);
  /// `ids`: sorted.
  void saw_taken_off(const std::string& path, std::vector<std::string> ids);
  void choose_leftovers(std::vector<InventoryNotes::Seen::Leftover> seen) LPP_REQUIRES(mutex_);
  /// What there is work on, by base path and id of the volume.
  std::set<std::pair<std::string, std::string>> at_work() const LPP_REQUIRES(mutex_);
  void sweep_all(const std::stop_token& stop);
  void sweep(const Leftover& leftover, const std::stop_token& stop);

  // What the controller is told. (agent_telling.cpp)

  bool has_to_tell() const LPP_REQUIRES(mutex_);
  void told_sweeps(const Told& answer, TimePoint sent) LPP_REQUIRES(mutex_);

  node::Kernel& kernel_;
  Clock& clock_;
  const Options options_;
  WorkStats stats_;

  Mutex looks_mutex_;  // held by a look at the base paths; before the others
  /// By base path and disk.
  std::map<std::pair<std::string, std::string>, node::LimitTurns> limit_turns_
      LPP_GUARDED_BY(looks_mutex_);
  /// Between a look into a work book and what follows of it; before mutex_.
  Mutex books_mutex_;
  std::map<std::string, std::string> read_books_ LPP_GUARDED_BY(books_mutex_);  // disk by base path
  /// What these hold under an id that other work has: keys by base path.
  std::map<std::string, std::set<std::string>> waiting_works_ LPP_GUARDED_BY(books_mutex_);
  /// By what some of it was left to another cluster: by base path.
  std::map<std::string, WorkBook::Whose> left_to_others_ LPP_GUARDED_BY(books_mutex_);

  Mutex mutex_;
  CondVar to_work_;
  CondVar to_tell_;
  CondVar to_look_;
  CondVar to_sweep_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  bool look_now_ LPP_GUARDED_BY(mutex_) = false;
  std::map<std::string, EntryPtr> entries_ LPP_GUARDED_BY(mutex_);  // by key_of()
  Queue quick_ LPP_GUARDED_BY(mutex_);
  Queue slow_ LPP_GUARDED_BY(mutex_);
  std::vector<std::string> paths_ LPP_GUARDED_BY(mutex_);
  struct Disk {
    std::string first{};  // that was seen
    std::string last{};
  };
  std::map<std::string, Disk> disks_ LPP_GUARDED_BY(mutex_);           // by base path
  std::map<std::string, std::string> glances_ LPP_GUARDED_BY(mutex_);  // before the last look
  std::vector<Base> bases_ LPP_GUARDED_BY(mutex_);
  TimePoint bases_due_ LPP_GUARDED_BY(mutex_){};  // then they are told though nothing has changed
  std::vector<Ended> ended_ LPP_GUARDED_BY(mutex_);
  std::vector<operation::Operation> nothing_left_ LPP_GUARDED_BY(mutex_);
  std::uint64_t version_ LPP_GUARDED_BY(mutex_) = 0;
  std::uint64_t bases_version_ LPP_GUARDED_BY(mutex_) = 0;
  std::uint64_t bases_told_ LPP_GUARDED_BY(mutex_) = 0;
  UsageNotes uses_ LPP_GUARDED_BY(mutex_);
  InventoryNotes inventory_ LPP_GUARDED_BY(mutex_);
  std::string cluster_ LPP_GUARDED_BY(mutex_);                         // "" = not known
  std::map<std::string, std::string> foreign_ LPP_GUARDED_BY(mutex_);  // cluster by base path
  std::set<std::string> open_bases_ LPP_GUARDED_BY(mutex_);            // that were warned of
  /// Volumes out of their limits, by base path.
  std::map<std::string, std::vector<std::string>> taken_off_ LPP_GUARDED_BY(mutex_);
  std::set<std::string> foreign_works_ LPP_GUARDED_BY(mutex_);  // by key_of()
  std::vector<Leftover> leftovers_ LPP_GUARDED_BY(mutex_);      // to ask about next
  bool leftovers_news_ LPP_GUARDED_BY(mutex_) = false;
  using Times = std::map<std::pair<std::string, std::string>, TimePoint>;  // by disk and path
  Times lost_since_ LPP_GUARDED_BY(mutex_);   // records without a directory were noticed
  Times sweep_asked_ LPP_GUARDED_BY(mutex_);  // about what may be swept
  TimePoint session_began_ LPP_GUARDED_BY(mutex_){};
  std::deque<Leftover> to_go_ LPP_GUARDED_BY(mutex_);
  bool everything_ LPP_GUARDED_BY(mutex_) = false;  // is not told yet
  std::optional<Pending> pending_ LPP_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

}  // namespace lpp::agent
