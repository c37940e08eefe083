// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "agent/agent_executor.h"
#include "agent/executor_names.h"
#include "agent/protocol_version.h"
#include "agent/work.h"
#include "base/log.h"
#include "base/strings.h"

// What agents say, what they are ordered, and what time brings.

namespace lpp::agent {

using operation::Belief;
using operation::Operation;
using operation::Progress;

namespace {

/// A removal may not begin by an order that is older.
constexpr std::chrono::seconds kOrderIsGood{2};
/// How often time is looked at.
constexpr std::chrono::seconds kTick{1};
/// Of a node that has nothing on record and is not heard of, nothing is known after this.
constexpr std::chrono::minutes kForgetAgentAfter{10};
/// Orders are given in answers of about this size at most.
constexpr std::size_t kOrderBytes = kMaxMessage / 2;

Error refused(ErrorCode code, const char* reason, std::string message) {
  return {.code = code, .message = std::move(message), .reason = reason};
}

Error not_leading() {
  return refused(ErrorCode::kUnavailable, "not_leading", "this replica does not lead");
}

}  // namespace

std::string AgentExecutor::heard_pod(const std::string& node) const {
  MutexLock lock(mutex_);
  const auto it = agents_.find(node);
  return it == agents_.end() ? std::string() : it->second.pod;
}

void AgentExecutor::note_presence(const std::string& node, NodeAgent& agent, Effects& effects) {
  const TimePoint now = clock_.now();
  Presence there = presence_of(agent, now);
  if (there == agent.shown) return;
  if (agent.shown == Presence::kConnected) {
    agent.lost = now;
    agent.lost_wall = clock_.wall_now();
    there = presence_of(agent, now);
  }
  agent.shown = there;
  effects.nodes.push_back(node);
  for (const auto& [name, entry] : agent.works) effects.wake(*entry);
}

bool AgentExecutor::sees(const std::string& node, const std::string& base_path) const {
  MutexLock lock(mutex_);
  const auto it = agents_.find(node);
  if (it == agents_.end()) return false;
  const Base* const base = find_base(it->second.bases, base_path);
  return base != nullptr && base->problem.empty();
}

Result<Welcome> AgentExecutor::hello(const AgentIdentity& identity, const Hello& hello) {
  LPP_ASSIGN_OR_RETURN(const int spoken, spoken_with(hello.protocol), "hello");
  const auto base_paths = surroundings_.base_paths(identity.node);
  Effects effects;
  std::string rival;
  Welcome welcome{.protocol = spoken,
                  .program = settings_.program,
                  .base_paths = base_paths,
                  .cluster = surroundings_.cluster()};
  {
    MutexLock lock(mutex_);
    if (!active_) return not_leading();
    const auto [it, added] = agents_.try_emplace(identity.node);
    NodeAgent& agent = it->second;
    if (added) {
      agent.lost = begun_;
      agent.lost_wall = clock_.wall_now();
      agent.shown = presence_of(agent, clock_.now());
    }
    if (agent.held) end_session(agent, effects);
    agent.was_doubted = false;
    agent.left_out.clear();
    welcome.session = fmt::format("{}-{}", settings_.instance, ++last_session_);
    agent.session = welcome.session;
    agent.program = hello.program;
    // Other mounts than those of the former one, where that is meant to be.
    if (identity.pod.empty() || identity.pod != agent.pod) agent.seen_disks.clear();
    if (is_rival(agent, identity.pod)) rival = agent.former_pod;
    agent.since = clock_.wall_now();
    if (std::exchange(agent.complete, false) || added) agent.tells_since = clock_.now();
    agent.heard = clock_.now();
    agent.orders.clear();
    agent.last_order = 0;
    agent.last_given = 0;
    agent.base_paths = base_paths;
    agent.told.clear();
    agent.used.clear();
    orphans_.forget_parts(identity.node);
    for (auto& [name, forgotten] : agent.forgotten) forgotten.order = 0;
    note_presence(identity.node, agent, effects);
  }
  perform(effects);
  // They may have changed since, when nobody knew of this session yet.
  if (surroundings_.base_paths(identity.node) != base_paths) bases_changed();
  if (!rival.empty()) {
    log::warn(
        "pods {} and {} both speak for node {}, and end each other's sessions: "
        "let one agent run on each node",
        identity.pod, rival, identity.node);
    if (surroundings_.rivals) surroundings_.rivals(identity.node, identity.pod, rival);
  }
  return welcome;
}

/// It begins another one, and tells everything anew.
void AgentExecutor::end_session(NodeAgent& agent, Effects& effects) {
  agent.session.clear();
  if (!agent.held) return;
  effects.answers.emplace_back(std::move(agent.held->answer),
                               refused(ErrorCode::kExpired, "session", "a newer one is to begin"));
  agent.held.reset();
}

Result<AgentExecutor::NodeAgent*> AgentExecutor::session_of(const AgentIdentity& identity,
                                                            const std::string& session) {
  if (!active_) return not_leading();
  const auto it = agents_.find(identity.node);
  if (it == agents_.end() || session.empty() || it->second.session != session) {
    return refused(ErrorCode::kExpired, "session", "the session has ended: begin with hello");
  }
  return &it->second;
}

Result<Told> AgentExecutor::tell(const AgentIdentity& identity, Tell tell) {
  const std::string& node = identity.node;
  bool everything = tell.everything;
  {
    // Before it costs anything.
    MutexLock lock(mutex_);
    LPP_ASSIGN_OR_RETURN(const NodeAgent* const agent, session_of(identity, tell.session), "tell");
    if (tell.inventory) keep_below_bases(*agent, tell.inventory->directories);
    keep_below_bases(*agent, tell.sweeps);
  }
  const std::vector<Belief> beliefs = judge(tell.works);
  if (tell.inventory) {
    auto& directories = tell.inventory->directories;
    directories = surroundings_.nobodys(node, std::move(directories), false);
  }
  if (!tell.sweeps.empty()) {
    tell.sweeps = surroundings_.nobodys(node, std::move(tell.sweeps), true);
  }
  Effects effects;
  Told answer;
  std::optional<std::vector<Base>> bases;
  std::vector<LeftOut> troubles;
  {
    MutexLock lock(mutex_);
    LPP_ASSIGN_OR_RETURN(NodeAgent* const agent, session_of(identity, tell.session), "tell");
    troubles = sort_out(node, *agent, tell, beliefs, effects);
    agent->heard = clock_.now();
    everything = everything && !agent->complete;  // else a repetition
    if (tell.bases) {
      // What it was not asked for is none of ours.
      std::erase_if(*tell.bases, [&](const Base& base) {
        const auto& asked = agent->base_paths;
        return std::find(asked.begin(), asked.end(), base.path) == asked.end();
      });
      // What was listed of another disk says nothing of this one.
      const auto same_disk = [](const Base& a, const Base& b) {
        return a.path == b.path && a.identity == b.identity;
      };
      if (!std::equal(agent->bases.begin(), agent->bases.end(), tell.bases->begin(),
                      tell.bases->end(), same_disk)) {
        orphans_.forget_node(node);
      }
      saw_bases(node, *agent, *tell.bases, effects);
    }
    bases = std::move(tell.bases);
    for (Work& work : tell.works) {
      apply(*agent, std::move(work), everything, bases.has_value(), effects);
    }
    for (const Ended& ended : tell.ended) {
      agent->forgotten.erase(name_of(ended.id));
      agent->left_out.erase(name_of(ended.id));
      const auto it = agent->works.find(name_of(ended.id));
      if (it == agent->works.end() || !it->second->cancelled) continue;
      // A repeated word may be about one that has begun anew since, and been called off, too.
      if (are_other_orders(it->second->serial, ended.serial)) continue;
      drop(*agent, EntryPtr(it->second), effects);
    }
    note_uses(node, *agent, tell, everything);
    if (tell.inventory) orphans_.note(node, *tell.inventory);
    if (!tell.sweeps.empty()) {
      const WorkPlaces works = work_places(*agent);
      for (const Listed& one : tell.sweeps) {
        if (!works.has(one)) answer.sweep.push_back(one.path);
      }
    }
    if (everything && tell.last) told_everything(*agent, effects);
    for (const operation::Id& id : tell.asks) {
      const auto it = agent->works.find(name_of(id));
      if (it == agent->works.end()) continue;
      Entry& entry = *it->second;
      if (entry.cancelled || entry.suspended || entry.progress.over()) continue;
      if (entry.ordered && clock_.now() - *entry.ordered <= kOrderIsGood) {
        answer.begin.push_back(id);
      } else {
        outdate(entry, effects);
      }
    }
    note_presence(node, *agent, effects);
  }
  tell_left_out(node, troubles);
  for (const Operation& removal : tell.nothing_left) {
    log::warn("node {}: {} of {} was called off, and nothing of it was left to be put back", node,
              to_string(removal.kind), removal.path);
    surroundings_.not_put_back(removal,
                               "the directory is not in its place: it was called off too late, "
                               "nothing of it was left to be put back");
  }
  if (bases) surroundings_.bases_told(node, *bases);
  perform(effects);
  return answer;
}

/// Of what is over, in a tell of everything: the disk knows better than what was told before.
void AgentExecutor::retold(const EntryPtr& entry, Progress told, Effects& effects) {
  if (removes(entry->operation->kind) || entry->progress == told) return;
  entry->progress = std::move(told);
  effects.wake(*entry);
  if (entry->progress.over()) {
    entry->over_since = TimePoint();  // it has looked at its disks since
    return;
  }
  entry->suspended = true;
  entry->since = clock_.now();
  load_.began(*entry->operation, name_of(entry->operation->id()));
}

void AgentExecutor::apply(NodeAgent& agent, Work work, bool everything, bool has_looked,
                          Effects& effects) {
  const std::string name = name_of(work.operation.id());
  if (everything) agent.told.insert(name);
  // What is told of it has not heard yet that it is to be forgotten, unless it is of another order:
  // then it came to light with a disk that was missing, and the agent keeps it.
  if (const auto gone = agent.forgotten.find(name); gone != agent.forgotten.end()) {
    if (!are_other_orders(gone->second.serial, work.serial.value_or(""))) return;
    agent.forgotten.erase(gone);
  }
  EntryPtr entry;
  const auto it = agent.works.find(name);
  const bool is_news = it == agent.works.end();
  if (!is_news) {
    entry = it->second;
  } else {
    entry = add(agent, std::make_shared<const Operation>(std::move(work.operation)));
    entry->serial = work.serial.value_or("");
    // What nobody here has ordered waits for word, whoever has ordered it. What removes is called
    // off: it begins anew when whoever decides wants it now. Of what takes back nobody may know but
    // by this record: its owner calls it off, and takes note of it first.
    if (!work.progress.over()) {
      if (entry->operation->kind == operation::Kind::kRemove) {
        entry->cancelled = clock_.now();
      } else {
        entry->suspended = true;
      }
    }
    const bool ends_here = work.progress.reason == kCannotCallOff;  // it acts no more
    if (entry->cancelled && !everything && !ends_here) order_cancel(agent, entry, effects);
  }
  entry->sent = true;
  // Its word is about what it knows of: not about what it had begun before its disk went missing.
  if (entry->had_before && work.progress.directory == operation::Directory::kAbsent) {
    work.progress.directory = operation::Directory::kUnknown;
  }
  // The outcome of a former one under this number, that the agent was to forget.
  const bool is_former = !entry->serial.empty() && work.serial && *work.serial != entry->serial;
  const bool acts_no_more = work.progress.over() || work.progress.reason == kCannotCallOff;
  if (is_former && acts_no_more) return;
  if (entry->cancelled && work.progress.reason == kCannotCallOff) {
    log::warn("node {}: {} of {}: {}", entry->operation->node, to_string(entry->operation->kind),
              entry->operation->path, work.progress.message);
    // It acts no more. What is left of it stays on the node's disk, beside the records.
    const bool may_not_have_begun = work.progress.directory == operation::Directory::kKept;
    if (entry->operation->kind == operation::Kind::kRemove && !may_not_have_begun) {
      effects.not_put_back.emplace_back(
          entry->operation, "the directory is not in its place: " + work.progress.message);
    }
    return drop(agent, entry, effects);
  }
  // It has ended: what it has left is for the owner to take back.
  const bool has_ended = entry->operation->kind == operation::Kind::kMake && work.progress.over();
  if (entry->cancelled && has_ended) entry->cancelled.reset();
  if (entry->cancelled) return;  // a late word
  if (entry->progress.over()) {
    if (everything) retold(entry, std::move(work.progress), effects);
    return;
  }
  if (work.progress.reason == kCannotCallOff) work.progress.state = Progress::State::kFailed;
  entry->gone = work.gone;
  const bool was_begun =
      std::exchange(entry->begun, entry->begun || work.progress.state != Progress::State::kWaiting);
  if (was_begun && work.progress.state == Progress::State::kWaiting && !everything) return;
  if (entry->progress == work.progress && !is_news) return;
  entry->progress = std::move(work.progress);
  effects.wake(*entry);
  if (!entry->progress.over()) return;
  // An agent that comes back has looked at its disks since.
  entry->over_since = is_news && everything ? TimePoint() : clock_.now();
  entry->suspended = false;
  if (!is_news && !everything && !has_looked) learn_disk(agent, *entry);
  effects.wake(load_.ended(*entry->operation, name));
}

/// Caches may be behind: what the owner wanted a while ago it may not want any more, without
/// knowing that yet.
void AgentExecutor::outdate(Entry& entry, Effects& effects) {
  entry.outdated = true;
  effects.wake(entry);
}

void AgentExecutor::told_everything(NodeAgent& agent, Effects& effects) {
  agent.complete = true;
  const std::set<std::string> told = std::exchange(agent.told, {});
  const std::map<std::string, EntryPtr> works = agent.works;
  for (const auto& [name, entry] : works) {
    entry->ordered.reset();
    if (told.contains(name)) {
      if (entry->cancelled) {
        order_cancel(agent, entry, effects);
      } else if (!entry->progress.over() && !entry->suspended) {
        order_start(agent, entry, effects);  // ordered by us, and not called off
      }
    } else if (removes(entry->operation->kind) && !entry->progress.over()) {
      // What it had begun may not be in its book: the disk was full, or has no book yet.
      if (entry->cancelled) {
        order_cancel(agent, entry, effects);
      } else {
        outdate(*entry, effects);
      }
    } else if (entry->cancelled || entry->begun || entry->suspended) {
      drop(agent, entry, effects);  // it acts no more, or somebody took its record away
    } else {
      entry->had_before = entry->had_before || entry->sent;
      entry->sent = false;
      order_start(agent, entry, effects);
    }
  }
  for (auto it = agent.forgotten.begin(); it != agent.forgotten.end();) {
    if (!told.contains(it->first)) {
      it = agent.forgotten.erase(it);
      continue;
    }
    order_forget(agent, it->second, true, effects);
    ++it;
  }
}

AgentExecutor::Ticket AgentExecutor::poll(const AgentIdentity& identity, const Poll& poll,
                                          Answer answer) {
  Effects effects;
  Ticket ticket = 0;
  {
    MutexLock lock(mutex_);
    ticket = ++last_ticket_;
    const auto session = session_of(identity, poll.session);
    if (!session.ok()) {
      effects.answers.emplace_back(std::move(answer), session.error());
    } else if (poll.taken > (*session)->last_given) {
      effects.answers.emplace_back(std::move(answer),
                                   refused(ErrorCode::kInvalid, "malformed",
                                           "taken: orders up to that number were not given"));
    } else {
      NodeAgent& agent = **session;
      std::erase_if(agent.orders,
                    [&](const Pending& pending) { return pending.order.number <= poll.taken; });
      std::erase_if(agent.forgotten, [&](const auto& item) {
        return item.second.order > 0 && item.second.order <= poll.taken;
      });
      if (agent.held) effects.answers.emplace_back(std::move(agent.held->answer), Orders{});
      agent.heard = clock_.now();
      // Not all at one time.
      const Duration hold = settings_.hold - settings_.hold / 640 * (ticket % 64);
      agent.held =
          Held{.ticket = ticket, .answer = std::move(answer), .until = clock_.now() + hold};
      if (!agent.orders.empty()) give_orders(agent, effects);
      note_presence(identity.node, agent, effects);
    }
  }
  perform(effects);
  return ticket;
}

void AgentExecutor::abandon(const AgentIdentity& identity, Ticket ticket) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    const auto it = agents_.find(identity.node);
    if (it == agents_.end() || !it->second.held || it->second.held->ticket != ticket) return;
    it->second.held.reset();
    it->second.heard = TimePoint::min() + kSilence;  // far away
    note_presence(identity.node, it->second, effects);
  }
  perform(effects);
}

