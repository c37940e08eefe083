// SPDX-License-Identifier: Apache-2.0
// What a user sees when something goes wrong: the cause, soon, and no harm to others.

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "support/story_steps.h"
#include "support/trouble.h"

namespace lpp::testing {
namespace {

TEST_CASE("a setup script that fails is told on the claim at once, and the claim recovers") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const std::string bees = "echo 'the disk is full of bees' >&2; exit 7\n";
  const std::string good = change_script(story, "setup", "");
  SUBCASE("before it made the directory") { change_script(story, "setup", bees); }
  SUBCASE("when the directory is there") { restore_script(story, "setup", good + "\n" + bees); }
  k8s::ObjectKey claim{"app", ""};
  std::string event;
  CHECK(is_soon([&](int i) {
    const auto began = std::chrono::steady_clock::now();
    claim.name = "data-" + std::to_string(i);
    LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
    event = wait_for_event(story, claim, "ProvisioningFailed");
    return began;
  }));
  CHECK(event.starts_with("Warning "));
  CHECK(event.find('7') != std::string::npos);
  CHECK(event.find("the disk is full of bees") != std::string::npos);
  restore_script(story, "setup", good);
  LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("a teardown script that fails is told on the volume, whose directory goes later") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  const std::string good = change_script(story, "teardown", "echo 'bees are back' >&2; exit 9");
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  wait_for(story, "the volume's event", [&]() -> std::string {
    for (const auto& event : story.admin().events_about("PersistentVolume", {"", volume.pv})) {
      if (event.starts_with("Warning VolumeFailedDelete: ") &&
          event.find("bees are back") != std::string::npos) {
        return "";
      }
    }
    return "there is none";
  });
  restore_script(story, "teardown", good);
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE("a dead node delays only its own claims") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  set_dead(story, "node-1", true);
  constexpr int kStuck = 70;   // more than there are workers
  constexpr int kAtOnce = 40;  // of 50 helper pods on one node, a fifth is for removals
  for (int i = 0; i < kStuck; ++i) {
    LPP_MUST(story.admin().create(
        claim_object({.key = {"app", "stuck-" + std::to_string(i)}, .selected_node = "node-1"})));
  }
  wait_for(story, "the dead node has as much to do as it may have", [&]() -> std::string {
    if (story.agents) {
      const auto works = LPP_MUST(metric(story, "local_path_provisioner_agent_operations"));
      return works == std::to_string(kStuck) ? "" : works;  // they cost nothing
    }
    const auto pods = story.admin().list(k8s::kPods, kDaemonNamespace);
    if (!pods.ok()) return pods.error().message;
    return pods->size() == kAtOnce ? "" : std::to_string(pods->size());
  });
  for (int i = 0; i < 5; ++i) {
    LPP_MUST(story.admin().create(
        claim_object({.key = {"app", "free-" + std::to_string(i)}, .selected_node = "node-2"})));
  }
  for (int i = 0; i < 5; ++i) {
    LPP_MUST(story.audit.wait_bound({"app", "free-" + std::to_string(i)}));
  }
  for (int i = 0; i < kStuck; ++i) {
    CHECK_FALSE(LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims,
                                           {"app", "stuck-" + std::to_string(i)}))["spec"]
                    .contains("volumeName"));
  }
  set_dead(story, "node-1", false);
  for (int i = 0; i < kStuck; ++i) {
    LPP_MUST(story.audit.wait_bound({"app", "stuck-" + std::to_string(i)}));
  }
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE(
    "a removal that waits for its node is called off, though no cache shows that it must be") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  std::ofstream(volume.disk + "/data") << "bees";
  Trouble trouble(story);
  trouble.wait_no_record();
  trouble.silence("node-1");
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  trouble.wait_recorded("remove waiting");
  story.installation->proxy().set_hooks({.before = [](const ApiRequest& request) {
    const bool many =
        request.is("list", "persistentvolumes") || request.is("watch", "persistentvolumes");
    return many ? Decision::reply(500) : Decision::forward();
  }});
  story.installation->proxy().cut_connections();
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumes, {"", volume.pv},
                               {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}}));
  wait_for_log(story, "removal of the directory is cancelled");
  trouble.wait_recorded("remove ending");
  trouble.end();
  trouble.wait_no_record();
  CHECK(text_of(volume.disk + "/data") == "bees");
}

