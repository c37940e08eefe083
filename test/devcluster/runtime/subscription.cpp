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
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Subscription::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Subscription::run(const std::stop_token& stop) {
  set_thread_name(name_);
  constexpr std::chrono::minutes kQuiet{10};
  while (!stop.stop_requested()) {
    WatchReply reply = registry_.watch({.resources = resources_});
    if (!reply.ok()) {
      log::error("{}: watch refused with code {}", name_, reply.code);
      return;
    }
    Watch& watch = *reply.watch;
    const std::stop_callback wake(stop, [&watch] { watch.stop(); });
    while (!watch.ended()) {
      const auto event = watch.next(kQuiet);
      if (!event.has_value()) continue;
      if (event->object != nullptr && event->type != WatchEventType::kError) handler_(*event);
    }
    if (on_reset_ && !stop.stop_requested()) on_reset_();
  }
}

}  // namespace lpp::devcluster
