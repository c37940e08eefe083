// SPDX-License-Identifier: Apache-2.0
#include "app/agent_pods.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "k8s/json_access.h"

namespace lpp::app {

namespace {

using k8s::elements;
using k8s::member, k8s::text;
using nlohmann::json;

/// Whether anything has ever run in it, as far as can be told.
bool may_have_started(const json& pod) {
  if (text(member(pod, "status"), "phase") != "Pending") return true;
  const json& containers = elements(member(pod, "status"), "containerStatuses");
  return std::any_of(containers.begin(), containers.end(), [](const json& one) {
    if (!one.is_object()) return true;
    const json last = one.value("lastState", json::object());
    const json state = one.value("state", json::object());
    const bool waits = state.empty() || (state.size() == 1 && state.contains("waiting"));
    return !waits || !last.empty() || !text(one, "containerID").empty() ||
           one.value("restartCount", json(0)) != json(0);
  });
}

bool is_over(const json& pod) {
  const std::string phase = text(member(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

std::string why_not(const json& pod) {
  for (const json& one : elements(member(pod, "status"), "containerStatuses")) {
    const json& waiting = member(member(one, "state"), "waiting");
    const std::string reason = text(waiting, "reason");
    const std::string message = text(waiting, "message");
    constexpr std::size_t kMostWords = 300;
    if (!reason.empty()) {
      return message.empty() ? reason
                             : reason + ": " + std::string(truncate_utf8(message, kMostWords));
    }
  }
  return "its containers have not been started";
}

}  // namespace

Result<bool> AgentPods::may_work(const std::string& node, const std::string& heard) {
  const auto pods =
      client_.list(k8s::kPods, settings_.ns, {.field_selector = "spec.nodeName=" + node});
  if (!pods.ok()) return Error(pods.error()).wrap("look for an agent's pod on node " + node);
  std::map<std::string, json> waiting;  // by UID
  bool any = false;
  for (const json& pod : elements(*pods, "items")) {
    const json& meta = member(pod, "metadata");
    const json& spec = member(pod, "spec");
    const bool is_agent = text(spec, "serviceAccountName") == settings_.service_account &&
                          text(spec, "nodeName") == node;
    if (is_over(pod) || !is_agent) continue;
    const bool was_heard = !heard.empty() && text(meta, "name") == heard;
    if (was_heard || may_have_started(pod)) any = true;
    waiting[text(meta, "uid")] = pod;
  }
  bool ready = false;
  if (!any && !waiting.empty()) {
    LPP_ASSIGN_OR_RETURN(ready, is_ready(node), "look for the kubelet of an agent's pod");
  }
  if (any || !ready) {
    MutexLock lock(mutex_);
    waiting_.erase(node);
    return !waiting.empty();
  }
  return !is_overdue(node, waiting);
}

Result<std::set<std::string>> AgentPods::nodes_with_one(const std::stop_token& stop) {
  {
    MutexLock lock(mutex_);
    if (listed_at_ && clock_.now() - *listed_at_ < kAskAgain) return listed_;
  }
  auto found = list_nodes(stop);
  if (!found.ok() && found.error().is(ErrorCode::kCancelled)) return found;
  MutexLock lock(mutex_);
  listed_at_ = clock_.now();
  listed_ = std::move(found);
  return listed_;
}

Result<std::set<std::string>> AgentPods::list_nodes(const std::stop_token& stop) {
  auto stoppable = client_.options();
  stoppable.stop = stop;
  k8s::ApiClient client = client_.with(std::move(stoppable));
  constexpr int kPage = 100;
  k8s::ListOptions options{.limit = kPage};
  std::set<std::string> nodes;
  do {
    const auto page = client.list(k8s::kPods, settings_.ns, options);
    if (!page.ok()) return Error(page.error()).wrap("look for agents' pods");
    for (const json& pod : elements(*page, "items")) {
      const json& spec = member(pod, "spec");
      const bool is_agent = text(spec, "serviceAccountName") == settings_.service_account;
      if (is_agent && !is_over(pod) && may_have_started(pod)) nodes.insert(text(spec, "nodeName"));
    }
    options.continue_token = text(member(*page, "metadata"), "continue");
  } while (!options.continue_token.empty());
  return nodes;
}

Result<bool> AgentPods::is_ready(const std::string& node) {
  const auto found = client_.get(k8s::kNodes, {"", node});
  if (!found.ok()) return found.error();
  const json& conditions = elements(member(*found, "status"), "conditions");
  return std::any_of(conditions.begin(), conditions.end(), [](const json& one) {
    return text(one, "type") == "Ready" && text(one, "status") == "True";
  });
}

bool AgentPods::is_overdue(const std::string& node, const std::map<std::string, json>& pods) {
  const TimePoint now = clock_.now();
  std::vector<const json*> untold;
  {
    MutexLock lock(mutex_);
    Pods& known = waiting_[node];
    std::erase_if(known, [&](const auto& item) { return !pods.contains(item.first); });
    for (const auto& [uid, pod] : pods) known.try_emplace(uid, Waiting{.since = now});
    const bool all = std::all_of(known.begin(), known.end(), [&](const auto& item) {
      return now - item.second.since >= kStartsWithin;
    });
    if (!all) return false;
    for (auto& [uid, one] : known) {
      if (!std::exchange(one.told, true)) untold.push_back(&pods.at(uid));
    }
  }
  for (const json* const pod : untold) {
    log::warn("the agent's pod {} on node {} does not start: helper pods serve the node ({})",
              text(member(*pod, "metadata"), "name"), node, log::quoted(why_not(*pod)));
  }
  return true;
}

}  // namespace lpp::app
