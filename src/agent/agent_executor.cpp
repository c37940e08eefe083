// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_executor.h"

#include <algorithm>

#include "agent/executor_names.h"
#include "agent/work.h"
#include "base/log.h"
#include "base/strings.h"
#include "operation/record.h"

// What the reconcilers ask of it; what agents say is in agent_sessions.cpp.

namespace lpp::agent {

using operation::Admission;
using operation::Id;
using operation::Operation;
using operation::Progress;
using operation::Recorded;

namespace {

Error not_active() {
  return {.code = ErrorCode::kUnavailable,
          .message = "this process does not lead",
          .reason = "not_leading"};
}

}  // namespace

AgentExecutor::AgentExecutor(Clock& clock, operation::PathLedger& ledger, Settings settings,
                             Surroundings surroundings)
    : clock_(clock),
      ledger_(ledger),
      settings_(std::move(settings)),
      surroundings_(std::move(surroundings)),
      load_(clock, settings_.most_per_node, settings_.most_removals) {}

AgentExecutor::~AgentExecutor() { end(Duration::zero()); }

void AgentExecutor::on_presence(std::function<void(const std::string&)> changed) {
  presence_changed_ = std::move(changed);
}

void AgentExecutor::begin(operation::Owner owner) {
  {
    MutexLock lock(owner_mutex_);
    owner_ = std::move(owner);
  }
  MutexLock lock(mutex_);
  active_ = true;
  all_expected_ = true;
  begun_ = clock_.now();
}

/// Another process may lead: what it does with what is on record is not known here.
void AgentExecutor::end(Duration /*limit*/) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    active_ = false;
    for (auto& [node, agent] : agents_) {
      if (agent.held) effects.answers.emplace_back(std::move(agent.held->answer), not_active());
      for (const auto& [name, entry] : agent.works) {
        ledger_.remove(entry->operation);
        (void)load_.ended(*entry->operation, name);
      }
    }
    agents_.clear();
    usage_.forget_all();
    orphans_.forget_all();
    by_volume_.clear();
    absences_.clear();
  }
  {
    MutexLock lock(owner_mutex_);
    owner_.reset();
  }
  perform(effects);
}

void AgentExecutor::perform(const Effects& effects) const {
  for (const auto& [answer, orders] : effects.answers) answer(orders);
  for (const auto& node : effects.nodes) {
    if (presence_changed_) presence_changed_(node);
  }
  wake(effects.woken);
}

void AgentExecutor::wake(const std::vector<std::shared_ptr<const Operation>>& operations) const {
  MutexLock lock(owner_mutex_);
  for (const auto& operation : operations) {
    if (owner_) owner_->wake(*operation);
  }
}

std::vector<Recorded> AgentExecutor::recorded(std::string_view volume_name) {
  drop_gone_agents(volume_name);
  std::vector<Recorded> all;
  MutexLock lock(mutex_);
  const auto it = by_volume_.find(volume_name);
  if (it == by_volume_.end()) return {};
  for (const auto& entry : it->second) all.push_back({entry->operation, progress_of(*entry)});
  return all;
}

AgentState AgentExecutor::state_of(const std::string& node, const Agent& agent) const {
  return {.node = node,
          .pod = agent.pod,
          .program = agent.program,
          .presence = presence_of(agent, clock_.now()),
          .since = agent.since,
          .bases = agent.bases,
          .works = agent.works.size()};
}

std::vector<AgentState> AgentExecutor::agents() const {
  std::vector<AgentState> all;
  MutexLock lock(mutex_);
  for (const auto& [node, agent] : agents_) all.push_back(state_of(node, agent));
  return all;
}

std::vector<AgentWork> AgentExecutor::oldest_works(const std::string& node) const {
  constexpr std::size_t kMost = 5;
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  const auto it = agents_.find(node);
  if (it == agents_.end()) return {};
  std::vector<EntryPtr> entries;
  for (const auto& [name, entry] : it->second.works) entries.push_back(entry);
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, entries.size()));
  std::partial_sort(entries.begin(), end, entries.end(),
                    [](const auto& a, const auto& b) { return a->since < b->since; });
  entries.erase(end, entries.end());
  std::vector<AgentWork> oldest;
  oldest.reserve(entries.size());
  for (const auto& entry : entries) {
    oldest.push_back({entry->operation, progress_of(*entry).state, now - entry->since});
  }
  return oldest;
}

