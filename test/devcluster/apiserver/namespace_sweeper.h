// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "base/sync.h"
#include "devcluster/apiserver/registry.h"

namespace lpp::devcluster {

/// Empties deleted namespaces a moment after their deletion, as the namespace controller of a real
/// cluster does: `kubectl delete -f` still finds the objects that it names after the namespace.
/// Thread-safe; one thread of its own from the first add() to stop().
class NamespaceSweeper {
 public:
  NamespaceSweeper(Registry& registry, std::chrono::milliseconds delay)
      : registry_(registry), delay_(delay) {}
  ~NamespaceSweeper() { stop(); }
  NamespaceSweeper(const NamespaceSweeper&) = delete;
  NamespaceSweeper& operator=(const NamespaceSweeper&) = delete;

  void add(const std::string& name);
  /// Joins the thread; namespaces that still wait stay as they are.
  void stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run();

  Registry& registry_;
  const std::chrono::milliseconds delay_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  std::map<std::string, Time> due_ LPP_GUARDED_BY(mutex_);
  std::thread thread_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
