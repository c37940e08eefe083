// SPDX-License-Identifier: Apache-2.0
#include "devcluster/runtime/subscription.h"

#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace lpp::devcluster {

Subscription::Subscription(const Registry& registry, std::string name,
                           std::vector<std::string> resources, Handler handler,
                           std::function<void()> on_reset)
    : registry_(registry),
      name_(std::move(name)),
      resources_(std::move(resources)),
      handler_(std::move(handler)),
      on_reset_(std::move(on_reset)) {}

Subscription::~Subscription() { stop(); }

void Subscription::start() {
  // Opened here, so that no change after start() is missed however late the thread runs.
  auto first = std::make_shared<WatchReply>(registry_.watch({.resources = resources_}));
  thread_ =
      std::jthread([this, first](const std::stop_token& stop) { run(stop, std::move(*first)); });
}

void Subscription::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool Subscription::follow(const std::stop_token& stop, Watch& watch) {
  constexpr std::chrono::minutes kQuiet{10};
  const std::stop_callback wake(stop, [&watch] { watch.stop(); });
  bool expired = false;
  while (!watch.ended()) {
    const auto event = watch.next(kQuiet);
    if (!event.has_value()) continue;
    expired = event->type == WatchEventType::kError;
    if (!expired && event->object != nullptr) handler_(*event);
  }
  return expired;
}

void Subscription::run(const std::stop_token& stop, WatchReply reply) {
  set_thread_name(name_);
  while (!stop.stop_requested()) {
    if (!reply.ok()) {
      log::error("{}: watch refused with code {}", name_, reply.code);
      return;
    }
    if (!follow(stop, *reply.watch)) return;  // stopped, by us or by the registry
    if (on_reset_) on_reset_();
    reply = registry_.watch({.resources = resources_});
  }
}

}  // namespace lpp::devcluster
