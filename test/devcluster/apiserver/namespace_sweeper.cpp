// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/namespace_sweeper.h"

#include <algorithm>

#include "base/strings.h"

namespace lpp::devcluster {

void NamespaceSweeper::add(const std::string& name) {
  const MutexLock lock(mutex_);
  if (stopping_) return;
  due_.emplace(name, std::chrono::steady_clock::now() + delay_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void NamespaceSweeper::stop() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
    changed_.notify_all();
  }
  if (thread.joinable()) thread.join();
}

void NamespaceSweeper::run() {
  set_thread_name("api-namespaces");
  MutexLock lock(mutex_);
  while (!stopping_) {
    const auto first = std::min_element(
        due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (first == due_.end()) {
      changed_.wait(mutex_);
    } else if (std::chrono::steady_clock::now() < first->second) {
      changed_.wait_until(mutex_, Time(first->second));
    } else {
      const std::string name = first->first;
      due_.erase(first);
      lock.unlock();
      // It may be gone already, or have been deleted in another way: nothing to do then.
      static_cast<void>(registry_.remove({"namespaces", "", name}));
      lock.lock();
    }
  }
}

}  // namespace lpp::devcluster
