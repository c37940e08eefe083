// SPDX-License-Identifier: Apache-2.0
#include "node/limit_turns.h"

#include <algorithm>

namespace lpp::node {

std::vector<bool> LimitTurns::take(const std::vector<std::string>& ids) {
  constexpr std::size_t kTurns = 10;
  const std::size_t most =
      began_ ? std::max(at_once_, (ids.size() + kTurns - 1) / kTurns) : ids.size();
  began_ = true;
  std::erase_if(
      out_, [&](const std::string& id) { return !std::binary_search(ids.begin(), ids.end(), id); });
  std::vector<bool> taken(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) taken[i] = out_.contains(ids[i]);
  const auto first = std::lower_bound(ids.begin(), ids.end(), next_) - ids.begin();
  const auto at = [&](std::size_t i) { return (static_cast<std::size_t>(first) + i) % ids.size(); };
  const std::size_t many = std::min(most, ids.size());
  for (std::size_t i = 0; i < many; ++i) taken[at(i)] = true;
  if (many > 0) next_ = ids[at(many)];
  return taken;
}

void LimitTurns::saw(const std::string& id, std::optional<bool> out) {
  if (!out) return;
  if (*out) {
    out_.insert(id);
  } else {
    out_.erase(id);
  }
}

}  // namespace lpp::node
