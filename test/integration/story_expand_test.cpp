// SPDX-License-Identifier: Apache-2.0
// Claims that ask for more.

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "fakes/builders.h"
#include "harness/kill_switch.h"
#include "helperpod/manifest.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

/// Beside the directory's content, what each run was told.
constexpr const char* kTell =
    "echo \"$* $VOL_DIR $VOL_SIZE_BYTES $VOL_MODE\" >>\"$VOL_DIR/told\"\n";
/// Ends when the test lets it.
constexpr const char* kWait = "while [ ! -e \"$VOL_DIR/go\" ]; do sleep 0.1; done\n";
constexpr std::int64_t kGi = 1LL << 30U;

struct ExpandStory : StoryBed {
  /// The API server keeps what an expansion writes down, or is one of before Kubernetes 1.32.
  enum class Marks { kKept, kDropped };

  explicit ExpandStory(By executor, Marks marks = Marks::kKept)
      : StoryBed({},
                 {.manifest = repository("deploy/local-path-storage.yaml"),
                  .recovers_expansion = marks == Marks::kKept},
                 executor) {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
    make_class("growing");
    make_class("kept", "Retain");
  }

  void make_class(const std::string& name, const std::string& reclaim_policy = "Delete") {
    json storage_class = class_object({.name = name, .reclaim_policy = reclaim_policy});
    storage_class["allowVolumeExpansion"] = true;
    LPP_MUST(admin().create(storage_class));
  }
  /// Bound, of 1 Gi.
  k8s::ObjectKey want(const std::string& name, const std::string& storage_class = "growing") {
    const k8s::ObjectKey key{"app", name};
    LPP_MUST(admin().create(claim_object(
        {.key = key, .storage_class = storage_class, .size = "1Gi", .selected_node = "node-1"})));
    volume = LPP_MUST(audit.wait_bound(key));
    return key;
  }
  Result<json> ask(const k8s::ObjectKey& claim, const std::string& size) {
    return admin().merge(k8s::kPersistentVolumeClaims, claim,
                         {{"spec", {{"resources", {{"requests", {{"storage", size}}}}}}}});
  }
  json claim(const k8s::ObjectKey& key) {
    return LPP_MUST(admin().get(k8s::kPersistentVolumeClaims, key));
  }
  /// "" when the claim has the size, nothing is left to do and the volume says the same.
  std::string lacks(const k8s::ObjectKey& key, const std::string& size) {
    const json now = claim(key);
    const json& status = now["status"];
    if (status["capacity"]["storage"] != size) return status.dump();
    if (status.contains("allocatedResourceStatuses")) return status.dump();
    if (!status.value("conditions", json::array()).empty()) return status.dump();
    const std::string pv = now["spec"]["volumeName"];
    const json capacity =
        LPP_MUST(admin().get(k8s::kPersistentVolumes, {"", pv}))["spec"]["capacity"];
    return capacity["storage"] == size ? "" : capacity.dump();
  }
  void wait_size(const k8s::ObjectKey& key, const std::string& size) {
    wait_for(*this, key.to_string() + " has " + size, [&] { return lacks(key, size); });
  }
  void wait_status(const k8s::ObjectKey& key, const std::string& word) {
    wait_for(*this, key.to_string() + " is " + word, [&]() -> std::string {
      const json status = claim(key)["status"];
      const json words = status.value("allocatedResourceStatuses", json::object());
      return words.value("storage", "") == word ? "" : status.dump();
    });
  }
  bool has_event(const k8s::ObjectKey& key, const std::string& reason) {
    for (const auto& event : admin().events_about("PersistentVolumeClaim", key)) {
      if (event.find(" " + reason + ": ") != std::string::npos) return true;
    }
    return false;
  }
  /// Of claims' status, by the daemon, with that answer. Without those that bind a claim, in place
  /// of a controller manager that is behind.
  std::size_t status_writes(int answer = 200) const {
    const auto all = installation->proxy().records();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& record) {
      return record.request.is("patch", "persistentvolumeclaims/status") &&
             record.status == answer && record.request.body.find("\"phase\"") == std::string::npos;
    }));
  }
  /// Those that have succeeded, once there are as many: that one was answered is known a little
  /// later.
  std::size_t wait_status_writes(std::size_t count) {
    wait_for(*this, "the status has been written", [&]() -> std::string {
      return status_writes() >= count ? "" : std::to_string(status_writes());
    });
    return status_writes();
  }
  /// Writes from a cache that is behind are refused, as often as it is behind when it is tried.
  void check_few_are_refused() const {
    CHECK(status_writes(409) <= 20);
    for (const int answer : {403, 404, 422}) CHECK(status_writes(answer) == 0);
  }
  void script(const std::string& text) { restore_script(*this, "resize", "#!/bin/sh\n" + text); }
  std::vector<std::string> told() const {
    std::vector<std::string> lines;
    std::istringstream text(text_of(volume.disk + "/told"));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  void wait_no_pods() {
    wait_for(*this, "no helper pod is left", [&]() -> std::string {
      const auto pods = LPP_MUST(
          admin().list(k8s::kPods, kDaemonNamespace, helperpod::label_selector(kProvisionerName)));
      return pods.empty() ? "" : "there is one";
    });
  }

  VolumeFacts volume;  // of the last claim
};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim grows in numbers, and its owner is told that nothing enforces them") {
  ExpandStory story(by);
  std::string storage_class = "growing";
  SUBCASE("of a class that deletes") {}
  SUBCASE("of a class that retains") { storage_class = "kept"; }
  const auto claim = story.want("data", storage_class);
  story.wait_no_pods();
  LPP_MUST(story.ask(claim, "2Gi"));
  story.wait_size(claim, "2Gi");
  wait_for_event(story, claim, "VolumeResizeSuccessful", "Resize volume succeeded");
  wait_for_event(story, claim, "SizeNotEnforced", story.volume.pv);
  const json grown = story.claim(claim);
  CHECK(grown["status"]["allocatedResources"]["storage"] == "2Gi");
  CHECK(grown["metadata"]["annotations"]["volume.kubernetes.io/node-expansion-not-required"] ==
        "true");
  // No pod was needed, and a second time is like the first.
  for (const auto& record : story.installation->proxy().records()) {
    CHECK_FALSE((record.request.is("create", "pods") &&
                 record.request.body.find("\"resize\"") != std::string::npos));
  }
  LPP_MUST(story.ask(claim, "3Gi"));
  story.wait_size(claim, "3Gi");
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE("a class that does not say so lets no claim grow") {
  ExpandStory story(by);
  const auto claim = story.want("data", "local-path");
  const auto refused = story.ask(claim, "2Gi");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().http_status == 403);
  CHECK(story.lacks(claim, "1Gi").empty());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a volume that was adopted grows though its claim asked nobody for it") {
  ExpandStory story(by);
  const std::string node = "node-1";
  const std::string path = "/opt/local-path-provisioner/adopted";
  std::filesystem::create_directories(story.bed->on_disk(node, path));
  LPP_MUST(story.admin().create(
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolume"},
       {"metadata",
        {{"name", "adopted"},
         {"annotations", {{"pv.kubernetes.io/provisioned-by", "rancher.io/local-path"}}}}},
       {"spec",
        {{"capacity", {{"storage", "1Gi"}}},
         {"accessModes", json::array({"ReadWriteOnce"})},
         {"persistentVolumeReclaimPolicy", "Retain"},
         {"storageClassName", "growing"},
         {"local", {{"path", path}}},
         {"nodeAffinity",
          {{"required",
            {{"nodeSelectorTerms",
              json::array({{{"matchExpressions",
                             json::array({{{"key", "kubernetes.io/hostname"},
                                           {"operator", "In"},
                                           {"values", json::array({node})}}})}}})}}}}}}}}));
  const k8s::ObjectKey claim{"app", "data"};
  json object =
      claim_object({.key = claim, .storage_class = "growing", .size = "1Gi", .selected_node = ""});
  object["spec"]["volumeName"] = "adopted";
  LPP_MUST(story.admin().create(object));
  wait_for(story, "the claim is bound", [&]() -> std::string {
    const std::string phase = story.claim(claim)["status"].value("phase", "");
    return phase == "Bound" ? "" : phase;
  });
  CHECK_FALSE(story.claim(claim)["metadata"]["annotations"].contains(
      "volume.kubernetes.io/storage-provisioner"));
  if (by == By::kHelperPods) story.script(kTell);
  story.volume.disk = story.bed->on_disk(node, path);
  LPP_MUST(story.ask(claim, "2Gi"));
  story.wait_size(claim, "2Gi");
  if (by == By::kAgents) {
    CHECK(pods_asked_for(story) == 0);
    return;
  }
  CHECK(story.told() == std::vector<std::string>{"-p " + path +
                                                 " -s 2147483648 -m Filesystem -a "
                                                 "resize " +
                                                 path + " 2147483648 Filesystem"});
}

