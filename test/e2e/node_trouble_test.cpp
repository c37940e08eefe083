// SPDX-License-Identifier: Apache-2.0
// Trouble that only a real control plane and node make: flow control, an API server that is killed,
// a kubelet that cannot start a container.

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "disk.h"
#include "harness/applied_objects.h"
#include "harness/standby.h"
#include "real_agents.h"
#include "real_faults.h"

namespace lpp::testing {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// One text of the ConfigMap with a part replaced, until this goes. The part must be there.
class ChangedText {
 public:
  ChangedText(Kube& kube, std::string key, const std::string& part, const std::string& with)
      : kube_(kube), key_(std::move(key)) {
    before_ = LPP_MUST(kube_.get(k8s::kConfigMaps, kMap))["data"][key_];
    std::string text = before_;
    REQUIRE(text.find(part) != std::string::npos);
    LPP_MUST(set(text.replace(text.find(part), part.size(), with)));
  }
  ~ChangedText() { CHECK(set(before_).ok()); }
  ChangedText(const ChangedText&) = delete;
  ChangedText& operator=(const ChangedText&) = delete;

 private:
  static inline const k8s::ObjectKey kMap{kDaemonNamespace, "local-path-config"};

  Result<json> set(const std::string& text) {
    return kube_.merge(k8s::kConfigMaps, kMap, {{"data", {{key_, text}}}});
  }

  Kube& kube_;
  const std::string key_;
  std::string before_;
};

/// Claims of one story, by number.
struct Claims {
  k8s::ObjectKey key(int i) const { return applied.key("c" + std::to_string(i)); }
  void make(int from, int to) {
    for (int i = from; i < to; ++i) {
      LPP_MUST(applied.apply(
          claim_object({.key = key(i), .selected_node = story.bed->nodes().front()})));
    }
  }
  void remove(int from, int to) {
    for (int i = from; i < to; ++i) {
      LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, key(i)));
    }
  }
  void wait_bound(int from, int to) {
    for (int i = from; i < to; ++i) facts[i] = LPP_MUST(story.audit.wait_bound(key(i)));
  }
  void wait_deleted(int from, int to) {
    for (int i = from; i < to; ++i) LPP_MUST(story.audit.wait_deleted(key(i), facts.at(i)));
  }

  RealStory& story;
  AppliedObjects applied;
  std::map<int, VolumeFacts> facts{};
};

Claims claims_in(RealStory& story, const std::string& ns) {
  return {.story = story, .applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, ns))};
}

constexpr const char* kFlowControl = "flowcontrol.apiserver.k8s.io/v1";
constexpr k8s::Resource kFlowSchemas{"flowcontrol.apiserver.k8s.io", "v1", "flowschemas",
                                     "FlowSchema", false};

/// One request at a time, for without any shares one still goes through; others are refused at
/// once.
json one_seat() {
  return {{"apiVersion", kFlowControl},
          {"kind", "PriorityLevelConfiguration"},
          {"metadata", {{"name", "one-seat"}}},
          {"spec",
           {{"type", "Limited"},
            {"limited",
             {{"nominalConcurrencyShares", 0},
              {"lendablePercent", 0},
              {"borrowingLimitPercent", 0},
              {"limitResponse", {{"type", "Reject"}}}}}}}};
}

