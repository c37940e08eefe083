#include "helperpod/node_load.h"

#include <algorithm>

namespace lpp::helperpod {

namespace {

/// Who still wants its turn asks again sooner than this; who does not must not hold up the others.
constexpr std::chrono::seconds kStillAsking{40};

}  // namespace

std::size_t NodeLoad::room(const Load& load) const {
  const std::size_t used = load.admitted + load.pods.size();
  return used < most_ ? most_ - used : 0;
}

bool NodeLoad::admit(const operation::Operation& operation) {
  if (most_ == 0) return true;
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  Load& load = nodes_[operation.node];
  drop_silent(load, now);
  const auto mine =
      std::find_if(load.waiting.begin(), load.waiting.end(),
                   [&](const Asking& asking) { return asking.operation->id() == operation.id(); });
  const auto ahead = static_cast<std::size_t>(mine - load.waiting.begin());
  if (ahead < room(load)) {
    if (mine != load.waiting.end()) load.waiting.erase(mine);
    ++load.admitted;
    return true;
  }
  if (mine != load.waiting.end()) {
    mine->last = now;
  } else {
    load.waiting.push_back({std::make_shared<const operation::Operation>(operation), now});
  }
  return false;
}

void NodeLoad::drop_silent(Load& load, TimePoint now) {
  std::erase_if(load.waiting,
                [&](const Asking& asking) { return now - asking.last > kStillAsking; });
}

NodeLoad::Waiting NodeLoad::served(const std::string& node, Load& load) {
  drop_silent(load, clock_.now());
  Waiting next;
  const std::size_t count = std::min(room(load), load.waiting.size());
  for (std::size_t i = 0; i < count; ++i) next.push_back(load.waiting[i].operation);
  if (load.admitted == 0 && load.pods.empty() && load.waiting.empty()) nodes_.erase(node);
  return next;
}

NodeLoad::Waiting NodeLoad::give_back(const std::string& node) {
  if (most_ == 0) return {};
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end() || it->second.admitted == 0) return {};
  --it->second.admitted;
  return served(it->first, it->second);
}

void NodeLoad::began(const std::string& node, const std::string& pod_uid) {
  if (most_ == 0) return;
  MutexLock lock(mutex_);
  nodes_[node].pods.insert(pod_uid);
}

NodeLoad::Waiting NodeLoad::ended(const std::string& node, const std::string& pod_uid) {
  if (most_ == 0) return {};
  MutexLock lock(mutex_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end() || it->second.pods.erase(pod_uid) == 0) return {};
  return served(it->first, it->second);
}

}  // namespace lpp::helperpod
