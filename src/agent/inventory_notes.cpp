// SPDX-License-Identifier: Apache-2.0
#include "agent/inventory_notes.h"

#include <algorithm>
#include <set>

#include "agent/texts.h"

namespace lpp::agent {

namespace {

/// A file system tells any number.
std::int64_t time_of(std::int64_t seconds) {
  constexpr std::int64_t kMost = std::int64_t{1} << 33U;
  return std::clamp<std::int64_t>(seconds, 0, kMost);
}

/// At most that in a message, whatever bytes the texts hold.
std::size_t bytes_of(const Listed& one) {
  constexpr std::size_t kEscaped = 6;
  constexpr std::size_t kRest = 240;
  return (one.path.size() + one.id.size() + one.claim.size() + one.uid.size()) * kEscaped + kRest;
}

Listed::State state_of(node::State state) {
  if (state == node::State::kMaking) return Listed::State::kMaking;
  return state == node::State::kRemoving ? Listed::State::kRemoving : Listed::State::kPresent;
}

bool is_same(Listed a, const Listed& b) {
  a.used = b.used;
  return a == b;
}

}  // namespace

void InventoryNotes::add(const Place& place, const node::BaseUsage& usage,
                         const node::Inventory& inventory, Seen& to) {
  const std::string folder = place.path.ends_with('/') ? place.path : place.path + '/';
  const auto list = [&](Listed listed) {
    listed.since = time_of(listed.since);
    listed.cluster = place.foreign;
    if (to.directories.size() < kMost && listed.path.size() <= kMaxPath) {
      to.directories.push_back(std::move(listed));
    } else {
      ++to.left_out;
    }
  };
  // What is no directory any more is not listed as one.
  std::set<std::string> lost;
  for (const auto& one : inventory.leftovers) {
    if (one.lost) lost.insert(one.id);
  }
  std::map<std::string, Listed> recorded;
  for (const auto& [volume, use, taken_out] : usage.volumes) {
    Listed listed{.path = folder + volume.path,
                  .id = volume.id,
                  .claim = volume.claim,
                  .uid = volume.uid,
                  .size = told_number(std::max(volume.size, volume.limits.bytes)),
                  .state = state_of(volume.state)};
    if (use) listed.used = told_number(use->bytes);
    const bool holds = use && use->limits.bytes == volume.limits.bytes && !taken_out;
    if (holds && listed.state == Listed::State::kPresent) {
      listed.limit = told_number(volume.limits.bytes);
    }
    if (const auto at = inventory.since.find(volume.id); at != inventory.since.end()) {
      listed.since = at->second;
    }
    recorded.emplace(volume.id, listed);
    if (!lost.contains(volume.id)) list(std::move(listed));
  }
  for (const auto& one : inventory.leftovers) {
    Listed listed{.path = folder + one.path, .id = one.id, .state = state_of(one.state)};
    if (const auto record = recorded.find(one.id); record != recorded.end()) {
      listed = record->second;
      listed.state = state_of(one.state);
    } else if (!one.has_record) {  // else it cannot be read, and who knows what it says
      list(listed);
    } else {
      continue;
    }
    listed.since = time_of(one.since);
    if (place.own && !one.has_work && !one.has_data && listed.path.size() <= kMaxPath) {
      to.leftovers.push_back({.base_path = place.path,
                              .disk = place.disk,
                              .listed = std::move(listed),
                              .lost = one.lost});
    }
  }
  for (const auto& one : inventory.bare) list({.path = folder + one.path, .since = one.since});
  if (!inventory.whole) ++to.left_out;
}

bool InventoryNotes::differs() const {
  const auto& now = seen_.directories;
  return !std::equal(now.begin(), now.end(), told_.begin(), told_.end(), is_same);
}

void InventoryNotes::saw(Seen seen, TimePoint now) {
  seen_ = std::move(seen);
  known_ = true;
  if (telling_) return;
  const bool due = !told_at_ || now - *told_at_ >= kTellAgain;
  const bool few = seen_.directories.size() <= kFew && told_few_;
  if (due || (few && differs())) {
    telling_ = Telling{.directories = seen_.directories, .left_out = seen_.left_out};
  }
}

void InventoryNotes::tell_anew() {
  telling_.reset();
  told_at_.reset();
  if (known_) telling_ = Telling{.directories = seen_.directories, .left_out = seen_.left_out};
}

std::optional<InventoryPart> InventoryNotes::news(std::size_t most_bytes) const {
  if (!telling_) return std::nullopt;
  const auto& all = telling_->directories;
  InventoryPart part{.first = telling_->done == 0};
  std::size_t bytes = 0;
  for (std::size_t i = telling_->done; i < all.size(); ++i) {
    bytes += bytes_of(all[i]);
    const bool full = part.directories.size() == kMaxListed || bytes > most_bytes;
    if (full && !part.directories.empty()) break;
    part.directories.push_back(all[i]);
  }
  part.last = telling_->done + part.directories.size() == all.size();
  if (part.last) part.left_out = telling_->left_out;
  return part;
}

void InventoryNotes::told(const InventoryPart& part, TimePoint now) {
  if (!telling_) return;
  telling_->done += part.directories.size();
  if (!part.last) return;
  told_few_ = telling_->directories.size() <= kFew;
  told_ = told_few_ ? std::move(telling_->directories) : std::vector<Listed>();
  told_at_ = now;
  telling_.reset();
}

}  // namespace lpp::agent
