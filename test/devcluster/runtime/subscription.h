// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/sync.h"
#include "devcluster/apiserver/registry.h"

namespace lpp::devcluster {

/// A thread that hands a registry's changes to a handler: everything that exists first, then each
/// change. After falling too far behind it starts over: on_reset, then everything that exists.
/// The handler runs on that thread and should only note what has to be looked at.
class Subscription {
 public:
  using Handler = std::function<void(const WatchEvent& event)>;

  Subscription(const Registry& registry, std::string name, std::vector<std::string> resources,
               Handler handler, std::function<void()> on_reset = {});
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  void start();
  /// Ends the thread. Repeatable.
  void stop();

 private:
  void run(const std::stop_token& stop, WatchReply reply);
  /// True if it fell behind and has to start over.
  bool follow(const std::stop_token& stop, Watch& watch);

  const Registry& registry_;
  const std::string name_;
  const std::vector<std::string> resources_;
  const Handler handler_;
  const std::function<void()> on_reset_;
  std::jthread thread_;
};

}  // namespace lpp::devcluster
