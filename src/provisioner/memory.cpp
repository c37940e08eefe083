// SPDX-License-Identifier: Apache-2.0
#include "provisioner/memory.h"

#include <algorithm>

#include "base/strings.h"

namespace lpp::provisioner {

using operation::Progress;
using State = Progress::State;

namespace {

/// So many messages of one reason are remembered. Some causes take turns, as of two nodes that are
/// gone.
constexpr std::size_t kMostSaid = 4;

/// All that is known of it is its record.
bool may_be_published(const operation::Operation& make, const Progress& progress) {
  return make.shared || make.node.empty() || progress.state == State::kSucceeded ||
         progress.state == State::kEnding;
}

}  // namespace

std::string place_key(const operation::Operation& operation) {
  return operation.node + ":" + operation.path;
}

void note_begun(const std::vector<operation::Recorded>& recorded, Memory& memory) {
  for (const auto& [operation, progress] : recorded) {
    if (operation->kind != operation::Kind::kMake) continue;
    const auto id = operation->id();
    auto mine = std::find_if(memory.begun.begin(), memory.begun.end(),
                             [&](const Begun& begun) { return begun.operation->id() == id; });
    if (mine == memory.begun.end()) {
      memory.begun.push_back(
          {.operation = operation, .never_published = !may_be_published(*operation, progress)});
      mine = memory.begun.end() - 1;
    }
    mine->operation = operation;  // what is on record counts
    if (progress.directory == operation::Directory::kMade) mine->made = true;
  }
  for (const auto& [operation, progress] : recorded) {
    if (operation->kind != operation::Kind::kTakeBack) continue;
    bool is_known = false;
    for (Begun& begun : memory.begun) {
      if (!same_place(*begun.operation, *operation)) continue;
      begun.given_up = true;
      is_known = true;
    }
    // Somebody stops it, and with its record goes all that is known of the directory.
    const bool is_stopped = progress.state == State::kEnding && !progress.acts_no_more;
    if (is_stopped && !is_known) memory.begun.push_back({.operation = operation, .given_up = true});
  }
  std::erase_if(memory.begun, [&](const Begun& begun) {
    return begun.done && std::none_of(recorded.begin(), recorded.end(), [&](const auto& one) {
             return one.operation->id() == begun.operation->id();
           });
  });
}

Memory Memories::get(std::string_view volume_name) const {
  MutexLock lock(mutex_);
  const auto it = memories_.find(std::string(volume_name));
  return it == memories_.end() ? Memory{} : it->second;
}

void Memories::set(std::string_view volume_name, Memory memory) {
  MutexLock lock(mutex_);
  memories_[std::string(volume_name)] = std::move(memory);
}

void Memories::erase(std::string_view volume_name) {
  MutexLock lock(mutex_);
  memories_.erase(std::string(volume_name));
  said_.erase(std::string(volume_name));
}

std::size_t Memories::size() const {
  MutexLock lock(mutex_);
  return memories_.size();
}

Duration Memories::wait_after(int number) const {
  if (retry_count_ > 0 && number > retry_count_) return kResync;
  Duration wait = policy_.base;
  for (int i = 1; i < number && wait < policy_.cap; ++i) wait *= 2;
  wait = std::min(wait, policy_.cap);
  const double factor = 1.0 + policy_.jitter * random_unit();
  return std::chrono::duration_cast<Duration>(wait * factor);
}

Retry Memories::failed(const Retry& before, int number, std::string seen) const {
  constexpr int kMostTold = 8;  // two minutes
  const bool is_told = before.failures == 0 && before.begun != number;
  const int failures = is_told ? std::clamp(number, 1, kMostTold) : before.failures + 1;
  return {.number = number,
          .failures = failures,
          .begun = before.begun,
          .hold_until = clock_.now() + wait_after(failures),
          .seen = std::move(seen)};
}

bool Memories::worth_saying(std::string_view volume_name, std::string_view reason,
                            std::string_view message) {
  const TimePoint now = clock_.now();
  std::string hash = short_hash(message);
  MutexLock lock(mutex_);
  auto& said = said_[std::string(volume_name)][std::string(reason)];
  std::erase_if(said, [&](const Said& one) { return now - one.at >= kResync; });
  const auto before =
      std::find_if(said.begin(), said.end(), [&](const Said& one) { return one.hash == hash; });
  if (before != said.end()) return false;
  if (said.size() >= kMostSaid) said.erase(said.begin());
  said.push_back({.hash = std::move(hash), .at = now});
  return true;
}

void Memories::unsay(std::string_view volume_name, std::string_view reason) {
  MutexLock lock(mutex_);
  const auto it = said_.find(std::string(volume_name));
  if (it != said_.end()) it->second.erase(std::string(reason));
}

void Memories::unsay(std::string_view volume_name) {
  MutexLock lock(mutex_);
  said_.erase(std::string(volume_name));
}

void Memories::unsay_all() {
  MutexLock lock(mutex_);
  said_.clear();
}

std::optional<Duration> held(const Retry& retry, TimePoint now, std::string_view seen) {
  if (now >= retry.hold_until || retry.seen != seen) return std::nullopt;
  return retry.hold_until - now;
}

}  // namespace lpp::provisioner
