// SPDX-License-Identifier: Apache-2.0
#include "hollow/hollow_pods.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"

namespace lpp::hollow {

namespace {

using nlohmann::json;

std::set<std::string> as_set(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

// What is looked at of a pod. As a real kubelet does, it is read as protobuf.
using enum k8s::FieldType;
constexpr auto kMetaFields = std::to_array<k8s::ReadField>({{"name", 1},
                                                            {"namespace", 3},
                                                            {"uid", 5},
                                                            {"resourceVersion", 6},
                                                            {"deletionTimestamp", 9, kTime}});
constexpr auto kContainerFields = std::to_array<k8s::ReadField>({{"name", 1}, {"image", 2}});
constexpr auto kSpecFields = std::to_array<k8s::ReadField>(
    {{"containers", 2, kObjects, kContainerFields}, {"restartPolicy", 3}, {"nodeName", 10}});
constexpr auto kStatusFields = std::to_array<k8s::ReadField>({{"phase", 1}});
constexpr auto kPodFields = std::to_array<k8s::ReadField>({{"metadata", 1, kObject, kMetaFields},
                                                           {"spec", 2, kObject, kSpecFields},
                                                           {"status", 3, kObject, kStatusFields}});

json container_state(const char* phase, const std::string& now, const std::string& message) {
  if (std::string_view(phase) == "Running") return {{"running", {{"startedAt", now}}}};
  const bool good = std::string_view(phase) == "Succeeded";
  json state = {{"exitCode", good ? 0 : 1},
                {"reason", good ? "Completed" : "Error"},
                {"startedAt", now},
                {"finishedAt", now}};
  if (!good) state["message"] = "made to fail";
  if (good && !message.empty()) state["message"] = message;
  return {{"terminated", state}};
}

json condition(const char* type, bool holds, const std::string& now) {
  return {{"type", type}, {"status", holds ? "True" : "False"}, {"lastTransitionTime", now}};
}

}  // namespace

Pods::Pods(k8s::ApiClient& client, Clock& clock, const Options& options)
    : client_(client),
      clock_(clock),
      options_(options),
      nodes_(as_set(node_names(options))),
      reflector_(client, clock,
                 {.resource = k8s::kPods,
                  .field_selector = "spec.nodeName!=",
                  .page_size = 1000,
                  .projection = kPodFields},
                 *this) {}

Pods::~Pods() { stop(); }

void Pods::start() {
  threads_.emplace_back([this](const std::stop_token& stop) {
    set_thread_name("pods");
    reflector_.run(stop);
  });
  for (std::size_t i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([this, i] {
      set_thread_name("work-" + std::to_string(i));
      work();
    });
  }
}

void Pods::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  threads_.clear();  // requests the stop and joins
}

void Pods::see(const json& object) {
  try {
    plan(object);
  } catch (const json::exception& error) {
    ++stats_.errors;
    log::warn("pod skipped: {}", error.what());
  }
}

void Pods::deleted(k8s::Value object) {
  MutexLock lock(mutex_);
  seen_.erase(std::string(object.find("metadata").find("uid").text()));
}

void Pods::plan(const json& object) {
  const json& meta = object.at("metadata");
  const json& spec = object.at("spec");
  if (!nodes_.contains(spec.value("nodeName", ""))) return;
  const std::string phase = object.value("status", json::object()).value("phase", "Pending");
  PodInfo pod{.key = {meta.value("namespace", ""), meta.value("name", "")},
              .uid = meta.value("uid", ""),
              .ends = spec.value("restartPolicy", "Always") == "Never"};
  for (const json& container : spec.at("containers")) {
    pod.containers.emplace_back(container.value("name", ""), container.value("image", ""));
  }
  bool is_new = false;
  {
    MutexLock lock(mutex_);
    const auto [it, added] = seen_.try_emplace(pod.uid, Seen::kStarted);
    is_new = added;
    if (meta.contains("deletionTimestamp")) {
      if (it->second == Seen::kRemoving) return;
      it->second = Seen::kRemoving;
    } else if (!added) {
      return;
    } else if (phase != "Pending" && phase != "Running") {
      it->second = Seen::kOver;
    }
  }
  if (is_new) ++stats_.seen;
  if (meta.contains("deletionTimestamp")) {
    add({Step::kRemove, std::move(pod)}, {});
  } else if (phase == "Pending" && pod.ends && !options_.write_running) {
    add({Step::kEnd, std::move(pod)}, options_.start_delay + options_.delay);
  } else if (phase == "Pending") {
    add({Step::kRun, std::move(pod)}, options_.start_delay);
  } else if (phase == "Running" && pod.ends) {
    add({Step::kEnd, std::move(pod)}, options_.delay);
  }
}

void Pods::add(Task task, Duration delay) {
  MutexLock lock(mutex_);
  tasks_.emplace(clock_.now() + delay, std::move(task));
  changed_.notify_one();
}

void Pods::work() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (tasks_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    const auto first = tasks_.begin();
    if (first->first > clock_.now()) {
      clock_.wait_until(changed_, mutex_, TimePoint(first->first));
      continue;
    }
    const Task task = std::move(first->second);
    tasks_.erase(first);
    lock.unlock();
    const auto done = perform(task);
    if (!done.ok() && !done.error().is(ErrorCode::kNotFound)) {
      const bool conflict = done.error().is(ErrorCode::kConflict);
      if (!conflict) {
        ++stats_.errors;
        log::warn("pod={} {}", task.pod.key.to_string(), done.error().message);
      }
      add(task, conflict ? std::chrono::milliseconds(10) : std::chrono::milliseconds(500));
    }
    lock.lock();
  }
}