// A kubelet tells of a container up to seconds after its start, and may have told nothing of the
// pod before.
TEST_CASE(
    "a claim deleted before its node tells that the helper pod has started leaves nothing behind") {
  devcluster::NodeFaults late{.report_delay = std::chrono::seconds(1)};
  SUBCASE("it is told to be in hand") {}
  SUBCASE("nothing is told of it") { late.silent_start = true; }
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  story.bed->cluster().nodes().set_faults("node-1", late);
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  wait_for(story, "its directory is made",
           [&]() -> std::string { return story.audit.directories().empty() ? "not yet" : ""; });
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  const auto work_goes_on = [&](bool leaving_too) {
    const auto pods = LPP_MUST(story.admin().list(k8s::kPods, kDaemonNamespace));
    return std::any_of(pods.begin(), pods.end(), [&](const nlohmann::json& pod) {
      const std::string phase = pod["status"].value("phase", "");
      if (phase != "Pending" && phase != "Running") return false;
      return leaving_too || !pod["metadata"].contains("deletionTimestamp");
    });
  };
  wait_for(story, "the pod is given up or has ended",
           [&]() -> std::string { return work_goes_on(false) ? "not yet" : ""; });
  story.installation->kill_daemon();
  wait_for(story, "the pod has ended",
           [&]() -> std::string { return work_goes_on(true) ? "not yet" : ""; });
  LPP_MUST(story.installation->start_daemon());
  LPP_MUST(story.installation->wait_ready());
  LPP_MUST(story.audit.wait_empty());
}

TEST_CASE("an image that cannot be pulled is told on the claim before any time limit") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  story.bed->cluster().nodes().set_faults("node-1", {.fail_pulls = true});
  k8s::ObjectKey claim{"app", ""};
  CHECK(is_soon([&](int i) {
    const auto began = std::chrono::steady_clock::now();
    claim.name = "data-" + std::to_string(i);
    LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
    wait_for_event(story, claim, "ProvisioningFailed", "ull");
    return began;
  }));
  story.bed->cluster().nodes().set_faults("node-1", {});
  LPP_MUST(story.audit.wait_bound(claim));
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim that cannot be served on its node is given back to the scheduler") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.installation->write_config(
      {{"nodePathMap",
        nlohmann::json::array({{{"node", "node-1"}, {"paths", nlohmann::json::array()}},
                               {{"node", "node-2"}, {"paths", story.bed->base_paths()}}})}}));
  wait_for_log(story, "configuration loaded", 2);
  LPP_MUST(story.admin().apply(namespace_object("app")));
  // So that the scheduler cannot choose the same node again, which it may.
  LPP_MUST(story.admin().merge(k8s::kNodes, {"", "node-1"}, {{"spec", {{"unschedulable", true}}}}));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  LPP_MUST(story.admin().create(
      pod_object({.key = {"app", "user"}, .claim = "data", .script = "echo x > /data/x"})));
  const std::string event = wait_for_event(story, claim, "ProvisioningFailed", "node-1");
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  CHECK(volume.node == "node-2");
  wait_for_phase(story, {"app", "user"}, "Succeeded");
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a new configuration takes effect, a bad one is refused, and old volumes can go") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey old_claim{"app", "old"};
  LPP_MUST(story.admin().create(claim_object({.key = old_claim, .selected_node = "node-1"})));
  const auto old_volume = LPP_MUST(story.audit.wait_bound(old_claim));
  const auto config_with = [](const char* path) {
    return nlohmann::json{
        {"nodePathMap", nlohmann::json::array({{{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"},
                                                {"paths", nlohmann::json::array({path})}}})}};
  };
  LPP_MUST(story.installation->write_config(config_with("/srv/third")));
  wait_for_log(story, "configuration loaded", 2);
  const k8s::ObjectKey second{"app", "second"};
  LPP_MUST(story.admin().create(claim_object({.key = second, .selected_node = "node-1"})));
  CHECK(LPP_MUST(story.audit.wait_bound(second)).path.starts_with("/srv/third/"));

  LPP_MUST(story.installation->write_config(config_with("not/absolute")));
  wait_for_log(story, "not/absolute");
  const k8s::ObjectKey third{"app", "third"};
  LPP_MUST(story.admin().create(claim_object({.key = third, .selected_node = "node-1"})));
  CHECK(LPP_MUST(story.audit.wait_bound(third)).path.starts_with("/srv/third/"));

  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, old_claim));
  LPP_MUST(story.audit.wait_deleted(old_claim, old_volume));
}