/// With the operation: an agent that has lost its record of a removal puts back what is left, too.
void AgentExecutor::order_cancel(NodeAgent& agent, const EntryPtr& entry, Effects& effects) {
  (void)order(
      agent,
      {.order = {.what = Order::What::kCancel,
                 .operation = removes(entry->operation->kind) ? std::optional(*entry->operation)
                                                              : std::nullopt,
                 .id = entry->operation->id(),
                 .serial = entry->serial,
                 .keep = entry->operation->kind == operation::Kind::kMake}},
      effects);
}

void AgentExecutor::order_start(NodeAgent& agent, const EntryPtr& entry, Effects& effects) {
  Pending pending{.order = {.what = Order::What::kStart,
                            .operation = *entry->operation,
                            .serial = entry->serial},
                  .entry = entry};
  (void)order(agent, std::move(pending), effects);
}

std::int64_t AgentExecutor::order(NodeAgent& agent, Pending pending, Effects& effects) {
  pending.order.number = ++agent.last_order;
  pending.bytes = encode(Orders{{pending.order}}).size();
  const bool urgent = pending.urgent;
  agent.orders.push_back(std::move(pending));
  if (urgent) give_orders(agent, effects);
  return agent.last_order;
}

void AgentExecutor::give_orders(NodeAgent& agent, Effects& effects) {
  if (!agent.held) return;
  effects.answers.emplace_back(std::move(agent.held->answer), take_orders(agent));
  agent.held.reset();
  agent.heard = clock_.now();
}

