// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "harness/fault_proxy.h"

namespace lpp::testing {

/// A set of callbacks and how many of them run; `running` is guarded by the proxy's mutex.
struct FaultProxy::HookSet {
  ProxyHooks hooks{};
  int running = 0;
};

/// Keeps the proxy's current callbacks alive and counted while one of them runs.
class FaultProxy::HookUse {
 public:
  explicit HookUse(FaultProxy& proxy) : proxy_(proxy) {
    MutexLock lock(proxy_.mutex_);
    set_ = proxy_.hooks_;
    ++set_->running;
  }
  ~HookUse() {
    MutexLock lock(proxy_.mutex_);
    --set_->running;
    proxy_.changed_.notify_all();
  }
  HookUse(const HookUse&) = delete;
  HookUse& operator=(const HookUse&) = delete;

  const ProxyHooks* operator->() const { return &set_->hooks; }

 private:
  FaultProxy& proxy_;
  std::shared_ptr<HookSet> set_;
};

}  // namespace lpp::testing
