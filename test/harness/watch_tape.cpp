// SPDX-License-Identifier: Apache-2.0
#include "harness/watch_tape.h"

namespace lpp::testing {

using nlohmann::json;

WatchTape::WatchTape(Kube& kube, const k8s::Resource& resource, std::string ns,
                     k8s::WatchOptions options)
    : thread_([this, &kube, resource, ns = std::move(ns),
               options = std::move(options)](const std::stop_token& stop) {
        auto end = kube.api().watch(
            resource, ns, options,
            [this](std::string_view line) {
              json frame = json::parse(line, nullptr, /*allow_exceptions=*/false);
              MutexLock lock(mutex_);
              frames_.push_back(std::move(frame));
              changed_.notify_all();
              return true;
            },
            stop);
        MutexLock lock(mutex_);
        end_ = std::move(end);
        changed_.notify_all();
      }) {}

std::vector<json> WatchTape::frames() const {
  MutexLock lock(mutex_);
  return frames_;
}

std::vector<std::string> WatchTape::story() const {
  std::vector<std::string> lines;
  for (const json& frame : frames()) {
    const std::string type = frame.value("type", "");
    if (type == "BOOKMARK") continue;
    const json meta = frame.value("object", json::object()).value("metadata", json::object());
    lines.push_back(type + " " + meta.value("name", ""));
  }
  return lines;
}

bool WatchTape::wait_for(std::size_t n, std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    if (story().size() >= n) return true;
    MutexLock lock(mutex_);
    if (end_ || std::chrono::steady_clock::now() >= deadline) break;
    changed_.wait_until(mutex_, std::min(deadline, std::chrono::steady_clock::now() +
                                                       std::chrono::milliseconds(50)));
  }
  return story().size() >= n;
}

std::optional<Result<void>> WatchTape::wait_end(std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (!end_ && std::chrono::steady_clock::now() < deadline) {
    changed_.wait_until(mutex_, deadline);
  }
  return end_;
}

}  // namespace lpp::testing
