// SPDX-License-Identifier: Apache-2.0
// Claims bound by the daemon in the place of the control plane's binder, and volumes released.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "places/places.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr const char* kBindCompleted = "pv.kubernetes.io/bind-completed";
constexpr const char* kBoundByController = "pv.kubernetes.io/bound-by-controller";
const k8s::ObjectKey kClaim{"app", "data"};

bool is_of_binding(const ApiRequest& request) {
  return request.is("patch", "persistentvolumes/status") ||
         request.is("patch", "persistentvolumeclaims") ||
         request.is("patch", "persistentvolumeclaims/status");
}

std::size_t count(StoryBed& story, const std::function<bool(const ProxyRecord&)>& matches) {
  const auto records = story.installation->proxy().records();
  return static_cast<std::size_t>(std::count_if(records.begin(), records.end(), matches));
}
std::size_t bindings(StoryBed& story) {
  return count(story, [](const ProxyRecord& record) { return is_of_binding(record.request); });
}

/// A namespace for claims; the control plane's controllers do not run: nobody else binds.
struct NoBinder : StoryBed {
  explicit NoBinder(By executor)
      : StoryBed(
            {},
            {.manifest = repository("deploy/local-path-storage.yaml"), .run_controllers = false},
            executor) {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
  }
  json claim(const k8s::ObjectKey& key = kClaim) {
    return LPP_MUST(admin().get(k8s::kPersistentVolumeClaims, key));
  }
  std::string phase_of(const std::string& pv) {
    const auto found = admin().find(k8s::kPersistentVolumes, {"", pv});
    if (!found.ok() || !found->has_value()) return "gone";
    return (**found)["status"].value("phase", "");
  }
  /// As the controller of pvc-protection does when no pod uses it.
  void claim_goes(const k8s::ObjectKey& key = kClaim) {
    LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, key));
    LPP_MUST(admin().merge(k8s::kPersistentVolumeClaims, key,
                           {{"metadata", {{"finalizers", nullptr}}}}));
  }
};

void create(StoryBed& story, const k8s::ObjectKey& key,
            const std::string& storage_class = "local-path",
            const std::string& mode = "ReadWriteOnce", const std::string& node = "node-1") {
  LPP_MUST(story.admin().create(claim_object(
      {.key = key, .storage_class = storage_class, .access_mode = mode, .selected_node = node})));
}

}  // namespace

LPP_ALL_EXECUTORS_TEST_CASE(
    "a claim is bound by the daemon, and left as the binder would leave it") {
  NoBinder story(by);
  create(story, kClaim);
  const auto volume = LPP_MUST(story.audit.wait_bound(kClaim));
  const json claim = story.claim();
  CHECK(claim["spec"]["volumeName"] == volume.pv);
  CHECK(claim["metadata"]["annotations"][kBindCompleted] == "yes");
  CHECK(claim["metadata"]["annotations"][kBoundByController] == "yes");
  CHECK(claim["status"]["accessModes"] == json::array({"ReadWriteOnce"}));
  CHECK(claim["status"]["capacity"]["storage"] == "1Mi");
  const json pv = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(pv["status"]["phase"] == "Bound");
  CHECK(pv["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]);
  CHECK_FALSE(pv["metadata"]["annotations"].contains(kBoundByController));
  CHECK(bindings(story) == 3);

  // The binder finds nothing to do.
  const std::string version = claim["metadata"]["resourceVersion"];
  const std::string volume_version = pv["metadata"]["resourceVersion"];
  story.bed->cluster().start_controllers();
  const k8s::ObjectKey other{"app", "other"};
  create(story, other);
  LPP_MUST(story.audit.wait_bound(other));
  CHECK(story.claim()["metadata"]["resourceVersion"] == version);
  CHECK(LPP_MUST(story.admin().get(k8s::kPersistentVolumes,
                                   {"", volume.pv}))["metadata"]["resourceVersion"] ==
        volume_version);
  for (const auto& event : story.admin().events_about("PersistentVolumeClaim", kClaim)) {
    CHECK_MESSAGE(!event.starts_with("Warning"), event);
  }
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, kClaim));
  LPP_MUST(story.audit.wait_deleted(kClaim, volume));
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "claims that many nodes share, and whose volumes are retained, are bound as well") {
  NoBinder story(by);
  LPP_MUST(story.admin().create(class_object({.name = "keep", .reclaim_policy = "Retain"})));
  json config = story.installation->default_config();
  config["storageClassConfigs"] = {
      {"shared", {{"sharedFileSystemPath", story.bed->shared_path()}}}};
  config["storageClassConfigs"]["local-path"] = {{"nodePathMap", config["nodePathMap"]}};
  config["storageClassConfigs"]["keep"] = {{"nodePathMap", config["nodePathMap"]}};
  config.erase("nodePathMap");
  LPP_MUST(story.installation->write_config(config));
  LPP_MUST(story.admin().create(class_object({.name = "shared"})));
  create(story, {"app", "shared"}, "shared", "ReadWriteMany");
  create(story, {"app", "keep"}, "keep");
  for (const char* name : {"shared", "keep"}) {
    CAPTURE(name);
    LPP_MUST(story.audit.wait_bound({"app", name}));
  }
  CHECK(story.claim({"app", "shared"})["status"]["accessModes"] == json::array({"ReadWriteMany"}));
  // Agents leave what is no node's own to helper pods.
  if (by == By::kAgents) CHECK(pods_asked_for(story) == 1);
}