/// What was told of a directory before its agent was lost, or its disk, may not be so any more.
void AgentExecutor::doubt(const Agent& agent, const Entry& entry, Progress& progress) const {
  using Standing = Progress::Standing;
  const Operation& make = *entry.operation;
  if (make.kind != operation::Kind::kMake || progress.state != State::kSucceeded) return;
  const Presence there = presence_of(agent, clock_.now());
  if (there != Presence::kConnected) {
    const bool is_expected = there == Presence::kExpected;
    progress.standing = is_expected ? Standing::kAwaited : Standing::kDoubtful;
    if (is_expected) progress.changes_at = std::max(begun_, agent.lost) + kExpectedFor;
    return;
  }
  const auto base = std::find_if(agent.bases.begin(), agent.bases.end(),
                                 [&](const Base& one) { return one.path == make.base_path; });
  if (base == agent.bases.end()) return;
  const bool is_other =
      !progress.disk.empty() && !base->identity.empty() && base->identity != progress.disk;
  if (!is_other && base->problem.empty()) return;
  progress.standing = Standing::kAwaited;
  progress.message = fmt::format(
      "{} is made, but the agent on node {} does not see {} as it was then: {}", make.path,
      make.node, make.base_path,
      is_other ? fmt::format("disk {} was there, and now there is {}; mount it again, or restart "
                             "the agent if it has been replaced",
                             progress.disk, base->identity)
               : base->problem);
}

Progress AgentExecutor::progress_of(const Entry& entry) const {
  const TimePoint now = clock_.now();
  const Operation& operation = *entry.operation;
  const Agent& agent = agents_.at(operation.node);
  const auto cmd_timeout = surroundings_.cmd_timeout();
  const Presence there = presence_of(agent, now);
  const std::string away = fmt::format("the agent on node {} is not connected since {}",
                                       operation.node, format_rfc3339(agent.lost_wall));
  if (entry.cancelled) {
    Progress progress{.state = State::kEnding};
    const TimePoint limit = *entry.cancelled + cmd_timeout;
    if (now < limit) {
      progress.changes_at = limit;
    } else {
      progress.reason = there == Presence::kAbsent ? "AgentAway" : "StuckEnding";
      progress.message = fmt::format(
          "{} of {} was cancelled, but {}", to_string(operation.kind), operation.path,
          there == Presence::kAbsent
              ? away
              : fmt::format("the agent on node {} does not say that it has ended", operation.node));
    }
    return progress;
  }
  Progress progress = entry.progress;
  if (progress.over()) {
    doubt(agent, entry, progress);
    return progress;
  }
  progress.outdated = entry.outdated || entry.suspended;
  if (there == Presence::kAbsent) {
    progress.reason = "AgentAway";
    progress.message = away;
  } else if (there == Presence::kExpected) {
    progress.changes_at = std::max(begun_, agent.lost) + kExpectedFor;
  }
  // A large tree takes as long as it takes, as long as somebody works on it.
  if (removes(operation.kind) && there != Presence::kAbsent) return progress;
  const TimePoint late_at =
      (removes(operation.kind) ? std::max(entry.since, agent.lost) : entry.since) + cmd_timeout;
  if (now < late_at) {
    progress.changes_at = std::min(late_at, progress.changes_at.value_or(late_at));
    return progress;
  }
  progress.state = State::kLate;
  progress.changes_at.reset();
  if (progress.reason.empty()) progress.reason = "Timeout";
  progress.message = fmt::format(
      "{} of {} did not {} within {} s: {}", to_string(operation.kind), operation.path,
      entry.begun ? "end" : "begin", cmd_timeout.count(),
      progress.message.empty() ? fmt::format("is node {} up?", operation.node) : progress.message);
  return progress;
}

Admission AgentExecutor::admit(const Operation& operation) {
  if (!load_.admit(operation)) return {};
  return Admission([this, operation] { wake(load_.give_back(operation)); });
}

Result<operation::Executor::Start> AgentExecutor::start(const Operation& operation) {
  // An order that cannot be written would not reach the agent.
  LPP_RETURN_IF_ERROR(
      [&]() -> Result<void> {
        LPP_ASSIGN_OR_RETURN(const auto text, operation::encode_operation(operation), "operation");
        (void)text;
        return {};
      }(),
      "start");
  Effects effects;
  auto started = [&] {
    MutexLock lock(mutex_);
    return record(operation, effects);
  }();
  perform(effects);
  return started;
}

Result<operation::Executor::Start> AgentExecutor::record(const Operation& operation,
                                                         Effects& effects) {
  if (!active_) return not_active();
  if (const auto it = by_volume_.find(operation.volume_name); it != by_volume_.end()) {
    for (const auto& entry : it->second) {
      const Operation& other = *entry->operation;
      if (other.id() == operation.id()) {
        if (!removes(other.kind)) go_on(entry, effects);
        return Start::kRecorded;
      }
      if (other.kind == operation.kind && other.attempt == operation.attempt) {
        return Start::kOtherFound;
      }
    }
  }
  const auto it = agents_.find(operation.node);
  if (it == agents_.end() || presence_of(it->second, clock_.now()) != Presence::kConnected) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "the agent on node " + operation.node + " is not connected"};
  }
  Agent& agent = it->second;
  // It is on its way out at the agent: what is told of it now is about the former one.
  if (agent.forgotten.contains(name_of(operation.id()))) return Start::kOtherFound;
  const auto entry = add(agent, std::make_shared<const Operation>(operation));
  entry->ordered = clock_.now();
  order_start(agent, entry, effects);
  return Start::kRecorded;
}

