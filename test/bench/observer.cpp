// SPDX-License-Identifier: Apache-2.0
#include "bench/observer.h"

#include <nlohmann/json.hpp>

#include "harness/json_access.h"
#include "k8s/objects.h"

namespace lpp::bench {

namespace {

using nlohmann::json;
using testing::name_of;
using testing::text_at;

}  // namespace

/// Hands the objects of one kind to the observer.
class Observer::Sink final : public k8s::ReflectorSink {
 public:
  Sink(Observer& observer, bool ignore_listed, std::function<void(const json&, bool)> seen)
      : observer_(observer), ignore_listed_(ignore_listed), seen_(std::move(seen)) {}

  void list_begin() override {}
  void list_item(k8s::Value object) override {
    if (!ignore_listed_) seen_(k8s::to_json(object), true);
  }
  void list_end() override {
    MutexLock lock(observer_.mutex_);
    ++observer_.synced_;
    observer_.changed_.notify_all();
  }
  void applied(k8s::Value object) override { seen_(k8s::to_json(object), true); }
  void deleted(k8s::Value object) override { seen_(k8s::to_json(object), false); }

 private:
  Observer& observer_;
  const bool ignore_listed_;
  const std::function<void(const json&, bool)> seen_;
};

Observer::Observer(k8s::ApiClient& client, Clock& clock, const std::string& ns,
                   const std::string& helper_ns)
    : clock_(clock), ns_(ns) {
  add_watch(client,
            {.resource = k8s::kPersistentVolumeClaims,
             .ns = ns,
             .projection = k8s::fields_of<k8s::PersistentVolumeClaim>()},
            [this](const json& object, bool exists) { claim_seen(object, exists); });
  add_watch(
      client,
      {.resource = k8s::kPersistentVolumes, .projection = k8s::fields_of<k8s::PersistentVolume>()},
      [this](const json& object, bool exists) { volume_seen(object, exists); });
  add_watch(client,
            {.resource = k8s::kPods,
             .ns = helper_ns,
             .metadata_only = true,
             .projection = k8s::fields_of<k8s::Node>()},
            [this](const json& object, bool exists) { pod_seen(object, exists); });
}

Observer::~Observer() {
  for (auto& thread : threads_) thread.request_stop();
}

void Observer::add_watch(k8s::ApiClient& client, const k8s::ReflectorOptions& options,
                         std::function<void(const json&, bool)> seen) {
  sinks_.push_back(std::make_unique<Sink>(*this, options.metadata_only, std::move(seen)));
  reflectors_.push_back(std::make_unique<k8s::Reflector>(client, clock_, options, *sinks_.back()));
}

void Observer::start() {
  for (auto& reflector : reflectors_) {
    threads_.emplace_back([&reflector](const std::stop_token& stop) { reflector->run(stop); });
  }
  MutexLock lock(mutex_);
  while (synced_ < reflectors_.size()) changed_.wait(mutex_);
}

void Observer::claim_seen(const json& object, bool exists) {
  const auto now = clock_.now();
  const std::string name = name_of(object);
  const bool is_bound = exists && text_at(object, {"status", "phase"}) == "Bound";
  MutexLock lock(mutex_);
  const auto it = claims_.find(name);
  const bool was_bound = it != claims_.end() && it->second;
  if (exists) {
    claims_[name] = is_bound;
  } else {
    claims_.erase(name);
  }
  if (is_bound && !was_bound) {
    ++bound_;
    times_[name].bound = now;
  } else if (!is_bound && was_bound) {
    --bound_;
  }
  changed_.notify_all();
}

void Observer::volume_seen(const json& object, bool exists) {
  const auto now = clock_.now();
  const json& claim = testing::object_at(object, {"spec", "claimRef"});
  if (text_at(claim, {"namespace"}) != ns_) return;
  const std::string name = name_of(object);
  MutexLock lock(mutex_);
  if (exists) {
    volumes_[name] = text_at(claim, {"name"});
  } else if (volumes_.erase(name) != 0) {
    times_[text_at(claim, {"name"})].volume_gone = now;
  }
  changed_.notify_all();
}

void Observer::pod_seen(const json& object, bool exists) {
  const std::string name = name_of(object);
  MutexLock lock(mutex_);
  if (exists) {
    pods_.insert(name);
  } else {
    pods_.erase(name);
  }
  changed_.notify_all();
}

bool Observer::wait(TimePoint deadline, const std::function<bool()>& condition) {
  while (!condition()) {
    if (clock_.now() >= deadline) return false;
    clock_.wait_until(changed_, mutex_, deadline);
  }
  return true;
}

bool Observer::wait_bound(std::size_t count, TimePoint deadline) {
  MutexLock lock(mutex_);
  return wait(deadline, [&]() LPP_NO_THREAD_SAFETY_ANALYSIS { return bound_ >= count; });
}

bool Observer::wait_gone(TimePoint deadline) {
  MutexLock lock(mutex_);
  return wait(deadline, [this]() LPP_NO_THREAD_SAFETY_ANALYSIS {
    return claims_.empty() && volumes_.empty();
  });
}

bool Observer::wait_no_helper_pods(TimePoint deadline) {
  MutexLock lock(mutex_);
  return wait(deadline, [this]() LPP_NO_THREAD_SAFETY_ANALYSIS { return pods_.empty(); });
}

Observer::Times Observer::times(const std::string& claim) const {
  MutexLock lock(mutex_);
  const auto it = times_.find(claim);
  return it == times_.end() ? Times{} : it->second;
}

std::size_t Observer::bound() const {
  MutexLock lock(mutex_);
  return bound_;
}

}  // namespace lpp::bench