LPP_PODS_AND_AGENTS_TEST_CASE("a claim made again and again under its name is bound each time") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  for (int i = 0; i < 4; ++i) {
    create(story, kClaim, "local-path", "ReadWriteOnce", i % 2 == 0 ? "node-1" : "node-2");
    const auto volume = LPP_MUST(story.audit.wait_bound(kClaim));
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, kClaim));
    LPP_MUST(story.audit.wait_deleted(kClaim, volume));
  }
  LPP_MUST(story.audit.wait_clean());
}

namespace {

/// Kills the daemon at each write of a binding; then `finish` starts who goes on with it.
void cut_short(By by, const std::function<void(NoBinder&)>& finish) {
  for (const char* kind : {"patch persistentvolumes/status", "patch persistentvolumeclaims",
                           "patch persistentvolumeclaims/status"}) {
    CAPTURE(kind);
    NoBinder story(by);
    std::atomic<bool> killed = false;
    story.installation->proxy().set_hooks({.after = [&](const ApiRequest& request, int) {
      if (request.kind() == kind && !killed.exchange(true)) story.installation->kill_daemon();
    }});
    create(story, kClaim);
    wait_for(story, "the daemon is killed", [&] { return killed ? "" : "not yet"; });
    story.installation->proxy().set_hooks({});
    finish(story);
    LPP_MUST(story.audit.wait_bound(kClaim));
    CHECK(story.claim()["metadata"]["annotations"][kBindCompleted] == "yes");
  }
}

}  // namespace

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a daemon killed at each write of a binding leaves what the next one finishes") {
  cut_short(by, [](NoBinder& story) { story.start(); });
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a daemon killed at each write of a binding leaves what the binder finishes") {
  cut_short(by, [](NoBinder& story) { story.bed->cluster().start_controllers(); });
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a binding that conflicts is decided again, and one that fails is left to the binder") {
  NoBinder story(by);
  std::atomic<int> refused = 0;
  SUBCASE("a conflict") {
    story.installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
      return is_of_binding(request) && refused++ == 1 ? Decision::reply(409) : Decision::forward();
    }});
    create(story, kClaim);
    LPP_MUST(story.audit.wait_bound(kClaim));
  }
  SUBCASE("a failure") {
    story.installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
      if (!is_of_binding(request)) return Decision::forward();
      ++refused;
      return Decision::reply(500);
    }});
    create(story, kClaim);
    wait_for_log(story, "left to the control plane to bind");
    CHECK(refused == 1);
    CHECK(story.claim()["status"]["phase"] == "Pending");
    story.bed->cluster().start_controllers();
    LPP_MUST(story.audit.wait_bound(kClaim));
    CHECK(bindings(story) == 1);
  }
  for (const auto& event : story.admin().events_about("PersistentVolumeClaim", kClaim)) {
    CHECK_MESSAGE(!event.starts_with("Warning"), event);
  }
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "with the permissions of an older ClusterRole the binder binds, and one line tells it") {
  StoryBed story(by);
  json role = LPP_MUST(
      story.admin().get({"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false},
                        {"", "local-path-provisioner-role"}));
  json rules = json::array();
  for (const json& rule : role["rules"]) {
    const bool is_new =
        std::any_of(rule["resources"].begin(), rule["resources"].end(),
                    [](const json& name) { return name.get<std::string>().ends_with("/status"); });
    if (!is_new) rules.push_back(rule);
  }
  REQUIRE(rules.size() < role["rules"].size());
  LPP_MUST(
      story.admin().merge({"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false},
                          {"", "local-path-provisioner-role"}, {{"rules", rules}}));
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  for (const char* name : {"a", "b", "c"}) {
    create(story, {"app", name});
    const auto volume = LPP_MUST(story.audit.wait_bound({"app", name}));
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {"app", name}));
    LPP_MUST(story.audit.wait_deleted({"app", name}, volume));
  }
  const std::string log = story.installation->log_text();
  const auto first = log.find("left to the control plane to bind");
  REQUIRE(first != std::string::npos);
  CHECK(log.find("left to the control plane to bind", first + 1) == std::string::npos);
  CHECK(bindings(story) == 1);
}

