// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "agent/work_book.h"
#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "fakes/time_passes.h"
#include "unit/node/node_bed.h"

namespace lpp::testing {

/// Not hours at once while one of an agent's threads does not get to look.
inline constexpr std::chrono::milliseconds kAgentsPace{20};

inline operation::Operation operation_of(const BaseFolder& base, operation::Kind kind,
                                         const std::string& name = "pvc-1", int attempt = 1) {
  operation::Operation operation{.kind = kind,
                                 .volume_name = name,
                                 .claim = {"web", "data"},
                                 .owner_uid = "u-1",
                                 .attempt = attempt,
                                 .node = "node-1",
                                 .base_path = base.path(),
                                 .path = base.at("web/" + name),
                                 .size_bytes = 1 << 20,
                                 .perm = "0750"};
  operation.limits.hard = BaseFolder::has_limits();
  return operation;
}

inline agent::Order start(const operation::Operation& operation) {
  return {.what = agent::Order::What::kStart, .operation = operation};
}
inline agent::Order cancel(const operation::Operation& operation) {
  return {.what = agent::Order::What::kCancel, .id = operation.id()};
}
/// As a controller orders it that takes back what is left.
inline agent::Order cancel_and_keep(const operation::Operation& make) {
  return {.what = agent::Order::What::kCancel, .id = make.id(), .keep = true};
}
inline agent::Order forget(const operation::Operation& operation) {
  return {.what = agent::Order::What::kForget, .id = operation.id()};
}

/// What a controller knows of an agent: everything that was told, put together.
class Listener {
 public:
  Listener(agent::Agent& agent, Clock& clock) : agent_(agent), clock_(clock) {}

  void begin_session() {
    agent_.begin_session();
    works_.clear();
    ended_.clear();
    hear();
  }
  /// What there is to hear at the moment.
  void hear() {
    while (const auto tell = agent_.next_tell()) {
      if (tell->bases) bases_ = *tell->bases;
      for (const auto& work : tell->works) {
        works_[agent::key_of(work.operation.id())] = work.progress;
        operations_[agent::key_of(work.operation.id())] = work.operation;
        gone = std::max(gone, work.gone);
      }
      for (const auto& ended : tell->ended) {
        works_.erase(agent::key_of(ended.id));
        ended_.push_back(ended.id);
        ended_serial = ended.serial;
      }
      for (const auto& removal : tell->nothing_left) nothing_left.push_back(removal.path);
      for (const auto& id : tell->asks) ++asked_[agent::key_of(id)];
      if (tell->inventory && tell->inventory->first) inventory.clear();
      if (tell->inventory) {
        const auto& part = tell->inventory->directories;
        inventory.insert(inventory.end(), part.begin(), part.end());
      }
      agent::Told answer{.begin = lets_begin ? tell->asks : std::vector<operation::Id>()};
      for (const auto& one : tell->sweeps) {
        asked_to_sweep.push_back(one.path);
        if (lets_sweep && !needed.contains(one.path)) answer.sweep.push_back(one.path);
      }
      CHECK(tell->sweeps.size() <= agent::kMaxSweeps);
      if (!tell->sweeps.empty() && before_sweep) before_sweep();
      agent_.told(answer, clock_.now() - answer_takes);
    }
  }
  std::optional<operation::Progress> progress(const operation::Operation& operation) {
    hear();
    const auto it = works_.find(agent::key_of(operation.id()));
    return it == works_.end() ? std::nullopt : std::optional(it->second);
  }
  /// As it was told last.
  operation::Operation operation(const operation::Operation& like) {
    return operations_[agent::key_of(like.id())];
  }
  /// Waits for the outcome.
  std::optional<operation::Progress> outcome(const operation::Operation& operation) {
    eventually([&] {
      const auto now = progress(operation);
      return now && now->over();
    });
    return progress(operation);
  }
  bool has_ended(const operation::Operation& operation) {
    return eventually([&] {
      hear();
      return std::find(ended_.begin(), ended_.end(), operation.id()) != ended_.end();
    });
  }
  bool has_ended_by_now(const operation::Operation& operation) const {
    return std::find(ended_.begin(), ended_.end(), operation.id()) != ended_.end();
  }
  const std::vector<agent::Base>& bases() const { return bases_; }
  std::size_t works() const { return works_.size(); }

