// SPDX-License-Identifier: Apache-2.0
// Claims bound by the daemon beside the real binder; on a real node, or a hollow one.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/standby.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr const char* kBindCompleted = "pv.kubernetes.io/bind-completed";
constexpr const char* kAskedFor = "volume.kubernetes.io/storage-provisioner";

bool is_of_binding(const ApiRequest& request) {
  return request.is("patch", "persistentvolumes/status") ||
         request.is("patch", "persistentvolumeclaims") ||
         request.is("patch", "persistentvolumeclaims/status");
}

struct BindingStory : RealStory {
  explicit BindingStory(const std::string& name, std::vector<std::string> arguments = {})
      : RealStory(name, {.extra_args = std::move(arguments)}), space(name) {
    LPP_MUST(admin().apply(namespace_object(space)));
  }

  json create(const std::string& name, const std::string& storage_class = "local-path") {
    return LPP_MUST(admin().create(claim_object({.key = {space, name},
                                                 .storage_class = storage_class,
                                                 .selected_node = bed->nodes().front()})));
  }
  json claim(const std::string& name) {
    return LPP_MUST(admin().get(k8s::kPersistentVolumeClaims, {space, name}));
  }
  /// Bound on both sides, as the binder leaves it, and nothing odd was said of it.
  void wait_bound(const std::string& name) {
    LPP_MUST(wait_until(
        name + " is bound",
        [&]() -> std::string {
          const json now = claim(name);
          const std::string pv = now["spec"].value("volumeName", "");
          const bool is_bound =
              now["status"].value("phase", "") == "Bound" && now["status"].contains("capacity") &&
              now["metadata"].value("annotations", json::object()).contains(kBindCompleted);
          if (!is_bound || pv.empty()) return now.dump();
          const auto volume = admin().get(k8s::kPersistentVolumes, {"", pv});
          if (!volume.ok()) return volume.error().message;
          return (*volume)["status"].value("phase", "") == "Bound" ? "" : volume->dump();
        },
        bed->patience()));
    judge_events(name);
  }
  /// A binder that is so far behind that it has not looked at the volume may say that, and takes it
  /// back; one that has had its half second and not asked for the volume may say that it could not
  /// (docs/failure-modes.md). How often it does is for no test to know.
  void judge_events(const std::string& name) {
    for (const auto& event : admin().events_about("PersistentVolumeClaim", {space, name})) {
      if (event.starts_with("Warning ClaimLost")) {
        MESSAGE(name << ": the binder was behind: " << event);
      } else if (event.starts_with("Warning ProvisioningFailed: Error saving claim: ") &&
                 event.find("the object has been modified") != std::string::npos) {
        MESSAGE(name << ": the binder was behind: " << event);
        // Where its annotation is there, it was in time, and a second try of it failed.
        const bool asked = claim(name)["metadata"]["annotations"].contains(kAskedFor);
        CHECK((asked || time_for_binder(name) >= std::chrono::milliseconds(500)));
      } else {
        CHECK_MESSAGE(!event.starts_with("Warning"), event);
      }
    }
  }
  /// From the first try to create the claim's volume to our first write of the claim, if any.
  Duration time_for_binder(const std::string& name) {
    TimePoint created = TimePoint::max();
    TimePoint written = TimePoint::max();
    for (Installation* daemon : daemons) {
      for (const ProxyRecord& record : daemon->proxy().records()) {
        const ApiRequest& request = record.request;
        if (request.is("create", "persistentvolumes") &&
            json::parse(request.body)["spec"]["claimRef"]["name"] == name) {
          created = std::min(created, record.arrived);
        }
        if (request.is("patch", "persistentvolumeclaims") && request.name == name) {
          written = std::min(written, record.arrived);
        }
      }
    }
    return written == TimePoint::max() ? Duration::max() : written - created;
  }
  /// It says what it has to say in turn: of a claim that only it looks at, after all that went
  /// before.
  void wait_until_binder_has_said_all() {
    const std::string last = space + "-nobodys";
    const json nobodys = class_object(
        {.name = last, .provisioner = "example.com/nobody", .binding_mode = "Immediate"});
    LPP_MUST(admin().create(nobodys));
    LPP_MUST(admin().create(
        claim_object({.key = {space, last}, .storage_class = last, .selected_node = ""})));
    LPP_MUST(wait_until(
        "the binder has asked for the last claim",
        [&]() -> std::string {
          const auto events = admin().events_about("PersistentVolumeClaim", {space, last});
          return events.empty() ? "no Event" : "";
        },
        bed->patience()));
    LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, {space, last}));
    LPP_MUST(admin().remove(k8s::kStorageClasses, {"", last}));
  }
  void remove_and_wait(const std::vector<std::string>& names) {
    wait_until_binder_has_said_all();
    for (const auto& name : names) judge_events(name);
    for (const auto& name : names) {
      LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, {space, name}));
    }
    LPP_MUST(wait_until(
        "all volumes and helper pods are gone",
        [&]() -> std::string {
          const auto volumes = admin().list(k8s::kPersistentVolumes);
          if (!volumes.ok()) return volumes.error().message;
          return volumes->empty() ? audit.leftovers() : std::to_string(volumes->size());
        },
        bed->patience()));
  }
  std::ptrdiff_t bindings() {
    const auto records = installation->proxy().records();
    return std::count_if(records.begin(), records.end(),
                         [](const ProxyRecord& record) { return is_of_binding(record.request); });
  }

  const std::string space;
  std::vector<Installation*> daemons{installation.get()};
};

}  // namespace