LPP_PODS_AND_AGENTS_TEST_CASE("with --bind-claims=false nothing of a binding is written") {
  StoryBed story({"--bind-claims=false"}, by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  create(story, kClaim);
  const auto volume = LPP_MUST(story.audit.wait_bound(kClaim));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, kClaim));
  LPP_MUST(story.audit.wait_deleted(kClaim, volume));
  CHECK(bindings(story) == 0);
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim that changes during its binding is bound though the cache of volumes is behind") {
  NoBinder story(by);
  std::atomic<bool> changed = false;
  story.installation->proxy().set_hooks(
      {.before =
           [&](const ApiRequest& request) {
             if (request.is("patch", "persistentvolumeclaims") && !changed.exchange(true)) {
               LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, kClaim,
                                            {{"metadata", {{"labels", {{"a", "b"}}}}}}));
             }
             return Decision::forward();
           },
       .frame =
           [](const ApiRequest& request, std::string_view frame) {
             return request.resource == "persistentvolumes" &&
                            frame.find("MODIFIED") != std::string_view::npos
                        ? FrameAction::kDrop
                        : FrameAction::kForward;
           }});
  create(story, kClaim);
  LPP_MUST(story.audit.wait_bound(kClaim));
  CHECK(changed);
  CHECK(count(story, [](const ProxyRecord& record) {
          return record.request.is("patch", "persistentvolumes/status");
        }) == 1);
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim that somebody bound to another volume meanwhile keeps that") {
  NoBinder story(by);
  std::atomic<bool> changed = false;
  // Between the creation of the volume and the binding.
  story.installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
    if (request.is("patch", "persistentvolumes/status") && !changed.exchange(true)) {
      LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, kClaim,
                                   {{"metadata", {{"annotations", {{kBindCompleted, "yes"}}}}},
                                    {"spec", {{"volumeName", "static"}}}}));
    }
    return Decision::forward();
  }});
  create(story, kClaim);
  wait_for(story, "the claim is another's", [&] { return changed ? "" : "not yet"; });
  const std::string pv = "pvc-" + story.claim()["metadata"]["uid"].get<std::string>();
  REQUIRE(story.installation->proxy().wait_for_record(
      [](const ProxyRecord& record) {
        return record.request.is("patch", "persistentvolumeclaims") && record.status == 409;
      },
      std::chrono::seconds(20)));
  const json claim = story.claim();
  CHECK(claim["spec"]["volumeName"] == "static");
  CHECK(claim["status"]["phase"] == "Pending");
  CHECK(count(story, [](const ProxyRecord& record) {
          return record.request.is("patch", "persistentvolumeclaims/status");
        }) == 0);
}

LPP_PODS_AND_AGENTS_TEST_CASE("a claim that the binder took for lost is bound again") {
  NoBinder story(by);
  create(story, kClaim);
  LPP_MUST(story.audit.wait_bound(kClaim));
  LPP_MUST(story.admin().api().patch(k8s::kPersistentVolumeClaims, kClaim, k8s::PatchType::kMerge,
                                     {{"status", {{"phase", "Lost"}}}}, "status"));
  LPP_MUST(story.audit.wait_bound(kClaim));
}

LPP_ALL_EXECUTORS_TEST_CASE("a volume goes with its claim though nobody says that it is released") {
  NoBinder story(by);
  create(story, kClaim);
  const auto volume = LPP_MUST(story.audit.wait_bound(kClaim));
  story.claim_goes();
  wait_for(story, "the directory is gone",
           [&] { return std::filesystem::exists(volume.disk) ? volume.disk : std::string(); });
  wait_for(story, "the volume is released", [&]() -> std::string {
    const std::string phase = story.phase_of(volume.pv);
    return phase == "Released" || phase == "gone" ? "" : phase;
  });
  story.bed->cluster().start_controllers();
  LPP_MUST(story.audit.wait_deleted(kClaim, volume));
  LPP_MUST(story.audit.wait_clean());
}

}  // namespace lpp::testing