bool Pods::is_removing(const std::string& uid) {
  MutexLock lock(mutex_);
  const auto it = seen_.find(uid);
  return it == seen_.end() || it->second == Seen::kRemoving;
}

Result<void> Pods::perform(const Task& task) {
  const PodInfo& pod = task.pod;
  switch (task.step) {
    case Step::kRemove: {
      auto removed =
          client_.remove(k8s::kPods, pod.key, {.uid = pod.uid, .grace_period_seconds = 0});
      // A conflict means that another pod of that name is there already.
      if (!removed.ok() && !removed.error().is(ErrorCode::kConflict)) return removed;
      ++stats_.removed;
      return {};
    }
    case Step::kRun:
      if (is_removing(pod.uid)) return {};
      LPP_RETURN_IF_ERROR(write_status(pod, "Running"), "run");
      if (pod.ends) add({Step::kEnd, pod}, options_.delay);
      return {};
    case Step::kEnd: {
      if (is_removing(pod.uid)) return {};
      const auto number = ++endings_;
      const bool fails = options_.fail_every != 0 && number % options_.fail_every == 0;
      LPP_RETURN_IF_ERROR(write_status(pod, fails ? "Failed" : "Succeeded"), "end");
      ++(fails ? stats_.failed : stats_.ended);
      return {};
    }
  }
  return {};
}

Result<void> Pods::write_status(const PodInfo& pod, const char* phase) {
  const std::string now = format_rfc3339(clock_.wall_now());
  const bool running = std::string_view(phase) == "Running";
  json containers = json::array();
  for (const auto& [name, image] : pod.containers) {
    containers.push_back({{"name", name},
                          {"image", image},
                          {"imageID", "hollow"},
                          {"ready", running},
                          {"started", running},
                          {"restartCount", 0},
                          {"state", container_state(phase, now, options_.message)}});
  }
  const json status = {
      {"phase", phase},
      {"startTime", now},
      {"conditions",
       json::array({condition("PodScheduled", true, now), condition("Initialized", true, now),
                    condition("ContainersReady", running, now), condition("Ready", running, now)})},
      {"containerStatuses", containers},
  };
  const auto written =
      client_.patch(k8s::kPods, pod.key, k8s::PatchType::kMerge,
                    {{"metadata", {{"uid", pod.uid}}}, {"status", status}}, "status");
  if (!written.ok()) return written.error();
  return {};
}

}  // namespace lpp::hollow