TEST_CASE("the resize script is run on the volume's node with its directory and its new size") {
  ExpandStory story(By::kHelperPods);
  const auto claim = story.want("data");
  story.script(std::string(kTell) + kWait);
  LPP_MUST(story.ask(claim, "3Gi"));
  wait_for_event(story, claim, "Resizing",
                 "External resizer is resizing volume " + story.volume.pv);
  std::ofstream(story.volume.disk + "/go").close();
  story.wait_size(claim, "3Gi");
  const std::string size = std::to_string(3 * kGi);
  CHECK(story.told() == std::vector<std::string>{"-p " + story.volume.path + " -s " + size +
                                                 " -m Filesystem -a resize " + story.volume.path +
                                                 " " + size + " Filesystem"});
  wait_for_event(story, claim, "VolumeResizeSuccessful");
  CHECK_FALSE(story.has_event(claim, "SizeNotEnforced"));
  story.wait_no_pods();
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("a claim that asks for still more is given both sizes, one after the other") {
  ExpandStory story(By::kHelperPods);
  const auto claim = story.want("data");
  story.script(std::string(kTell) + kWait);
  LPP_MUST(story.ask(claim, "2Gi"));
  wait_for(story, "the script runs", [&] { return story.told().size() == 1 ? "" : "not yet"; });
  LPP_MUST(story.ask(claim, "3Gi"));
  CHECK(story.claim(claim)["status"]["allocatedResources"]["storage"] == "2Gi");
  std::ofstream(story.volume.disk + "/go").close();
  story.wait_size(claim, "3Gi");
  REQUIRE(story.told().size() == 2);
  CHECK(story.told()[0].ends_with(" " + std::to_string(2 * kGi) + " Filesystem"));
  CHECK(story.told()[1].ends_with(" " + std::to_string(3 * kGi) + " Filesystem"));
}

TEST_CASE("a script that fails is told with its exit code, and a lower request helps") {
  ExpandStory story(By::kHelperPods);
  const auto claim = story.want("data");
  story.script(
      "[ \"$VOL_SIZE_BYTES\" -le 2147483648 ] || { echo 'no room for it' >&2; exit 7; }\n");
  LPP_MUST(story.ask(claim, "3Gi"));
  const std::string event = wait_for_event(story, claim, "VolumeResizeFailed", "no room for it");
  CHECK(event.starts_with("Warning "));
  CHECK(event.find("exit code 7") != std::string::npos);
  CHECK(story.claim(claim)["status"]["capacity"]["storage"] == "1Gi");
  story.wait_status(claim, "ControllerResizeInProgress");
  LPP_MUST(story.ask(claim, "2Gi"));
  story.wait_size(claim, "2Gi");
  CHECK(story.claim(claim)["status"]["allocatedResources"]["storage"] == "2Gi");
  story.wait_no_pods();
}

TEST_CASE("a size that the node cannot have is marked as such, and a lower request helps") {
  ExpandStory story(By::kHelperPods);
  const auto claim = story.want("data");
  story.script(
      "[ \"$VOL_SIZE_BYTES\" -le 2147483648 ] || { echo 'the disk is too small' >&2; exit 3; }\n");
  LPP_MUST(story.ask(claim, "3Gi"));
  story.wait_status(claim, "ControllerResizeInfeasible");
  const json failed = story.claim(claim)["status"]["conditions"];
  REQUIRE(failed.size() == 1);
  CHECK(failed[0]["type"] == "ControllerResizeError");
  CHECK(failed[0]["status"] == "True");
  CHECK(failed[0]["message"].get<std::string>().find("the disk is too small") != std::string::npos);
  wait_for_event(story, claim, "VolumeResizeFailed", "the disk is too small");
  const auto too_low = story.ask(claim, "1Gi");
  REQUIRE_FALSE(too_low.ok());
  CHECK(too_low.error().http_status == 422);
  LPP_MUST(story.ask(claim, "2Gi"));
  story.wait_size(claim, "2Gi");
  story.wait_no_pods();
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "with a role of an older version claims do not grow, and nothing else suffers") {
  ExpandStory story(by);
  story.installation->proxy().set_hooks({.before = [](const ApiRequest& request) {
    return request.is("patch", "persistentvolumeclaims/status") ? Decision::reply(403, "Forbidden")
                                                                : Decision::forward();
  }});
  const auto claim = story.want("data");
  LPP_MUST(story.ask(claim, "2Gi"));
  wait_for_event(story, claim, "VolumeResizeFailed", "lacks a permission");
  const auto other = story.want("other");
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, other));
  LPP_MUST(story.audit.wait_deleted(other, story.volume));
  CHECK(story.lacks(claim, "1Gi").empty());
  story.installation->proxy().set_hooks({});
  story.wait_size(claim, "2Gi");
}