json flow_of_the_daemon() {
  const json account = {{"namespace", kDaemonNamespace},
                        {"name", "local-path-provisioner-service-account"}};
  const json all = json::array({"*"});
  return {{"apiVersion", kFlowControl},
          {"kind", "FlowSchema"},
          {"metadata", {{"name", "one-seat"}}},
          {"spec",
           {{"priorityLevelConfiguration", {{"name", "one-seat"}}},
            {"matchingPrecedence", 50},
            {"rules", json::array({{{"subjects", json::array({{{"kind", "ServiceAccount"},
                                                               {"serviceAccount", account}}})},
                                    {"resourceRules", json::array({{{"verbs", all},
                                                                    {"apiGroups", all},
                                                                    {"resources", all},
                                                                    {"clusterScope", true},
                                                                    {"namespaces", all}}})}}})}}}};
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: flow control that rejects the daemon delays its claims and loses none") {
  StoryBy played("flow-control", by);
  RealStory& story = *played;
  played.start();
  auto claims = claims_in(story, "flow-control");
  constexpr int kEach = 4;
  claims.make(0, kEach);
  claims.wait_bound(0, kEach);

  LPP_MUST(claims.applied.apply(one_seat()));
  LPP_MUST(claims.applied.apply(flow_of_the_daemon()));
  LPP_MUST(wait_until(
      "the API server goes by the flow schema",
      [&]() -> std::string {
        const auto flow = story.admin().get(kFlowSchemas, {"", "one-seat"});
        if (!flow.ok()) return flow.error().message;
        return flow->value("status", json::object()).contains("conditions") ? "" : "not yet";
      },
      story.bed->patience()));

  // All helper pods, or volumes, are asked for in one moment. The answers are the API server's own.
  const std::string asked = by == By::kHelperPods ? "pods" : "persistentvolumes";
  const std::ptrdiff_t all = by == By::kHelperPods ? 2L * kEach : kEach;
  FaultProxy& proxy = story.installation->proxy();
  proxy.clear_records();
  proxy.set_hooks({.before = [&](const ApiRequest& request) {
    return request.is("create", asked) ? Decision::hang() : Decision::forward();
  }});
  claims.make(kEach, 2 * kEach);
  claims.remove(0, kEach);
  // By name: a call that has hung for ten seconds is given up, and made again.
  const auto asked_for = [&](int status) {
    std::set<std::string> names;
    for (const ProxyRecord& record : proxy.records()) {
      if (!record.request.is("create", asked) || record.status != status) continue;
      names.insert(json::parse(record.request.body)["metadata"]["name"]);
    }
    return std::ssize(names);
  };
  LPP_MUST(wait_until(
      "all are asked for", [&] { return asked_for(0) == all ? "" : std::to_string(asked_for(0)); },
      story.bed->patience()));
  proxy.set_hooks({});
  proxy.release_hung();
  claims.wait_bound(kEach, 2 * kEach);
  claims.wait_deleted(0, kEach);
  LPP_MUST(story.audit.wait_clean());
  // Volumes are fewer than pods, and may all have found the seat free.
  if (by == By::kHelperPods) CHECK(asked_for(429) > 0);
  claims.remove(kEach, 2 * kEach);
  claims.wait_deleted(kEach, 2 * kEach);
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.installation->stop_daemon());
}

/// Whether the claim's event comes sooner after what the kubelet says of its pod than that after
/// the claim. A busy machine delays both: the kubelet makes the pod's sandbox first, and all that
/// we do is read and write.
bool is_told_soon(Claims& claims, int number) {
  RealStory& story = claims.story;
  const auto begun = steady_clock::now();
  claims.make(number, number + 1);
  const k8s::ObjectKey key = claims.key(number);
  const std::string uid =
      LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, key))["metadata"]["uid"];
  auto knowable = steady_clock::time_point::max();
  LPP_MUST(wait_until(
      "the claim says what the kubelet says",
      [&]() -> std::string {
        const auto pods = story.admin().list(k8s::kPods, kDaemonNamespace);
        if (!pods.ok()) return pods.error().message;
        for (const json& pod : *pods) {
          const std::string all = pod.dump();
          if (all.find(uid) != std::string::npos &&
              all.find("CreateContainerConfigError") != std::string::npos) {
            knowable = std::min(knowable, steady_clock::now());
          }
        }
        for (const auto& event : story.admin().events_about("PersistentVolumeClaim", key)) {
          if (event.starts_with("Warning ProvisioningFailed: ") &&
              event.find("CreateContainerConfigError") != std::string::npos &&
              event.find("\"pass\" not found") != std::string::npos) {
            return "";
          }
        }
        return "no such event";
      },
      story.bed->patience()));
  const auto told = steady_clock::now();
  knowable = std::min(knowable, told);
  MESSAGE("told after ", std::chrono::ceil<milliseconds>(told - knowable).count(), " ms");
  return told - knowable < knowable - begun;
}

TEST_CASE("real node: a helper pod that needs a Secret which is missing says so on the claim") {
  RealStory story("missing-secret",
                  {.extra_args = {"--allow-unsafe-helper-pod-template"}, .env = {}});
  const std::string place = "imagePullPolicy: IfNotPresent\n";
  const ChangedText helper_pod(story.admin(), "helperPod.yaml", place,
                               place +
                                   "      env:\n"
                                   "        - name: WORD\n"
                                   "          valueFrom:\n"
                                   "            secretKeyRef:\n"
                                   "              name: pass\n"
                                   "              key: word\n");
  story.start();
  auto claims = claims_in(story, "missing-secret");
  // At the third try at the latest: each of us may stand still for a second.
  int made = 0;
  bool soon = false;
  while (!soon && made < 3) soon = is_told_soon(claims, made++);
  CHECK(soon);

  const k8s::Resource secrets{"", "v1", "secrets", "Secret", true};
  LPP_MUST(story.admin().api().create(secrets, kDaemonNamespace,
                                      {{"apiVersion", "v1"},
                                       {"kind", "Secret"},
                                       {"metadata", {{"name", "pass"}}},
                                       {"stringData", {{"word", "bees"}}}}));
  claims.wait_bound(0, made);
  claims.remove(0, made);
  claims.wait_deleted(0, made);
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.admin().remove(secrets, {kDaemonNamespace, "pass"}));
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real node: a script's last words come from its log where the template keeps none") {
  RealStory story("words-in-the-log");
  {
    const ChangedText helper_pod(story.admin(), "helperPod.yaml", "FallbackToLogsOnError", "File");
    const ChangedText setup(story.admin(), "setup", "set -eu\n",
                            "set -eu\necho 'bees in the log' >&2; exit 7\n");
    story.start();
    auto claims = claims_in(story, "words-in-the-log");
    claims.make(0, 1);
    LPP_MUST(wait_event(*story.bed, "PersistentVolumeClaim", claims.key(0),
                        {"ProvisioningFailed", "exit code 7", "bees in the log"}));
  }
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.installation->stop_daemon());
}

