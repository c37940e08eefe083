// SPDX-License-Identifier: Apache-2.0
#include "bench/failure.h"

#include <optional>
#include <thread>

#include "base/sync.h"
#include "k8s/reflector.h"

namespace lpp::bench {

namespace {

using nlohmann::json;

/// When the first object was seen for which a condition holds. Thread-safe.
class FirstSeen final : public k8s::ReflectorSink {
 public:
  FirstSeen(Clock& clock, bool (*condition)(const json&)) : clock_(clock), condition_(condition) {}

  void list_begin() override {}
  void list_item(k8s::Value object) override { look(k8s::to_json(object)); }
  void list_end() override {}
  void applied(k8s::Value object) override { look(k8s::to_json(object)); }
  void deleted(k8s::Value) override {}

  std::optional<TimePoint> wait(TimePoint deadline) {
    MutexLock lock(mutex_);
    while (!seen_ && clock_.now() < deadline) clock_.wait_until(changed_, mutex_, deadline);
    return seen_;
  }

 private:
  void look(const json& object) {
    if (!condition_(object)) return;
    MutexLock lock(mutex_);
    if (!seen_) seen_ = clock_.now();
    changed_.notify_all();
  }

  Clock& clock_;
  bool (*const condition_)(const json&);
  Mutex mutex_;
  CondVar changed_;
  std::optional<TimePoint> seen_ LPP_GUARDED_BY(mutex_);
};

bool is_failed_pod(const json& pod) {
  return pod.value("status", json::object()).value("phase", "") == "Failed";
}

bool is_warning_about_claim(const json& event) {
  return event.value("type", "") == "Warning" &&
         event.value("involvedObject", json::object()).value("kind", "") == "PersistentVolumeClaim";
}

}  // namespace

Result<json> measure_failure(k8s::ApiClient& client, Clock& clock, const LoadOptions& options) {
  FirstSeen failed(clock, is_failed_pod);
  FirstSeen warned(clock, is_warning_about_claim);
  k8s::Reflector pods(client, clock, {.resource = k8s::kPods, .ns = options.helper_ns}, failed);
  k8s::Reflector events(client, clock, {.resource = k8s::kEvents, .ns = options.ns}, warned);
  const std::jthread watch_pods([&](const std::stop_token& stop) { pods.run(stop); });
  const std::jthread watch_events([&](const std::stop_token& stop) { events.run(stop); });
  clock.sleep_for(std::chrono::milliseconds(500), {});

  Load load(client, clock, options);
  const auto began = clock.now();
  LPP_RETURN_IF_ERROR(load.only_create(), "failure");
  json result = json::object();
  const auto note = [&](const char* name, const std::optional<TimePoint>& when) {
    if (when) result[name] = std::chrono::duration<double>(*when - began).count();
  };
  note("pod_failed_s", failed.wait(began + options.limit));
  note("event_s", warned.wait(began + options.limit));
  result["complete"] = result.contains("event_s");
  return result;
}

}  // namespace lpp::bench
