// SPDX-License-Identifier: Apache-2.0
#include "devcluster/runtime/event_emitter.h"

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

constexpr std::size_t kRemembered = 4096;

std::string event_name(const json& object, Clock& clock) {
  static std::atomic<std::uint64_t> last{0};
  const auto nanos = static_cast<std::uint64_t>(clock.wall_now().time_since_epoch().count());
  std::uint64_t previous = last.load();
  std::uint64_t mine = 0;
  do {
    mine = std::max(nanos, previous + 1);
  } while (!last.compare_exchange_weak(previous, mine));
  return fmt::format("{}.{:x}", name_of(object), mine);
}

}  // namespace

EventEmitter::EventEmitter(Registry& registry, Clock& clock, std::string component,
                           std::string host)
    : registry_(registry),
      clock_(clock),
      component_(std::move(component)),
      host_(std::move(host)) {}

void EventEmitter::emit(const json& object, std::string_view type, std::string_view reason,
                        std::string_view message) {
  const std::string ns(namespace_of(object).empty() ? "default" : namespace_of(object));
  const std::string now = format_rfc3339(clock_.wall_now());
  const std::string said = fmt::format("{}\n{}\n{}\n{}", uid_of(object), type, reason, message);
  std::string name;
  {
    MutexLock lock(mutex_);
    if (const auto known = stored_.find(said); known != stored_.end()) name = known->second;
  }
  if (!name.empty()) {
    const auto raise = [&](json& event) {
      event["count"] = number_at(event, {"count"}, 1) + 1;
      event["lastTimestamp"] = now;
      return true;
    };
    if (registry_.modify({"events", ns, name}, raise).ok()) return;
  }
  name = event_name(object, clock_);
  json source{{"component", component_}};
  if (!host_.empty()) source["host"] = host_;
  const json event{{"metadata", {{"name", name}, {"namespace", ns}}},
                   {"involvedObject",
                    {{"kind", text_at(object, {"kind"})},
                     {"apiVersion", text_at(object, {"apiVersion"})},
                     {"namespace", namespace_of(object)},
                     {"name", name_of(object)},
                     {"uid", uid_of(object)},
                     {"resourceVersion", text_at(object, {"metadata", "resourceVersion"})}}},
                   {"reason", reason},
                   {"message", message},
                   {"type", type},
                   {"count", 1},
                   {"firstTimestamp", now},
                   {"lastTimestamp", now},
                   {"source", source},
                   {"reportingComponent", component_},
                   {"reportingInstance", host_}};
  const Reply reply = registry_.create("events", ns, event);
  if (!reply.ok()) {
    log::debug("event not stored: {}", reply.message());
    return;
  }
  MutexLock lock(mutex_);
  if (stored_.size() >= kRemembered) stored_.clear();
  stored_[said] = name;
}

}  // namespace lpp::devcluster