TEST_CASE("real binder: claims are bound beside the binder, and nothing odd is said of them") {
  constexpr int kClaims = 30;
  BindingStory story("binding-race");
  story.start();
  std::vector<std::string> names;
  for (int i = 0; i < kClaims; ++i) {
    names.push_back("c" + std::to_string(i));
    story.create(names.back());
  }
  for (const auto& name : names) story.wait_bound(name);
  CHECK(story.bindings() > 0);
  // And neither side undoes it.
  std::vector<std::string> versions;
  for (const auto& name : names)
    versions.push_back(story.claim(name)["metadata"]["resourceVersion"]);
  story.create("later");
  story.wait_bound("later");
  for (int i = 0; i < kClaims; ++i) {
    CHECK(story.claim(names[i])["metadata"]["resourceVersion"] == versions[i]);
  }
  names.emplace_back("later");
  story.remove_and_wait(names);
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real binder: a daemon killed at each write of a binding leaves what is finished") {
  BindingStory story("binding-killed");
  std::vector<std::string> names;
  for (const char* kind : {"patch persistentvolumes/status", "patch persistentvolumeclaims",
                           "patch persistentvolumeclaims/status"}) {
    for (const bool before : {true, false}) {
      CAPTURE(kind);
      CAPTURE(before);
      std::atomic<bool> killed = false;
      const auto kill = [&](const ApiRequest& request) {
        const bool hit = request.kind() == kind && !killed.exchange(true);
        if (hit) story.installation->kill_daemon();
        return hit;
      };
      story.start();
      ProxyHooks hooks;
      if (before) {
        hooks.before = [&](const ApiRequest& request) {
          return kill(request) ? Decision::cut_before() : Decision::forward();
        };
      } else {
        hooks.after = [&](const ApiRequest& request, int) { kill(request); };
      }
      story.installation->proxy().set_hooks(hooks);
      names.push_back("c" + std::to_string(names.size()));
      story.create(names.back());
      story.wait_bound(names.back());  // by the daemon, or by the binder once that is dead
      story.installation->proxy().set_hooks({});
      if (!killed) LPP_MUST(story.installation->stop_daemon());
    }
  }
  story.start();
  story.remove_and_wait(names);
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real binder: a static volume that also fits is left alone, or taken by the binder") {
  BindingStory story("binding-static");
  story.start();
  const std::string fixed = "binding-static";
  LPP_MUST(story.admin().create({{"apiVersion", "v1"},
                                 {"kind", "PersistentVolume"},
                                 {"metadata", {{"name", fixed}}},
                                 {"spec",
                                  {{"capacity", {{"storage", "1Gi"}}},
                                   {"accessModes", json::array({"ReadWriteOnce"})},
                                   {"persistentVolumeReclaimPolicy", "Retain"},
                                   {"storageClassName", "local-path"},
                                   {"hostPath", {{"path", "/tmp/binding-static"}}}}}}));
  for (const char* name : {"a", "b"}) {
    story.create(name);
    story.wait_bound(name);
  }
  // Whoever has it: one volume for each claim, and no volume for two.
  CHECK(story.claim("a")["spec"]["volumeName"] != story.claim("b")["spec"]["volumeName"]);
  for (const char* name : {"a", "b"}) {
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, {story.space, name}));
  }
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", fixed}));
  story.remove_and_wait({});
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real binder: a claim of a class that retains is bound, and its volume is kept") {
  BindingStory story("binding-retain");
  LPP_MUST(
      story.admin().create(class_object({.name = "binding-keep", .reclaim_policy = "Retain"})));
  story.start();
  story.create("keep", "binding-keep");
  story.wait_bound("keep");
  const std::string pv = story.claim("keep")["spec"]["volumeName"];
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, {story.space, "keep"}));
  LPP_MUST(wait_until(
      "the volume is released",
      [&]() -> std::string {
        const auto found = story.admin().get(k8s::kPersistentVolumes, {"", pv});
        if (!found.ok()) return found.error().message;
        const std::string phase = (*found)["status"].value("phase", "");
        return phase == "Released" ? "" : phase;
      },
      story.bed->patience()));
  const json volume = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", pv}));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", pv}));
  LPP_MUST(story.admin().remove(k8s::kStorageClasses, {"", "binding-keep"}));
  // It is nobody's now; where the node runs nothing it never was.
  std::filesystem::remove_all(volume["spec"]["hostPath"]["path"].get<std::string>());
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real binder: claims of many nodes, and of a class that binds at once, are bound") {
  BindingStory story("binding-shared");
  const json before = story.installation->default_config();
  json config = before;
  config["storageClassConfigs"] = {
      {"local-path", {{"nodePathMap", config["nodePathMap"]}}},
      {"binding-shared", {{"sharedFileSystemPath", story.bed->shared_path()}}},
      {"binding-immediate", {{"sharedFileSystemPath", story.bed->shared_path()}}}};
  config.erase("nodePathMap");
  LPP_MUST(story.installation->write_config(config));
  story.start();
  LPP_MUST(story.admin().create(class_object({.name = "binding-shared"})));
  LPP_MUST(story.admin().create(
      class_object({.name = "binding-immediate", .binding_mode = "Immediate"})));
  LPP_MUST(story.admin().create(claim_object({.key = {story.space, "many"},
                                              .storage_class = "binding-shared",
                                              .access_mode = "ReadWriteMany",
                                              .selected_node = story.bed->nodes().front()})));
  LPP_MUST(story.admin().create(claim_object({.key = {story.space, "at-once"},
                                              .storage_class = "binding-immediate",
                                              .access_mode = "ReadWriteMany",
                                              .selected_node = ""})));
  for (const char* name : {"many", "at-once"}) story.wait_bound(name);
  CHECK(story.claim("many")["status"]["accessModes"] == json::array({"ReadWriteMany"}));
  story.remove_and_wait({"many", "at-once"});
  for (const char* name : {"binding-shared", "binding-immediate"}) {
    LPP_MUST(story.admin().remove(k8s::kStorageClasses, {"", name}));
  }
  LPP_MUST(story.installation->write_config(before));
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real binder: a leader killed in the middle of its bindings leaves what the next ends") {
  const std::vector<std::string> quick_lease = {"--leader-elect-lease-duration=4s",
                                                "--leader-elect-renew-deadline=3s",
                                                "--leader-elect-retry-period=1s"};
  std::atomic<int> writes = 0;
  BindingStory story("binding-leaders", quick_lease);
  story.start();
  const std::string folder = story.folder + "/standby";
  std::filesystem::create_directories(folder);
  const auto standby =
      LPP_MUST(Installation::create(*story.bed, {.daemon = required_setting("LPP_E2E_DAEMON"),
                                                 .folder = folder,
                                                 .extra_args = quick_lease,
                                                 .env = {}}));
  story.daemons.push_back(standby.get());
  // The lease is short: it stays with the first until that is killed, however busy the machine is.
  standby->proxy().set_hooks(
      {.before = [&](const ApiRequest& request) { return as_standby(request, writes >= 8); }});
  LPP_MUST(standby->start_daemon(Installation::OldLease::kKeep));
  LPP_MUST(standby->wait_ready());
  story.installation->proxy().set_hooks({.after = [&](const ApiRequest& request, int) {
    if (is_of_binding(request) && ++writes == 8) story.installation->kill_daemon();
  }});
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) {
    names.push_back("c" + std::to_string(i));
    story.create(names.back());
  }
  for (const auto& name : names) story.wait_bound(name);
  CHECK(writes >= 8);
  story.remove_and_wait(names);  // by the standby alone
  LPP_MUST(standby->stop_daemon());
}