TEST_CASE("a claim deleted while its volume grows leaves nothing behind") {
  ExpandStory story(By::kHelperPods);
  const auto claim = story.want("data");
  story.script(std::string(kTell) + "while [ -d \"$VOL_DIR\" ]; do sleep 0.1; done\n");
  LPP_MUST(story.ask(claim, "2Gi"));
  wait_for(story, "the script runs", [&] { return story.told().size() == 1 ? "" : "not yet"; });
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, story.volume));
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("a claim and its volume that are both gone while it grows leave no helper pod behind") {
  ExpandStory story(By::kHelperPods);
  story.script("sleep 3600\n");
  const auto claim = story.want("data", "kept");
  story.wait_no_pods();
  LPP_MUST(story.ask(claim, "2Gi"));
  wait_for(story, "its limit is being set", [&]() -> std::string {
    return LPP_MUST(story.admin().list(k8s::kPods, kDaemonNamespace)).empty() ? "no pod" : "";
  });
  story.installation->kill_daemon();
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, claim,
                               {{"metadata", {{"finalizers", nullptr}}}}));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  const k8s::ObjectKey pv{"", story.volume.pv};
  LPP_MUST(
      story.admin().merge(k8s::kPersistentVolumes, pv, {{"metadata", {{"finalizers", nullptr}}}}));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumes, pv));
  story.start();
  story.wait_no_pods();
}

