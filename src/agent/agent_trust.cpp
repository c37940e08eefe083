// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "agent/agent_executor.h"
#include "agent/executor_names.h"
#include "agent/work.h"
#include "base/log.h"

// What of the words of agents is believed. They are left out one by one: what is wrong with one,
// such as a record that came with a disk of another node, must not silence the others.

namespace lpp::agent {

using operation::Belief;
using operation::Kind;
using operation::Operation;
using operation::Progress;

namespace {

// On record of one node; nobody has so many, or so large ones, but somebody may say so.
constexpr std::size_t kMostWorks = 20'000;
constexpr std::size_t kMostBytesOfWorks = 32UL << 20U;
/// Of one volume on one node: attempts that have ended are forgotten before others begin.
constexpr std::size_t kMostOfVolume = 32;
/// Different ones of a node that are logged; and those that are kept, of either kind.
constexpr std::size_t kMostTroubles = 100;

/// How often it is looked whether what was left out is to be heard.
constexpr std::chrono::minutes kLookAgain{1};

/// Two pods that speak for a node do so about as often as they are refused.
constexpr std::chrono::minutes kRivalsFor{5};
constexpr std::chrono::minutes kTellRivals{15};

/// That a message of agents can hold: what only we say of operations is not theirs to say.
Progress plain(Progress progress) {
  if (progress.state == Progress::State::kLate || progress.state == Progress::State::kEnding) {
    progress.state = Progress::State::kRunning;
  }
  progress.acts_no_more = false;
  progress.changes_at.reset();
  return progress;
}

/// What it takes in memory, about.
std::size_t weight_of(const Operation& operation, const Progress& progress) {
  std::size_t bytes = sizeof(Operation) + sizeof(Progress);
  for (const std::string* text :
       {&operation.volume_name, &operation.claim.ns, &operation.claim.name, &operation.owner_uid,
        &operation.claim_uid, &operation.storage_class, &operation.node, &operation.base_path,
        &operation.path, &operation.volume_mode, &operation.user, &operation.group, &operation.perm,
        &operation.limits.reserve, &operation.disk, &progress.message, &progress.reason}) {
    bytes += text->size();
  }
  if (operation.shape) {
    const auto& shape = *operation.shape;
    bytes += shape.affinity_key.size() + shape.affinity_value.size() + shape.reclaim_policy.size() +
             shape.provisioner.size();
    for (const std::string& option : shape.mount_options)
      bytes += sizeof(std::string) + option.size();
  }
  return bytes;
}

}  // namespace

/// How a volume looks, and to which nodes it is tied, is never an agent's word: it is made from
/// class, claim and node when there is to be one.
std::vector<Belief> AgentExecutor::judge(std::vector<Work>& works) const {
  std::vector<Belief> beliefs;
  beliefs.reserve(works.size());
  for (Work& work : works) {
    work.progress = plain(std::move(work.progress));
    work.operation.shape.reset();
    const bool has_failed = work.progress.state == State::kFailed;
    if (work.operation.kind == Kind::kMake && has_failed && work.progress.reason == kOtherDisk) {
      work.progress.unfit = true;
    }
    beliefs.push_back(belief_of(work.operation));
  }
  return beliefs;
}

Belief AgentExecutor::belief_of(const Operation& told) const {
  // Below its base path, and not where the records are.
  const auto place = place_of(told);
  return place.ok() ? surroundings_.belief(told) : Belief{.against = place.error().message};
}

bool AgentExecutor::is_taken(const Operation& told, bool at_home) const {
  const auto all = find(told.id());
  return std::any_of(all.begin(), all.end(), [&](const EntryPtr& entry) {
    // What was ordered here is where it belongs.
    return entry->operation->node != told.node && (!at_home || entry->is_ours);
  });
}

void AgentExecutor::drop_strangers(const Operation& told, Effects& effects) {
  for (const EntryPtr& entry : find(told.id())) {
    const std::string& node = entry->operation->node;
    if (node != told.node) drop(agents_.at(node), entry, effects);
  }
}

/// The claim, the volume or the other node's work that spoke against it may have changed.
void AgentExecutor::look_at_left_out() {
  struct Look {
    std::string node{};
    std::string session{};
    std::vector<Operation> told{};
    std::vector<Belief> beliefs{};
  };
  std::vector<Look> looks;
  {
    MutexLock lock(mutex_);
    const TimePoint now = clock_.now();
    if (now < left_out_due_) return;
    left_out_due_ = now + kLookAgain;
    for (const auto& [node, agent] : agents_) {
      if (agent.session.empty() || !agent.complete) continue;
      Look look{.node = node, .session = agent.session};
      for (const auto& [name, left] : agent.left_out) {
        if (left.may_count && !agent.works.contains(name)) look.told.push_back(*left.operation);
      }
      if (!look.told.empty()) looks.push_back(std::move(look));
    }
  }
  for (Look& look : looks) {
    for (const Operation& told : look.told) look.beliefs.push_back(belief_of(told));
  }
  Effects effects;
  {
    MutexLock lock(mutex_);
    for (const Look& look : looks) {
      const auto agent = agents_.find(look.node);
      if (agent == agents_.end() || agent->second.session != look.session) continue;
      bool is_to_be_heard = false;
      for (std::size_t i = 0; i < look.told.size(); ++i) {
        const auto& [against, at_home] = look.beliefs[i];
        is_to_be_heard = is_to_be_heard || (against.empty() && !is_taken(look.told[i], at_home));
      }
      if (is_to_be_heard) end_session(agent->second, effects);
    }
  }
  perform(effects);
}

/// An order that was taken for one that was given before under its number, by another leader and in
/// another place: whatever has become of that, what was ordered has not been done.
Work AgentExecutor::taken_for_other(const Entry& ours, const Work& told) {
  const Operation& order = *ours.operation;
  return {
      .operation = order,
      .progress = {.state = State::kFailed,
                   .message = fmt::format(
                       "{} of {} was not done: under its number the agent on node {} has another "
                       "one on record, at {}",
                       to_string(order.kind), order.path, order.node,
                       log::quoted(told.operation.path)),
                   .reason = "OtherWork"},
      .serial = told.serial};
}

std::vector<LeftOut> AgentExecutor::sort_out(const std::string& node, NodeAgent& agent, Tell& tell,
                                             const std::vector<Belief>& beliefs, Effects& effects) {
  std::vector<std::pair<const char*, LeftOut>> refusals;
  const auto refuse = [&](const char* reason, std::string words,
                          const Operation* operation = nullptr) {
    LeftOut left{.words = std::move(words)};
    if (operation != nullptr) {
      left.operation = *operation;
      left.may_count = operation->node == node && !operation->shared;
    }
    refusals.emplace_back(reason, std::move(left));
  };
  for (std::string& words : tell.unread) refuse("unreadable", std::move(words));

  std::size_t count = agent.works.size();
  std::size_t bytes = 0;
  for (const auto& [name, entry] : agent.works) {
    bytes += weight_of(*entry->operation, entry->progress);
  }
  // By volume, with those on record already.
  std::map<std::string, std::size_t> new_of_volume;
  std::vector<Work> good;
  good.reserve(tell.works.size());
  for (std::size_t i = 0; i < tell.works.size(); ++i) {
    Work& work = tell.works[i];
    const Operation& operation = work.operation;
    const bool may_count = operation.node == node && !operation.shared;
    const auto known = agent.works.find(name_of(operation.id()));
    const bool is_new = known == agent.works.end();
    agent.left_out.erase(name_of(operation.id()));
    // What is known is what was ordered, or told first: of it only the progress is heard.
    if (may_count && is_new && !beliefs[i].against.empty()) {
      agent.was_doubted = true;
      refuse("unbelievable",
             fmt::format("{} of volume {} at {} was not ordered by this replica, and is neither "
                         "published nor undone: {}",
                         to_string(operation.kind), log::quoted(operation.volume_name),
                         log::quoted(operation.path), beliefs[i].against),
             &operation);
      continue;
    }
    const bool at_home = is_new && beliefs[i].at_home;
    if (!may_count || is_taken(operation, at_home)) {
      agent.was_doubted = true;
      refuse("foreign",
             fmt::format("{} of volume {} at {} is an operation of {}", to_string(operation.kind),
                         log::quoted(operation.volume_name), log::quoted(operation.path),
                         may_count ? "another node" : "node " + log::quoted(operation.node)),
             &operation);
      continue;
    }
    if (at_home) drop_strangers(operation, effects);
    if (!is_new && !operation::same_work(operation, *known->second->operation)) {
      const Entry& ours = *known->second;
      refuse("other",
             fmt::format("{} of volume {} at {} stands under the number of what is to be "
                         "done at {}",
                         to_string(operation.kind), log::quoted(operation.volume_name),
                         log::quoted(operation.path), ours.operation->path),
             &operation);
      // Of a former order: what was ordered here comes when that has gone. Else the agent has taken
      // the order for the other work, and goes on with that.
      if (work.serial && *work.serial != ours.serial) continue;
      if (!ours.is_ours) continue;
      work = taken_for_other(ours, work);
    }
    std::size_t after = bytes + weight_of(operation, work.progress);
    if (!is_new) after -= weight_of(*known->second->operation, known->second->progress);
    std::size_t& of_volume = new_of_volume[operation.volume_name];
    const auto others = by_volume_.find(operation.volume_name);
    if (is_new && of_volume == 0 && others != by_volume_.end()) {
      of_volume = static_cast<std::size_t>(
          std::count_if(others->second.begin(), others->second.end(),
                        [&](const EntryPtr& entry) { return entry->operation->node == node; }));
    }
    const bool too_many = is_new && (count >= kMostWorks || of_volume >= kMostOfVolume);
    if (after > kMostBytesOfWorks || too_many) {
      refuse("too_many", "more operations than anybody has, or larger ones");
      continue;
    }
    bytes = after;
    if (is_new) {
      ++count;
      ++of_volume;
    }
    good.push_back(std::move(work));
  }
  tell.works = std::move(good);
  std::erase_if(tell.nothing_left, [&](const Operation& removal) {
    const bool is_foreign = removal.node != node || removal.shared;
    if (is_foreign) refuse("foreign", "a removal that was called off is not of this node");
    return is_foreign;
  });
  std::vector<LeftOut> news;
  // What never counts, as all that is told of other nodes, takes no room from what may.
  std::map<bool, std::size_t> kept;
  for (const auto& [name, left] : agent.left_out) ++kept[left.may_count];
  for (auto& [reason, left] : refusals) {
    ++left_out_[reason];
    if (left.operation && kept[left.may_count] < kMostTroubles) {
      LeftOut& place = agent.left_out[name_of(left.operation->id())];
      if (place.operation) --kept[place.may_count];
      ++kept[left.may_count];
      place = left;
    }
    // Each session tells it anew.
    const bool has_room = agent.troubles.size() < kMostTroubles;
    if (has_room && agent.troubles.insert(left.words).second) news.push_back(std::move(left));
  }
  return news;
}

void AgentExecutor::tell_left_out(const std::string& node, const std::vector<LeftOut>& news) const {
  for (const LeftOut& one : news) {
    log::warn("the agent on node {} tells what is left out: {}", node, one.words);
    if (surroundings_.left_out) surroundings_.left_out(node, one);
  }
}

/// Pods of a DaemonSet follow each other and do not come again; what ended the session of one that
/// is alive is another one that is.
bool AgentExecutor::is_rival(NodeAgent& agent, const std::string& pod) const {
  if (pod == agent.pod) return false;
  const TimePoint now = clock_.now();
  const bool comes_again =
      !pod.empty() && pod == agent.former_pod && now < agent.pod_since + kRivalsFor;
  agent.came_again = comes_again ? agent.came_again + 1 : 0;
  agent.former_pod = std::exchange(agent.pod, pod);
  agent.pod_since = now;
  if (rival_of(agent).empty()) return false;
  if (agent.rivals_told && now < *agent.rivals_told + kTellRivals) return false;
  agent.rivals_told = now;
  return true;
}

/// One that is about to end may come once more.
std::string AgentExecutor::rival_of(const NodeAgent& agent) const {
  const bool is_one = agent.came_again >= 2 && clock_.now() < agent.pod_since + kRivalsFor;
  return is_one ? agent.former_pod : std::string();
}

std::map<std::string, std::uint64_t> AgentExecutor::left_out() const {
  MutexLock lock(mutex_);
  return left_out_;
}

}  // namespace lpp::agent
