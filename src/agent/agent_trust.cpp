// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_executor.h"
#include "agent/executor_names.h"
#include "agent/work.h"

// What of the words of agents is believed. They are left out one by one: what is wrong with one,
// such as a record that came with a disk of another node, must not silence the others.

namespace lpp::agent {

using operation::Kind;
using operation::Operation;
using operation::Progress;

namespace {

// On record of one node; nobody has so many, or so large ones, but somebody may say so.
constexpr std::size_t kMostWorks = 20'000;
constexpr std::size_t kMostBytes = 32UL << 20U;
/// Different ones of a node that are logged.
constexpr std::size_t kMostTroubles = 100;

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

/// A volume of what it says it has made must not be tied to other nodes.
Result<void> AgentExecutor::believe(const std::string& node, std::vector<Work>& works) const {
  constexpr std::size_t kMostLabels = 32;  // classes have few keys, and a node one value for each
  std::map<std::pair<std::string, std::string>, bool> known;
  for (Work& work : works) {
    work.progress = plain(std::move(work.progress));
    const bool has_failed = work.progress.state == State::kFailed;
    if (work.operation.kind == Kind::kMake && has_failed && work.progress.reason == kOtherDisk) {
      work.progress.unfit = true;
    }
    const auto& shape = work.operation.shape;
    if (work.operation.kind != Kind::kMake || !shape || work.progress.state != State::kSucceeded) {
      continue;
    }
    if (shape->has_affinity) {
      const auto [label, is_new] =
          known.try_emplace({shape->affinity_key, shape->affinity_value}, false);
      if (is_new && known.size() <= kMostLabels) {
        const auto has = surroundings_.has_label(node, label->first.first, label->first.second);
        // It tells the same again after a while.
        if (!has.ok()) {
          return Error{.code = ErrorCode::kTooManyRequests,
                       .message = has.error().message,
                       .reason = "labels"};
        }
        label->second = *has;
      }
      if (label->second) continue;
    }
    work.progress = {.state = State::kFailed,
                     .message = fmt::format("the record on node {} is of a volume that is not tied "
                                            "to this node, or its labels have changed",
                                            node),
                     .reason = "RecordRefused"};
  }
  return {};
}

std::vector<std::string> AgentExecutor::sort_out(const std::string& node, Agent& agent,
                                                 Tell& tell) {
  std::vector<std::pair<const char*, std::string>> refusals;
  const auto refuse = [&](const char* reason, std::string words) {
    refusals.emplace_back(reason, std::move(words));
  };
  for (std::string& words : tell.unread) refuse("unreadable", std::move(words));

  std::size_t count = agent.works.size();
  std::size_t bytes = 0;
  for (const auto& [name, entry] : agent.works) {
    bytes += weight_of(*entry->operation, entry->progress);
  }
  std::vector<Work> good;
  good.reserve(tell.works.size());
  for (Work& work : tell.works) {
    const Operation& operation = work.operation;
    bool foreign = operation.node != node || operation.shared;
    for (const auto& entry : find(operation.id())) {
      foreign = foreign || entry->operation->node != node;
    }
    if (foreign) {
      refuse("foreign",
             fmt::format("{} of volume {} is an operation of node {}", to_string(operation.kind),
                         operation.volume_name, operation.node.empty() ? "-" : operation.node));
      continue;
    }
    const auto known = agent.works.find(name_of(operation.id()));
    const bool is_new = known == agent.works.end();
    std::size_t after = bytes + weight_of(operation, work.progress);
    if (!is_new) after -= weight_of(*known->second->operation, known->second->progress);
    if (after > kMostBytes || (is_new && count >= kMostWorks)) {
      refuse("too_many", "more operations than anybody has, or larger ones");
      continue;
    }
    bytes = after;
    if (is_new) ++count;
    good.push_back(std::move(work));
  }
  tell.works = std::move(good);
  std::erase_if(tell.nothing_left, [&](const Operation& removal) {
    const bool is_foreign = removal.node != node || removal.shared;
    if (is_foreign) refuse("foreign", "a removal that was called off is not of this node");
    return is_foreign;
  });
  std::vector<std::string> news;
  for (auto& [reason, words] : refusals) {
    ++left_out_[reason];
    // Each session tells it anew.
    const bool has_room = agent.troubles.size() < kMostTroubles;
    if (has_room && agent.troubles.insert(words).second) news.push_back(std::move(words));
  }
  return news;
}

std::map<std::string, std::uint64_t> AgentExecutor::left_out() const {
  MutexLock lock(mutex_);
  return left_out_;
}

}  // namespace lpp::agent
