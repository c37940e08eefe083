// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fakes/eventually.h"
#include "harness/file_text.h"
#include "harness/http_get.h"
#include "harness/kinds.h"
#include "harness/objects.h"
#include "harness/watch_tape.h"
#include "integration/support/story_bed.h"

/// Steps that several stories take. Each one ends the test case when it fails.
namespace lpp::testing {

inline void wait_for(StoryBed& story, const std::string& what, const Condition& condition) {
  LPP_MUST(wait_until(what, condition, story.bed->patience()));
}

inline void wait_for_phase(StoryBed& story, const k8s::ObjectKey& pod, const std::string& phase) {
  wait_for(story, "pod " + pod.to_string() + " is " + phase, [&]() -> std::string {
    const auto found = story.admin().get(k8s::kPods, pod);
    if (!found.ok()) return found.error().message;
    const std::string now = (*found)["status"].value("phase", "");
    return now == phase ? "" : "it is " + now + ": " + (*found)["status"].dump();
  });
}

/// The helper pods, once there are any: between two attempts there is none for a moment, or that of
/// the one is still on its way out.
inline std::vector<nlohmann::json> wait_for_pods(StoryBed& story) {
  std::vector<nlohmann::json> pods;
  wait_for(story, "there is a helper pod", [&]() -> std::string {
    pods = LPP_MUST(story.admin().list(k8s::kPods, kDaemonNamespace));
    return pods.empty() ? "there is none" : "";
  });
  return pods;
}

/// How many helper pods there have been.
inline std::ptrdiff_t pods_made(const WatchTape& pods) {
  const auto story = pods.story();
  return std::count_if(story.begin(), story.end(),
                       [](const std::string& frame) { return frame.starts_with("ADDED "); });
}

/// The same, when there have been at least so many: the tape may be late.
inline std::ptrdiff_t pods_made(const WatchTape& pods, std::ptrdiff_t at_least) {
  eventually([&] { return pods_made(pods) >= at_least; });
  return pods_made(pods);
}

/// A page of a daemon or an agent that runs. Asked for again when it cannot be had: the server has
/// three seconds for a connection, and the machine may be busy.
inline std::string page_at(int port, const std::string& path) {
  Result<HttpAnswer> answer = http_get(port, path);
  const auto is_there = [&] {
    if (!answer.ok()) answer = http_get(port, path);
    return answer.ok();
  };
  eventually(is_there, std::chrono::seconds(60), std::chrono::milliseconds(50));
  return LPP_MUST(answer).body;
}
inline std::string page(const StoryBed& story, const std::string& path) {
  return page_at(story.installation->daemon().health_port(), path);
}

/// A number of the page of metrics at that port.
inline Result<std::string> metric_of(int port, const std::string& name) {
  const std::string page = page_at(port, "/metrics");
  const std::string begin = "\n" + name + " ";
  const auto at = page.find(begin);
  if (at == std::string::npos) return Error{.message = "no " + name + " in " + page};
  const auto value = at + begin.size();
  return page.substr(value, page.find('\n', value) - value);
}
inline Result<std::string> metric(const StoryBed& story, const std::string& name) {
  return metric_of(story.installation->daemon().health_port(), name);
}

/// Who holds the daemon's lease; "" = nobody.
inline std::string holder_of_lease(StoryBed& story) {
  const auto lease = LPP_MUST(story.admin().get(k8s::kLeases, {kDaemonNamespace, kDaemonLease}));
  return lease["spec"].value("holderIdentity", "");
}

/// Whether it was done well before everything is looked at again in any case, after 15 s; at the
/// third try at the latest, for a machine that is busy. An attempt returns since when it is judged.
template <typename Attempt>
bool is_soon(const Attempt& attempt) {
  for (int i = 0; i < 3; ++i) {
    const std::chrono::steady_clock::time_point began = attempt(i);
    if (std::chrono::steady_clock::now() - began < std::chrono::seconds(10)) return true;
  }
  return false;
}

/// For a machine that is busy: an attempt that was too slow to be judged returns false.
template <typename Attempt>
void try_until_judged(const Attempt& attempt) {
  bool judged = false;
  for (int i = 0; i < 3 && !judged; ++i) judged = attempt();
  CHECK(judged);
}

/// Until the daemon has had unfinished work of the kind ("provision", "delete") for so long, by its
/// own clock.
inline void wait_until_old(StoryBed& story, const std::string& kind, double seconds) {
  wait_for(story, "an unfinished " + kind + " is old", [&]() -> std::string {
    const auto age = LPP_MUST(metric(
        story, "local_path_provisioner_oldest_operation_age_seconds{operation=\"" + kind + "\"}"));
    return std::stod(age) >= seconds ? "" : age + " s";
  });
}

/// No helper pod begins on the node, or its agent hangs.
inline void set_dead(StoryBed& story, const std::string& node, bool dead) {
  if (!story.agents) {
    story.bed->cluster().nodes().set_faults(node, {.dead = dead});
  } else if (dead) {
    story.agents->freeze(node);
  } else {
    story.agents->thaw(node);
  }
}

/// By the daemon, as its proxy has seen it.
inline std::ptrdiff_t pods_asked_for(Installation& installation) {
  const auto records = installation.proxy().records();
  return std::count_if(records.begin(), records.end(),
                       [](const auto& record) { return record.request.is("create", "pods"); });
}

inline std::ptrdiff_t pods_asked_for(const StoryBed& story) {
  return pods_asked_for(*story.installation);
}
/// How many directories the node's agent has made since it was started.
inline int made_by_agent(StoryBed& story, const std::string& node) {
  return std::stoi(LPP_MUST(metric_of(story.agents->of(node).health_port(),
                                      "local_path_provisioner_agent_operation_duration_seconds_"
                                      "count{operation=\"provision\",result=\"succeeded\"}")));
}

/// The first event about the claim with that reason and text, once it is there.
inline std::string wait_for_event(StoryBed& story, const k8s::ObjectKey& claim,
                                  const std::string& reason, const std::string& part = {}) {
  std::string found;
  wait_for(story, "event " + reason + " about " + claim.to_string(), [&]() -> std::string {
    std::string all;
    for (const auto& event : story.admin().events_about("PersistentVolumeClaim", claim)) {
      if (event.find(" " + reason + ": ") != std::string::npos &&
          event.find(part) != std::string::npos) {
        found = event;
        return "";
      }
      all += "\n  " + event;
    }
    return "its events:" + all;
  });
  return found;
}

inline std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

inline std::size_t times_logged(const StoryBed& story, const std::string& part) {
  return times_in(story.installation->log_text(), part);
}

inline void wait_for_log(StoryBed& story, const std::string& part, std::size_t times = 1) {
  wait_for(story, "the daemon's log says \"" + part + "\"", [&]() -> std::string {
    return times_logged(story, part) >= times ? "" : story.installation->log_tail();
  });
}

/// Puts a line in front of one of the scripts in the ConfigMap, after its first line; returns the
/// script as it was.
inline std::string change_script(StoryBed& story, const std::string& script,
                                 const std::string& line) {
  const k8s::ObjectKey key{kDaemonNamespace, "local-path-config"};
  const auto map = LPP_MUST(story.admin().get(k8s::kConfigMaps, key));
  std::string before = map["data"][script];
  std::string after = before;
  after.insert(after.find('\n') + 1, line + "\n");
  LPP_MUST(story.admin().merge(k8s::kConfigMaps, key, {{"data", {{script, after}}}}));
  return before;
}

inline void restore_script(StoryBed& story, const std::string& script, const std::string& text) {
  LPP_MUST(story.admin().merge(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"},
                               {{"data", {{script, text}}}}));
}

}  // namespace lpp::testing