TEST_CASE("a helper pod template that is refused leaves the last good one in force") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey map{kDaemonNamespace, "local-path-config"};
  const auto use_template = [&](const std::string& text) {
    LPP_MUST(story.admin().merge(k8s::kConfigMaps, map, {{"data", {{"helperPod.yaml", text}}}}));
  };
  const auto wait_told = [&](const std::string& part) {
    wait_for(story, "an event about the ConfigMap says " + part, [&]() -> std::string {
      for (const auto& event : story.admin().events_about("ConfigMap", map)) {
        if (event.starts_with("Warning ConfigRefused: ") && event.find(part) != std::string::npos) {
          return "";
        }
      }
      return "there is none";
    });
  };
  const auto wants = [&](const std::string& name) {
    const k8s::ObjectKey claim{"app", name};
    LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
    return claim;
  };
  const std::string no_yaml = "spec: [";
  const std::string no_container = "spec: {containers: []}";
  const std::string unsafe = "spec: {hostPID: true, containers: [{image: busybox}]}";
  for (const auto& row : {std::pair{no_yaml, "line 1"},
                          {no_container, "must hold a container"},
                          {unsafe, "spec.hostPID"}}) {
    CAPTURE(row.first);
    const auto& [text, told] = row;
    use_template(text);
    wait_told(told);
    const auto claim = wants(std::string("made-under-") + std::to_string(text.size()));
    const auto volume = LPP_MUST(story.audit.wait_bound(claim));
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
    LPP_MUST(story.audit.wait_deleted(claim, volume));
  }
  LPP_MUST(story.audit.wait_clean());
  // A good one is used at once. A pod that has failed stays, so that it can be looked at.
  use_template(
      "metadata: {labels: {team: storage}}\n"
      "spec: {containers: [{name: helper-pod, image: busybox}]}");
  wait_for_log(story, "helper pod template loaded", 2);
  const std::string good = change_script(story, "setup", "exit 7");
  const auto claim = wants("last");
  wait_for_event(story, claim, "ProvisioningFailed");
  for (const auto& pod : wait_for_pods(story)) {
    CHECK(pod["metadata"]["labels"]["team"] == "storage");
  }
  restore_script(story, "setup", good);
  LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim whose node cannot serve it is sent back once, however old the cache") {
  StoryBed story(by);
  nlohmann::json config = story.installation->default_config();
  config["nodePathMap"].push_back({{"node", "node-1"}, {"paths", nlohmann::json::array()}});
  LPP_MUST(story.installation->write_config(config));
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  story.installation->proxy().set_hooks(
      {.frame = [](const ApiRequest& request, std::string_view frame) {
        const bool is_old = request.resource == "persistentvolumeclaims" &&
                            frame.find("MODIFIED") != std::string_view::npos;
        return is_old ? FrameAction::kDrop : FrameAction::kForward;
      }});
  const k8s::ObjectKey claim{"app", "data"};
  // The daemon's from the beginning: that it is would be told by a change.
  const std::map<std::string, std::string> asked{
      {"volume.kubernetes.io/storage-provisioner", "rancher.io/local-path"}};
  LPP_MUST(story.admin().create(
      claim_object({.key = claim, .selected_node = "node-1", .annotations = asked})));
  wait_for_log(story, "the scheduler is asked for another one");
  // More than a second later something has the claim looked at again, and what comes after it.
  const k8s::ObjectKey later{"app", "later"};
  set_dead(story, "node-2", true);
  LPP_MUST(story.admin().create(
      claim_object({.key = later, .selected_node = "node-2", .annotations = asked})));
  wait_until_old(story, "provision", 2);
  LPP_MUST(story.admin().merge(k8s::kStorageClasses, {"", "local-path"},
                               {{"metadata", {{"labels", {{"a", "b"}}}}}}));
  set_dead(story, "node-2", false);
  LPP_MUST(story.audit.wait_bound(later));
  const auto records = story.installation->proxy().records();
  CHECK(std::count_if(records.begin(), records.end(), [](const ProxyRecord& record) {
          return record.request.is("patch", "persistentvolumeclaims") &&
                 record.request.name == "data";
        }) == 1);
  story.installation->proxy().set_hooks({});
  story.installation->proxy().cut_connections();
  LPP_MUST(story.admin().merge(
      k8s::kPersistentVolumeClaims, claim,
      {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "node-2"}}}}}}));
  LPP_MUST(story.audit.wait_bound(claim));
  for (const auto& event : story.admin().events_about("PersistentVolumeClaim", claim)) {
    CHECK_MESSAGE(event.find("remove the selected node") == std::string::npos, event);
  }
}

}  // namespace
}  // namespace lpp::testing