LPP_PODS_AND_AGENTS_TEST_CASE("a claim grows though the API server keeps no marks of it") {
  ExpandStory story(by, ExpandStory::Marks::kDropped);
  const auto claim = story.want("data");
  for (const char* size : {"2Gi", "3Gi"}) {
    LPP_MUST(story.ask(claim, size));
    story.wait_size(claim, size);
  }
  wait_for_event(story, claim, "Resizing");
  wait_for_event(story, claim, "VolumeResizeSuccessful");
  CHECK_FALSE(story.claim(claim)["status"].contains("allocatedResources"));
  story.wait_no_pods();
  LPP_MUST(story.audit.wait_clean());
  CHECK(story.wait_status_writes(4) == 4);  // two for each size
  story.check_few_are_refused();
}

TEST_CASE("what fails where no marks are kept is told and written once and a larger size helps") {
  ExpandStory story(By::kHelperPods, ExpandStory::Marks::kDropped);
  const auto claim = story.want("data");
  story.script(
      std::string(kTell) +
      "[ \"$VOL_SIZE_BYTES\" -ne 3221225472 ] || { echo 'no room for it' >&2; exit 3; }\n");
  LPP_MUST(story.ask(claim, "3Gi"));
  wait_for_event(story, claim, "VolumeResizeFailed", "no room for it");
  // What would go on has had its turn when a claim that was looked at later has grown.
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, claim,
                               {{"metadata", {{"labels", {{"looked", "at"}}}}}}));
  const auto failed_volume = story.volume;
  const auto writes = story.wait_status_writes(2);
  // Another attempt after a while would have been made by then.
  auto& nodes = story.bed->cluster().nodes();
  nodes.set_faults("node-2", {.dead = true});
  const k8s::ObjectKey late{"app", "late"};
  LPP_MUST(story.admin().create(
      claim_object({.key = late, .storage_class = "growing", .selected_node = "node-2"})));
  wait_until_old(story, "provision", 3);
  nodes.set_faults("node-2", {});
  LPP_MUST(story.audit.wait_bound(late));
  const auto other = story.want("other");
  LPP_MUST(story.ask(other, "2Gi"));
  story.wait_size(other, "2Gi");
  story.volume = failed_volume;
  CHECK(story.told().size() == 1);
  CHECK(writes == 2);
  CHECK(story.wait_status_writes(writes + 2) == writes + 2);  // the other one's
  story.check_few_are_refused();
  const json failed = story.claim(claim)["status"]["conditions"];
  REQUIRE(failed.size() == 1);
  CHECK(failed[0]["type"] == "ControllerResizeError");
  const auto lower = story.ask(claim, "2Gi");
  REQUIRE_FALSE(lower.ok());
  CHECK(lower.error().http_status == 422);
  LPP_MUST(story.ask(claim, "4Gi"));
  story.wait_size(claim, "4Gi");
  story.wait_no_pods();
}