  /// How often there was a question whether it may begin.
  int asked(const operation::Operation& operation) {
    hear();
    return asked_[agent::key_of(operation.id())];
  }

  std::string ended_serial;  // that was told last
  std::int64_t gone = 0;     // the most that was told of a removal
  std::vector<std::string> nothing_left;
  std::vector<agent::Listed> inventory;
  std::vector<std::string> asked_to_sweep;
  bool lets_sweep = true;
  std::function<void()> before_sweep{};  // after the question, before the answer
  std::set<std::string> needed;          // and not to be swept
  bool lets_begin = true;
  Duration answer_takes = Duration::zero();

 private:
  agent::Agent& agent_;
  Clock& clock_;
  std::map<std::string, int> asked_;
  std::vector<agent::Base> bases_;
  std::map<std::string, operation::Progress> works_;
  std::map<std::string, operation::Operation> operations_;
  std::vector<operation::Id> ended_;
};

/// An agent at work in a base folder, with a session.
class RunningAgent {
 public:
  RunningAgent(const BaseFolder& base, node::Kernel& kernel, const std::string& cluster = {},
               agent::Agent::Options options = {})
      : agent(kernel, clock, std::move(options)), listener(agent, clock) {
    agent.open_bases({base.path()}, cluster);
    agent.start();
    listener.begin_session();
  }
  /// Waits for that while the agent looks each second, and what it tells is heard.
  bool looks(const std::function<bool()>& until) {
    const auto heard = [&] {
      listener.hear();
      return until();
    };
    return as_time_passes(clock, std::chrono::seconds(1), heard, kAgentsPace);
  }
  /// Returns when it is over, and what it has asked for has been looked at.
  operation::Progress run(const operation::Operation& operation) {
    agent.take(start(operation));
    const auto outcome = listener.outcome(operation).value_or(operation::Progress{});
    has_looked();
    return outcome;
  }
  /// Returns when what was asked for before has been looked at: who looks waits then, as nobody
  /// else.
  void has_looked() {
    const auto waits = clock.waits();
    REQUIRE(eventually([&] { return clock.waits() > waits; }));
  }
  /// Ordered, and at work.
  void begin(const operation::Operation& operation) {
    agent.take(start(operation));
    REQUIRE(eventually([&] {
      const auto now = listener.progress(operation);
      return now && now->state != operation::Progress::State::kWaiting;
    }));
  }

  FakeClock clock;
  agent::Agent agent;
  Listener listener;
};

/// Holds the n-th call of a name, and those after it up to a number, until they are let go.
class HoldingKernel : public node::Kernel {
 public:
  HoldingKernel(std::string call, int times, int most = 1)
      : call_(std::move(call)), most_(most), times_(times) {}
  void let_go() {
    MutexLock lock(mutex_);
    times_ = -1;
    changed_.notify_all();
  }
  /// As many as it may.
  bool holds() {
    return eventually([&] {
      MutexLock lock(mutex_);
      return held_ == most_;
    });
  }

 protected:
  int before(const char* call) override {
    MutexLock lock(mutex_);
    if (times_ < 0 || call_ != call || held_ == most_) return 0;
    if (times_ > 0 && --times_ > 0) return 0;
    ++held_;
    changed_.notify_all();
    while (times_ == 0) changed_.wait(mutex_);
    return 0;
  }

 private:
  const std::string call_;
  const int most_;
  Mutex mutex_;
  CondVar changed_;
  int times_;  // until the first that is held; -1 = let go
  int held_ = 0;
};

/// Nothing goes from it.
struct BadDisk : node::Kernel {
  int before(const char* call) override {
    if (!is_bad || std::string_view(call) != "unlinkat") return 0;
    ++refused;
    return EIO;
  }
  std::atomic<bool> is_bad = false;
  std::atomic<int> refused = 0;
};

/// Names of an agent's own files in the folder of the records.
inline std::set<std::string> work_files(const BaseFolder& base) {
  std::set<std::string> files;
  for (const std::string& name : base.content()) {
    if (name.find("/work") != std::string::npos) files.insert(name);
  }
  return files;
}

}  // namespace lpp::testing
