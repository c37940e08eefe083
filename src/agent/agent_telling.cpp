// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "agent/agent.h"

// What the agent tells, in parts that fit into a message.

namespace lpp::agent {

using operation::Id;

void Agent::begin_session() {
  MutexLock lock(mutex_);
  pending_.reset();
  ended_.clear();
  everything_ = true;
  bases_told_ = 0;
  uses_.tell_anew();
  inventory_.tell_anew();
  session_began_ = clock_.now();
  leftovers_news_ = !leftovers_.empty();
  for (const auto& [key, entry] : entries_) {
    entry->next.reset();  // who still wants it orders it again
    entry->version = ++version_;
    // What is to be forgotten is nobody's news.
    entry->told = entry->forgotten ? entry->version : 0;
  }
}

WorkView Agent::view() {
  MutexLock lock(mutex_);
  WorkView view{.queued = quick_.size() + slow_.size(), .on_record = entries_.size()};
  for (const Base& base : bases_) view.bases[base.path] = base.problem.empty();
  return view;
}

bool Agent::has_to_tell() const {
  if (everything_ || !ended_.empty() || !nothing_left_.empty() || bases_told_ != bases_version_ ||
      uses_.any_news() || inventory_.any_news() || leftovers_news_) {
    return true;
  }
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& item) { return item.second->version != item.second->told; });
}

bool Agent::wait_to_tell(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    to_tell_.notify_all();
  });
  MutexLock lock(mutex_);
  while (!stop.stop_requested() && !has_to_tell()) to_tell_.wait(mutex_);
  return !stop.stop_requested();
}

std::optional<Tell> Agent::next_tell() {
  MutexLock lock(mutex_);
  if (pending_) return pending_->tell;
  if (!has_to_tell()) return std::nullopt;
  // Room for what else stands in a message.
  constexpr std::size_t kMostBytes = kMaxMessage / 2;
  Pending next;
  next.tell.everything = everything_;
  if (bases_told_ != bases_version_) {
    next.tell.bases = bases_;
    next.bases_version = bases_version_;
  }
  std::size_t bytes = 0;
  for (const auto& [key, entry] : entries_) {
    if (entry->version == entry->told) continue;
    Work work{.operation = entry->operation,
              .progress = entry->progress,
              .serial = entry->serial,
              .gone = entry->gone};
    bytes += encode(work).size();
    if (next.tell.works.size() == kMaxWorks || bytes > kMostBytes) {
      next.tell.last = false;
      break;
    }
    next.versions.emplace_back(entry, entry->version);
    if (entry->asking) next.tell.asks.push_back(entry->operation.id());
    next.tell.works.push_back(std::move(work));
  }
  if (next.tell.last) {
    next.tell.uses = uses_.news(kMostBytes - bytes);
    next.tell.last = !everything_ || next.tell.uses.size() == uses_.count_news();
  }
  // What was told in an earlier part may have ended since.
  if (!everything_) {
    if (next.tell.last && next.tell.uses.empty()) {
      next.tell.inventory = inventory_.news(kMostBytes - bytes);
    }
    if (leftovers_news_) {
      next.sweeps = leftovers_;
      for (const Leftover& one : next.sweeps) next.tell.sweeps.push_back(one.listed);
    }
    next.ended = std::min(ended_.size(), kMaxWorks);
    next.tell.ended.assign(ended_.begin(),
                           ended_.begin() + static_cast<std::ptrdiff_t>(next.ended));
  }
  next.nothing_left = std::min(nothing_left_.size(), kMaxWorks / 10);
  next.tell.nothing_left.assign(
      nothing_left_.begin(),
      nothing_left_.begin() + static_cast<std::ptrdiff_t>(next.nothing_left));
  pending_ = std::move(next);
  return pending_->tell;
}

/// Of what was asked about, whatever a look has found since.
void Agent::told_sweeps(const Told& answer, TimePoint sent) {
  leftovers_news_ = false;
  for (const Leftover& one : pending_->sweeps) {
    sweep_asked_[one.place()] = clock_.now();
    const auto& nobodys = answer.sweep;
    if (std::find(nobodys.begin(), nobodys.end(), one.listed.path) == nobodys.end()) continue;
    to_go_.push_back(one);
    to_go_.back().asked = sent;
    to_sweep_.notify_all();
  }
}

void Agent::told(const Told& answer, TimePoint sent) {
  MutexLock lock(mutex_);
  if (!pending_) return;
  for (const Id& id : answer.begin) {
    const auto it = entries_.find(key_of(id));
    if (it == entries_.end() || !it->second->asking || it->second->cancelling) continue;
    it->second->asking = false;
    it->second->asked = sent;
    it->second->active = true;
    slow_.push_front(it->second);  // its turn had come
    to_work_.notify_all();
  }
  for (const auto& [entry, version] : pending_->versions) entry->told = version;
  if (pending_->tell.bases) bases_told_ = pending_->bases_version;
  uses_.told(pending_->tell.uses);
  if (pending_->tell.inventory) inventory_.told(*pending_->tell.inventory, clock_.now());
  if (!pending_->sweeps.empty()) told_sweeps(answer, sent);
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(pending_->ended));
  nothing_left_.erase(nothing_left_.begin(),
                      nothing_left_.begin() + static_cast<std::ptrdiff_t>(pending_->nothing_left));
  if (pending_->tell.last) everything_ = false;
  pending_.reset();
}

}  // namespace lpp::agent
