// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "devcluster/apiserver/api_handler.h"
#include "devcluster/apiserver/status.h"

namespace lpp::devcluster {
namespace {

constexpr std::chrono::milliseconds kFollowStep{100};

std::optional<std::size_t> to_count(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view last_lines(std::string_view text, std::size_t count) {
  if (count == 0) return {};
  std::size_t start = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (; count > 0 && start != std::string_view::npos && start > 0; --count) {
    start = text.rfind('\n', start - 1);
  }
  return start == std::string_view::npos || start == 0 ? text : text.substr(start + 1);
}

bool has_container(const Json& pod, const std::string& name) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const auto& container : at_path(pod, {"spec", list})) {
      if (text_at(container, {"name"}) == name) return true;
    }
  }
  return false;
}

bool has_ended(const Json& pod) {
  const std::string phase = text_at(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

void ApiHandler::set_log_source(LogSource source) {
  const MutexLock lock(mutex_);
  log_source_ = std::move(source);
}

void ApiHandler::pod_log(Call& call, const std::vector<FaultAction>& later) {
  const auto& path = call.path;
  const auto finish = [&](const Answer& answer) {
    const bool answered = strike_after(call, later);
    record(call, answered ? answer.code : 0);
    if (answered) respond(call, answer);
  };
  const auto pod = registry_.get({"pods", path.ns, path.name});
  if (!pod.ok()) return finish(plain(pod));
  std::string container = call.request.param("container");
  if (container.empty()) {
    const Json& containers = at_path(*pod.body, {"spec", "containers"});
    if (containers.size() != 1) {
      return finish(plain(bad_request("a container name must be specified for pod " + path.name)));
    }
    container = text_at(containers.front(), {"name"});
  }
  if (!has_container(*pod.body, container)) {
    return finish(
        plain(bad_request("container " + container + " is not valid for pod " + path.name)));
  }
  LogSource source;
  {
    const MutexLock lock(mutex_);
    source = log_source_;
  }
  const auto log =
      source ? source(path.ns, path.name, container) : std::optional<std::string>(std::string());
  if (!log) {
    return finish(plain(bad_request("container \"" + container + "\" in pod \"" + path.name +
                                    "\" is waiting to start: ContainerCreating")));
  }
  std::string_view text = *log;
  if (const auto tail = to_count(call.request.param("tailLines"))) text = last_lines(text, *tail);
  if (is_true(call.request.param("follow")) && source) {
    record(call, 200);
    return follow_log(call, source, container, text, log->size());
  }
  if (const auto limit = to_count(call.request.param("limitBytes"))) text = text.substr(0, *limit);
  finish(Answer{.body = std::string(text), .content_type = "text/plain"});
}

void ApiHandler::follow_log(Call& call, const LogSource& source, const std::string& container,
                            std::string_view start, std::size_t sent) {
  const auto& path = call.path;
  if (!call.exchange.begin_chunks(200, {{"Content-Type", "text/plain"}})) return;
  if (!call.exchange.chunk(start)) return;
  bool ended = false;
  while (!ended && call.exchange.pause(kFollowStep)) {
    // Looked at first: whatever the pod wrote before it ended is in the log then.
    const auto pod = registry_.get({"pods", path.ns, path.name});
    ended = !pod.ok() || has_ended(*pod.body);
    const std::string log = source(path.ns, path.name, container).value_or("");
    if (log.size() > sent && !call.exchange.chunk(std::string_view(log).substr(sent))) {
      return;
    }
    sent = std::max(sent, log.size());
  }
  if (!call.exchange.gone()) call.exchange.end_chunks();
}

}  // namespace lpp::devcluster