/// They stay until they are taken.
Orders AgentExecutor::take_orders(NodeAgent& agent) {
  Orders orders;
  std::size_t bytes = 0;
  for (const Pending& pending : agent.orders) {
    bytes += pending.bytes;
    if (orders.orders.size() == kMaxOrders || (bytes > kOrderBytes && !orders.orders.empty())) {
      break;
    }
    orders.orders.push_back(pending.order);
    agent.last_given = std::max(agent.last_given, pending.order.number);
    if (pending.entry) pending.entry->sent = true;
  }
  return orders;
}

Duration AgentExecutor::tick() {
  look_at_left_out();
  Effects effects;
  {
    MutexLock lock(mutex_);
    if (!active_) return kTick;
    const TimePoint now = clock_.now();
    if (all_expected_ && now >= begun_ + kExpectedFor) {
      all_expected_ = false;
      effects.nodes.emplace_back();
    }
    for (auto it = agents_.begin(); it != agents_.end();) {
      auto& [node, agent] = *it;
      if (agent.held && (!agent.orders.empty() || now >= agent.held->until)) {
        give_orders(agent, effects);
      }
      note_presence(node, agent, effects);
      const bool unknown = agent.shown == Presence::kAbsent && agent.works.empty() &&
                           now >= agent.lost + kForgetAgentAfter;
      if (unknown) {
        usage_.forget_node(node);
        orphans_.forget_node(node);
      }
      it = unknown ? agents_.erase(it) : std::next(it);
    }
  }
  perform(effects);
  return kTick;
}

}  // namespace lpp::agent
