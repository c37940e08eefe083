// SPDX-License-Identifier: Apache-2.0
#include "helperpod/pod_logs.h"

#include <algorithm>
#include <span>

#include "base/log.h"
#include "base/strings.h"

namespace lpp::helperpod {

namespace {

constexpr int kLines = 10;
constexpr int kBytes = 2048;
constexpr std::size_t kMaxOutputLine = 500;
/// A node that let a call run into its deadline is asked again after this.
constexpr std::chrono::seconds kSilence{60};

k8s::ApiClient::Options short_calls(const k8s::ApiClient& client) {
  auto options = client.options();
  options.call_timeout = PodLogs::kPatience;
  return options;
}

}  // namespace

PodLogs::PodLogs(k8s::ApiClient& client, Clock& clock)
    : client_(client.with(short_calls(client))), clock_(clock) {}

void PodLogs::begin(std::function<void(const std::string& uid)> on_read) {
  on_read_ = std::move(on_read);
  {
    MutexLock lock(mutex_);
    reading_ = true;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    set_thread_name("pod-logs");
    run(stop);
  });
}

void PodLogs::end() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  MutexLock lock(mutex_);
  reading_ = false;
  queue_.clear();
}

PodLogs::Log PodLogs::read(const Pod& pod) {
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  const auto [it, is_new] = asked_.try_emplace(pod.uid, Asked{.give_up = now + kPatience});
  Asked& asked = it->second;
  if (is_new && reading_) {
    queue_.push_back(pod);
    changed_.notify_one();
  }
  if (!asked.known && (now >= asked.give_up || !reading_)) asked.known = true;
  return {.known = asked.known, .text = asked.text, .known_by = asked.give_up};
}

void PodLogs::forget(std::string_view uid) {
  MutexLock lock(mutex_);
  asked_.erase(std::string(uid));
}

void PodLogs::run(const std::stop_token& stop) {
  auto options = client_.options();
  std::stop_source cut;
  const std::stop_callback at_end(stop, [&] { cut.request_stop(); });
  const std::stop_callback at_abort(options.stop, [&] { cut.request_stop(); });
  options.stop = cut.get_token();
  k8s::ApiClient client = client_.with(options);
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_one();
  });
  while (true) {
    Pod pod;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stop.stop_requested()) changed_.wait(mutex_);
      if (stop.stop_requested()) return;
      pod = std::move(queue_.front());
      queue_.pop_front();
      const auto asked = asked_.find(pod.uid);
      if (asked == asked_.end() || asked->second.known) continue;
      const auto silent = silent_.find(pod.node);
      if (silent != silent_.end() && clock_.now() < silent->second) {
        asked->second.known = true;
        pod.container.clear();
      }
    }
    if (!pod.container.empty()) read_one(client, pod);
    on_read_(pod.uid);
  }
}

void PodLogs::read_one(k8s::ApiClient& client, const Pod& pod) {
  const auto text = client.pod_log(pod.key, pod.container, kLines, kBytes);
  if (!text.ok()) {
    const std::string pod_name = pod.key.to_string();
    const log::Scope fields({{"pod", pod_name}, {"node", pod.node}});
    log::warn("log of the helper pod cannot be read: {}", text.error().message);
  }
  MutexLock lock(mutex_);
  if (!text.ok() && text.error().is(ErrorCode::kTimeout)) {
    silent_[pod.node] = clock_.now() + kSilence;
  } else {
    silent_.erase(pod.node);
  }
  const auto asked = asked_.find(pod.uid);
  if (asked == asked_.end() || asked->second.known) return;
  asked->second.known = true;
  if (text.ok()) asked->second.text = *text;
}

void log_output(std::string_view text) {
  if (trim(text).empty()) return;
  const auto lines = split(trim(text), '\n');
  const std::size_t count = std::min<std::size_t>(lines.size(), kLines);
  for (const std::string_view line : std::span(lines).last(count)) {
    log::warn("helper pod output | {}", truncate_utf8(trim(line), kMaxOutputLine));
  }
}

}  // namespace lpp::helperpod
