// SPDX-License-Identifier: Apache-2.0
#include "agent/usage_notes.h"

#include <algorithm>
#include <cstdint>

#include "agent/texts.h"

namespace lpp::agent {

using operation::Usage;

namespace {

constexpr std::int64_t kSmallBytes = 1 << 20;
constexpr std::int64_t kSmallInodes = 100;

bool differs(std::int64_t now, std::int64_t before, std::int64_t limit, std::int64_t small) {
  if (limit > 0) small = std::min(small, std::max<std::int64_t>(1, limit / 100));
  const std::int64_t change = now > before ? now - before : before - now;
  return change >= small;
}

bool worth_telling(const Usage& now, const Usage& before) {
  if (now.limit_bytes != before.limit_bytes || now.limit_inodes != before.limit_inodes ||
      now.inodes.has_value() != before.inodes.has_value()) {
    return true;
  }
  return differs(now.bytes, before.bytes, now.limit_bytes, kSmallBytes) ||
         differs(now.inodes.value_or(0), before.inodes.value_or(0), now.limit_inodes, kSmallInodes);
}

/// At most that in a message, whatever bytes the path holds.
std::size_t bytes_of(const Use& use) {
  constexpr std::size_t kEscaped = 6;
  constexpr std::size_t kRest = 160;
  return use.path.size() * kEscaped + kRest;
}

}  // namespace

void UsageNotes::add(const std::string& base_path, const std::vector<node::VolumeUsage>& volumes,
                     Seen& to) {
  const std::string folder = base_path.ends_with('/') ? base_path : base_path + '/';
  for (const auto& [volume, use, taken_out] : volumes) {
    if (!use || volume.state != node::State::kPresent) continue;
    const std::string path = folder + volume.path;
    if (path.size() > kMaxPath || to.size() >= kMaxUses) continue;
    Usage& usage = to[path];
    usage = {.bytes = told_number(use->bytes),
             .limit_bytes = told_number(use->limits.bytes),
             .limit_inodes = told_number(use->limits.inodes)};
    if (use->inodes) usage.inodes = told_number(*use->inodes);
  }
}

bool UsageNotes::Note::is_news() const {
  return seen.has_value() != told.has_value() || (seen && worth_telling(*seen, *told));
}

void UsageNotes::tidy_up() {
  std::erase_if(notes_, [](const auto& item) { return !item.second.seen && !item.second.told; });
  news_ = static_cast<std::size_t>(std::count_if(
      notes_.begin(), notes_.end(), [](const auto& item) { return item.second.is_news(); }));
}

void UsageNotes::saw(const Seen& seen) {
  for (auto& [path, note] : notes_) note.seen.reset();
  for (const auto& [path, usage] : seen) notes_[path].seen = usage;
  tidy_up();
}

void UsageNotes::tell_anew() {
  for (auto& [path, note] : notes_) note.told.reset();
  tidy_up();
}

std::vector<Use> UsageNotes::news(std::size_t most_bytes) const {
  std::vector<Use> uses;
  std::size_t bytes = 0;
  for (const auto& [path, note] : notes_) {
    if (!note.is_news()) continue;
    Use use{.path = path, .usage = note.seen};
    bytes += bytes_of(use);
    if (uses.size() == kMaxUses || (bytes > most_bytes && !uses.empty())) break;
    uses.push_back(std::move(use));
  }
  return uses;
}

void UsageNotes::told(const std::vector<Use>& uses) {
  for (const Use& use : uses) notes_[use.path].told = use.usage;
  tidy_up();
}

}  // namespace lpp::agent
