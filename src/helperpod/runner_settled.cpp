// SPDX-License-Identifier: Apache-2.0
// Helper pods whose outcome is known, and that stay for a while: they are removed when there is
// nothing else to do.

#include "base/log.h"
#include "helperpod/runner.h"

namespace lpp::helperpod {

bool HelperPodRunner::settle(const Known& known) {
  if (known.settled) return true;
  if (known.removing || known.removal_failed || !has_ended(known)) return false;
  {
    MutexLock lock(mutex_);
    const auto it = by_uid_.find(known.uid);
    if (it == by_uid_.end()) return true;
    it->second.settled = settled_.add(known.uid, clock_.now());
    if (!it->second.settled) return false;
    // A directory that was removed is in nobody's way; one that was made is its volume's, which
    // shows it, or was decided for.
    ledger_.remove(it->second.operation);
  }
  // Somebody may wait for the directory, and of this pod nothing is told any more.
  if (known.operation->kind == operation::Kind::kRemove) wake(*known.operation);
  return true;
}

void HelperPodRunner::unsettle(const Known& known) {
  MutexLock lock(mutex_);
  if (const auto it = by_uid_.find(known.uid); it != by_uid_.end()) it->second.settled = false;
}

bool HelperPodRunner::remove_settled() {
  std::optional<Known> pod;
  for (auto uid = settled_.take(); uid; uid = settled_.take()) {
    pod = find(*uid);
    if (pod && !pod->removing) break;
    pod.reset();
  }
  if (!pod) return true;
  const auto removed = remove(*pod, std::nullopt);
  if (removed.ok()) return true;
  {
    MutexLock lock(mutex_);
    if (const auto it = by_uid_.find(pod->uid); it != by_uid_.end()) {
      it->second.settled = false;
      it->second.removal_failed = true;
      ledger_.add(it->second.operation);
    }
  }
  log::debug("helper pod is not removed yet: {}", removed.error().message);
  wake(*pod->operation);
  return false;
}

}  // namespace lpp::helperpod