/// Not while its agent is away: until that is back the owner's word grows old.
void AgentExecutor::go_on(const EntryPtr& entry, Effects& effects) {
  Agent& agent = agents_.at(entry->operation->node);
  if (!entry->suspended || presence_of(agent, clock_.now()) != Presence::kConnected) return;
  entry->suspended.reset();
  order_start(agent, entry, effects);
}

Result<void> AgentExecutor::cancel(const Id& id) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    for (const auto& entry : find(id)) cancel(entry, effects);
  }
  perform(effects);
  return {};
}

void AgentExecutor::cancel(const EntryPtr& entry, Effects& effects) {
  if (entry->cancelled) return;
  Agent& agent = agents_.at(entry->operation->node);
  if (entry->progress.over()) {
    // What a make has left nobody else may know of: that it is taken back is to be on record first.
    if (entry->operation->kind == operation::Kind::kMake) {
      effects.woken.push_back(entry->operation);
    } else {
      forget(agent, entry, true, effects);
    }
    return;
  }
  if (!entry->sent) {
    drop(agent, entry, effects);
    return;
  }
  entry->cancelled = clock_.now();
  entry->suspended.reset();
  effects.woken.push_back(entry->operation);
  if (!agent.complete) return;  // it is ordered when everything is told
  order_cancel(agent, entry, effects);
}

Result<bool> AgentExecutor::forget(const Id& id, When when) {
  Effects effects;
  bool none_left = false;
  {
    MutexLock lock(mutex_);
    for (const auto& entry : find(id)) {
      if (!entry->progress.over() || entry->cancelled) {
        cancel(entry, effects);
      } else {
        forget(agents_.at(entry->operation->node), entry, when == When::kNow, effects);
      }
    }
    none_left = find(id).empty();
  }
  perform(effects);
  return none_left;
}

void AgentExecutor::forget(Agent& agent, const EntryPtr& entry, bool urgent, Effects& effects) {
  const Id id = entry->operation->id();
  drop(agent, entry, effects);
  auto& forgotten = agent.forgotten[name_of(id)];
  forgotten = {.id = id};
  if (!agent.complete) return;
  forgotten.order =
      order(agent, {.order = {.what = Order::What::kForget, .id = id}, .urgent = urgent}, effects);
}

Progress AgentExecutor::lost(const Operation& operation) const {
  return {.state = State::kFailed,
          .message = "the agent on node " + operation.node +
                     " has it on record no more, though it had not ended",
          .reason = "RecordRemoved"};
}

Result<bool> AgentExecutor::can_resize(const Operation& operation) {
  if (presence(operation.node) == Presence::kConnected) return true;
  return Error{.code = ErrorCode::kUnavailable,
               .message = "the agent on node " + operation.node + " is not connected"};
}

void AgentExecutor::node_changed(std::string_view node) {
  std::vector<std::shared_ptr<const Operation>> there;
  {
    MutexLock lock(mutex_);
    const auto it = agents_.find(std::string(node));
    if (it == agents_.end()) return;
    for (const auto& [name, entry] : it->second.works) there.push_back(entry->operation);
  }
  wake(there);
}

AgentExecutor::EntryPtr AgentExecutor::add(Agent& agent,
                                           std::shared_ptr<const Operation> operation) {
  auto entry = std::make_shared<Entry>();
  entry->operation = std::move(operation);
  entry->since = clock_.now();
  const std::string name = name_of(entry->operation->id());
  ledger_.add(entry->operation);
  load_.began(*entry->operation, name);
  agent.works.emplace(name, entry);
  by_volume_[entry->operation->volume_name].push_back(entry);
  return entry;
}

void AgentExecutor::drop(Agent& agent, const EntryPtr& entry, Effects& effects) {
  const auto operation = entry->operation;
  const std::string name = name_of(operation->id());
  std::erase_if(agent.orders, [&](const Pending& pending) {
    return pending.entry == entry && pending.order.number > agent.last_given;
  });
  ledger_.remove(operation);
  const auto served = load_.ended(*operation, name);
  effects.woken.insert(effects.woken.end(), served.begin(), served.end());
  effects.woken.push_back(operation);
  agent.works.erase(name);
  const auto index = by_volume_.find(operation->volume_name);
  std::erase(index->second, entry);
  if (index->second.empty()) by_volume_.erase(index);
}

std::vector<AgentExecutor::EntryPtr> AgentExecutor::find(const Id& id) const {
  std::vector<EntryPtr> found;
  const auto it = by_volume_.find(id.volume_name);
  if (it == by_volume_.end()) return found;
  for (const auto& entry : it->second) {
    if (entry->operation->id() == id) found.push_back(entry);
  }
  return found;
}

}  // namespace lpp::agent
