// SPDX-License-Identifier: Apache-2.0
#include "app/health_checks.h"

#include "base/log.h"
#include "base/strings.h"

namespace lpp::app {

namespace {

Error unavailable(std::string message) {
  return Error{.code = ErrorCode::kUnavailable, .message = std::move(message)};
}

long long whole_seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

Result<void> check_informer(const CacheSubject& cache, TimePoint now) {
  const TimePoint in_sink = cache.stats->in_sink_since;
  if (in_sink != TimePoint::max() && now - in_sink > kStuckHandler) {
    return unavailable(fmt::format("informer {} has been busy with what it received for {} s",
                                   cache.resource, whole_seconds(now - in_sink)));
  }
  const TimePoint progress = cache.stats->last_progress;
  if (progress != TimePoint::min() && now - progress > kStuckInformer) {
    return unavailable(fmt::format("informer {} has neither listed nor watched anything for {} s",
                                   cache.resource, whole_seconds(now - progress)));
  }
  return {};
}

Result<void> check_queue(std::string_view name, const std::optional<k8s::WorkQueueState>& state) {
  if (!state) return {};
  if (state->longest_work > kStuckStep) {
    return unavailable(fmt::format("a worker of the {} queue has been in one step for {} s", name,
                                   whole_seconds(state->longest_work)));
  }
  if (state->longest_waiting > kStuckStep && state->since_last_get > kStuckStep) {
    return unavailable(
        fmt::format("no worker has taken anything from the {} queue for {} s, and "
                    "{} keys are waiting",
                    name, whole_seconds(state->since_last_get), state->ready));
  }
  return {};
}

}  // namespace

std::vector<HealthCheck> live_checks(const Subjects& subjects) {
  return {
      {"informers",
       [caches = subjects.caches, &clock = subjects.clock]() -> Result<void> {
         const TimePoint now = clock.now();
         for (const CacheSubject& cache : caches) {
           if (auto result = check_informer(cache, now); !result.ok()) return result;
         }
         return {};
       }},
      {"workers",
       [&controller = subjects.controller]() -> Result<void> {
         if (auto result = check_queue("claims", controller.claim_queue()); !result.ok()) {
           return result;
         }
         return check_queue("volumes", controller.volume_queue());
       }},
  };
}

std::vector<HealthCheck> ready_checks(const Subjects& subjects) {
  return {
      {"shutdown",
       [stopping = subjects.stopping]() -> Result<void> {
         if (stopping()) return unavailable("stopping");
         return {};
       }},
      {"config",
       [&loader = subjects.config]() -> Result<void> {
         if (loader.config().current() == nullptr) return unavailable("no configuration yet");
         if (loader.pod_template().current() == nullptr) {
           return unavailable("no helper pod template yet");
         }
         return {};
       }},
      {"caches",
       [caches = subjects.caches]() -> Result<void> {
         std::string missing;
         for (const CacheSubject& cache : caches) {
           if (cache.has_synced()) continue;
           missing += (missing.empty() ? "not listed yet: " : ", ") + cache.resource;
         }
         if (!missing.empty()) return unavailable(std::move(missing));
         return {};
       }},
      {"leader-election",
       [elector = subjects.elector]() -> Result<void> {
         if (elector == nullptr) return {};
         if (auto refused = elector->refused()) return unavailable(*std::move(refused));
         return {};
       }},
  };
}

}  // namespace lpp::app