void kill_at_any_call(ExpandStory& story) {
  const By by = story.by;
  const auto claim = story.want("data");
  LPP_MUST(story.audit.wait_clean());
  if (by == By::kHelperPods) story.script(kTell);
  int gi = 1;
  std::set<std::string> places;
  const auto run = [&](const CallPoint& point, KillSwitch::Moment moment) {
    const std::string size = std::to_string(++gi) + "Gi";
    KillSwitch kill(
        point.number, moment,
        [&](const ApiRequest& request) {
          return is_work_call(request) && (point.number == 0 || request.kind() == point.kind);
        },
        [&] { story.installation->kill_daemon(); });
    story.installation->proxy().set_hooks(kill.hooks());
    LPP_MUST(story.ask(claim, size));
    wait_for(story, "it has grown, or the daemon is killed", [&]() -> std::string {
      if (kill.fired()) return "";
      if (!kill.is_quiet()) return "there are calls";
      return story.lacks(claim, size);
    });
    story.installation->proxy().set_hooks({});
    CAPTURE(kill.to_string());
    if (kill.fired()) {
      places.insert((moment == KillSwitch::Moment::kBefore ? "before " : "after ") + point.kind);
      LPP_MUST(story.installation->start_daemon());
      LPP_MUST(story.installation->wait_ready());
    }
    story.wait_size(claim, size);
    story.wait_no_pods();
    if (by == By::kHelperPods) {
      REQUIRE_FALSE(story.told().empty());
      CHECK(story.told().back().ends_with(" " + std::to_string(gi * kGi) + " Filesystem"));
    }
    return points_of(kill.kinds());
  };
  const auto points = run({}, KillSwitch::Moment::kBefore);
  for (const auto moment : {KillSwitch::Moment::kBefore, KillSwitch::Moment::kAfter}) {
    for (const CallPoint& point : points) run(point, moment);
  }
  for (const char* place :
       {"before patch persistentvolumeclaims/status", "after patch persistentvolumeclaims/status",
        "before patch persistentvolumes", "after patch persistentvolumes"}) {
    CAPTURE(place);
    CHECK(places.contains(place));
  }
  CHECK(places.contains("after create pods") == (by == By::kHelperPods));
  LPP_MUST(story.audit.wait_clean());
}

LPP_ALL_EXECUTORS_TEST_CASE("a daemon killed at any API call of an expansion finishes it") {
  ExpandStory story(by);
  kill_at_any_call(story);
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a daemon killed at any API call of an expansion finishes it without marks too") {
  ExpandStory story(by, ExpandStory::Marks::kDropped);
  kill_at_any_call(story);
}

}  // namespace
}  // namespace lpp::testing
