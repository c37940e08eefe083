// SPDX-License-Identifier: Apache-2.0
// The helper pods that a runner knows, by UID and by volume.

#include "helperpod/runner.h"

namespace lpp::helperpod {

using operation::Id;
using operation::NodeLoad;

std::size_t HelperPodRunner::size() const {
  MutexLock lock(mutex_);
  return by_uid_.size();
}

std::optional<HelperPodRunner::Known> HelperPodRunner::find(const std::string& uid) const {
  MutexLock lock(mutex_);
  const auto it = by_uid_.find(uid);
  if (it == by_uid_.end()) return std::nullopt;
  return it->second;
}

std::vector<HelperPodRunner::Known> HelperPodRunner::known(std::string_view volume_name) const {
  MutexLock lock(mutex_);
  std::vector<Known> pods;
  const auto it = by_volume_.find(std::string(volume_name));
  if (it == by_volume_.end()) return pods;
  for (const std::string& uid : it->second) pods.push_back(by_uid_.at(uid));
  return pods;
}

std::vector<HelperPodRunner::Known> HelperPodRunner::known(const Id& id) const {
  auto pods = known(std::string_view(id.volume_name));
  std::erase_if(pods, [&](const Known& pod) { return pod.operation->id() != id; });
  return pods;
}

void HelperPodRunner::remember(Known known) {
  MutexLock lock(mutex_);
  const auto [it, added] = by_uid_.try_emplace(known.uid, known);
  if (added) {
    by_volume_[known.operation->volume_name].push_back(known.uid);
    ledger_.add(known.operation);
    load_.began(*known.operation, known.uid);
    return;
  }
  if (known.removing) note_removing(it->second);
  it->second.ended = it->second.ended || known.ended;
}

void HelperPodRunner::forget_pod(std::string_view uid) {
  NodeLoad::Waiting served;
  {
    MutexLock lock(mutex_);
    const auto it = by_uid_.find(std::string(uid));
    if (it == by_uid_.end()) return;
    const auto index = by_volume_.find(it->second.operation->volume_name);
    std::erase(index->second, it->first);
    if (index->second.empty()) by_volume_.erase(index);
    ledger_.remove(it->second.operation);
    served = load_.ended(*it->second.operation, it->first);
    by_uid_.erase(it);
  }
  logs_.forget(uid);
  wake(served);
}

}  // namespace lpp::helperpod