TEST_CASE("real binder: with an older ClusterRole the binder binds, and one line tells it") {
  BindingStory story("binding-role");
  story.may_be_forbidden = true;
  const k8s::ObjectKey role{"", "local-path-provisioner-role"};
  const json rules = LPP_MUST(story.admin().get(kClusterRoles, role))["rules"];
  json older = json::array();
  for (const json& rule : rules) {
    const bool is_new =
        std::any_of(rule["resources"].begin(), rule["resources"].end(),
                    [](const json& name) { return name.get<std::string>().ends_with("/status"); });
    if (!is_new) older.push_back(rule);
  }
  REQUIRE(older.size() < rules.size());
  LPP_MUST(story.admin().merge(kClusterRoles, role, {{"rules", older}}));
  story.start();
  for (const char* name : {"a", "b", "c"}) {
    story.create(name);
    story.wait_bound(name);
  }
  story.remove_and_wait({"a", "b", "c"});
  LPP_MUST(story.installation->stop_daemon());
  LPP_MUST(story.admin().merge(kClusterRoles, role, {{"rules", rules}}));
  const std::string log = story.installation->log_text();
  const auto first = log.find("left to the control plane to bind");
  REQUIRE(first != std::string::npos);
  CHECK(log.find("left to the control plane to bind", first + 1) == std::string::npos);
}

}  // namespace lpp::testing