/// How often each volume was made, by both replicas.
std::map<std::string, int> volumes_made(const std::vector<ProxyRecord>& records) {
  std::map<std::string, int> made;
  for (const ProxyRecord& record : records) {
    if (!record.request.is("create", "persistentvolumes") || record.status != 201) continue;
    ++made[json::parse(record.request.body)["metadata"]["name"]];
  }
  return made;
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: replicas and API server and agent are killed, and what was begun is finished") {
  const std::vector<std::string> quick_lease = {"--leader-elect-lease-duration=4s",
                                                "--leader-elect-renew-deadline=3s",
                                                "--leader-elect-retry-period=1s"};
  StoryBy played("killed-api-server", by, {.daemon_args = quick_lease, .standby = true});
  RealStory& story = *played;
  story.may_be_forbidden = true;  // an API server that starts does not know its roles at once
  RealFaults faults(*story.bed);
  played.start();
  const std::string folder = story.folder + "/standby";
  std::filesystem::create_directories(folder);
  const auto standby = LPP_MUST(Installation::create(
      *story.bed, {.daemon = required_setting("LPP_E2E_DAEMON"),
                   .folder = folder,
                   .extra_args = by == By::kAgents ? played.agents()->standby_args() : quick_lease,
                   .env = {}}));
  // The lease is short: it stays with the first until both are killed, however busy the machine is.
  standby->proxy().set_hooks(
      {.before = [](const ApiRequest& request) { return as_standby(request, false); }});
  LPP_MUST(standby->start_daemon(Installation::OldLease::kKeep));
  LPP_MUST(standby->wait_ready());
  auto claims = claims_in(story, "killed-api-server");
  claims.make(0, 4);
  claims.wait_bound(0, 4);
  const std::string kept = claims.facts.at(3).disk + "/kept";
  write_text(kept, "bees");

  {
    const pid_t agent = by == By::kAgents ? played.agents()->process() : 0;
    const ChangedText slow_setup(story.admin(), "setup", "set -eu\n", "set -eu\nsleep 1\n");
    const ChangedText slow_teardown(story.admin(), "teardown", "set -eu\n", "set -eu\nsleep 1\n");
    story.installation->proxy().clear_records();
    claims.make(4, 8);
    claims.remove(0, 3);
    REQUIRE(story.installation->proxy().wait_for_record(
        [&](const ProxyRecord& record) {
          const bool begun = by == By::kHelperPods
                                 ? record.request.is("create", "pods")
                                 : record.request.is("create", "persistentvolumes");
          return begun && record.status == 201;
        },
        story.bed->patience().limit));
    LPP_MUST(faults.kill_api_server());
    standby->kill_daemon();
    if (by == By::kAgents) REQUIRE(::kill(agent, SIGKILL) == 0);
    story.installation->kill_daemon();
    standby->proxy().set_hooks({});
    // Before anybody answers.
    for (Installation* one : {story.installation.get(), standby.get()}) {
      LPP_MUST(one->start_daemon(Installation::OldLease::kKeep));
    }
    LPP_MUST(faults.start_api_server());
  }
  claims.wait_bound(4, 8);
  claims.wait_deleted(0, 3);
  LPP_MUST(story.audit.wait_clean());
  CHECK(text_of(kept) == "bees");
  auto records = story.installation->proxy().records();
  for (const ProxyRecord& record : standby->proxy().records()) records.push_back(record);
  for (const auto& [volume, times] : volumes_made(records)) {
    CAPTURE(volume);
    CHECK(times == 1);
  }
  claims.remove(3, 8);
  claims.wait_deleted(3, 8);
  LPP_MUST(story.audit.wait_clean());
  for (Installation* one : {story.installation.get(), standby.get()}) {
    LPP_MUST(one->wait_ready());
    LPP_MUST(one->stop_daemon());
  }
}

}  // namespace
}  // namespace lpp::testing
