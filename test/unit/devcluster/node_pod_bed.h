// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/clock.h"
#include "devcluster/json_names.h"
#include "devcluster/node/nodes.h"
#include "harness/file_text.h"
#include "node_test_support.h"

namespace lpp::devcluster::testing {

using nlohmann::json;
/// A registry with one node "n1" that runs pods.
struct PodBed {
  explicit PodBed(const NodeFaults& faults = {}) {
    auto made =
        Nodes::create(registry, clock,
                      {.folder = folder.path(), .restart_back_off = std::chrono::milliseconds(20)});
    REQUIRE(made.ok());
    nodes = *std::move(made);
    nodes->start();
    REQUIRE(nodes->add_node("n1").ok());
    nodes->set_faults("n1", faults);
  }
  ~PodBed() { nodes->stop(); }

  static json pod(const std::string& script) {
    return {
        {"metadata", {{"name", "p"}}},
        {"spec",
         {{"nodeName", "n1"},
          {"restartPolicy", "Never"},
          {"terminationGracePeriodSeconds", 0},
          {"containers",
           json::array(
               {{{"name", "main"}, {"image", "busybox"}, {"command", {"sh", "-c", script}}}})}}}};
  }
  void create(const json& object) {
    const Reply reply = registry.create("pods", "default", object);
    INFO(reply.message());
    REQUIRE(reply.ok());
  }
  bool reaches(const std::string& phase) {
    return wait_for(registry, kPod, [&](const json* pod) {
      return pod != nullptr && text_at(*pod, {"status", "phase"}) == phase;
    });
  }
  bool gone() {
    return wait_for(registry, kPod, [](const json* pod) { return pod == nullptr; });
  }
  json status() const {
    const ObjectPtr pod = registry.find("pods", "default", "p");
    return pod == nullptr ? json::object() : pod->at("status");
  }
  json container() const { return status().at("containerStatuses").at(0); }
  std::string log() const { return nodes->log("default", "p", "main").value_or("no log"); }
  bool has_event(const std::string& reason, const std::string& text = {}) {
    return wait_for(registry, {"events", "default", ""}, [&](const json*) {
      for (const ObjectPtr& event : registry.all("events")) {
        if (text_at(*event, {"reason"}) == reason &&
            text_at(*event, {"message"}).find(text) != std::string_view::npos) {
          return true;
        }
      }
      return false;
    });
  }
  /// Waits for a waiting reason of the container.
  bool waits_for(const std::string& reason) {
    return wait_for(registry, kPod, [&](const json* pod) {
      if (pod == nullptr) return false;
      const json& list = array_at(*pod, {"status", "containerStatuses"});
      return !list.empty() && text_at(list[0], {"state", "waiting", "reason"}) == reason;
    });
  }
  std::string on_disk(const std::string& path) const {
    return lpp::testing::text_of(nodes->disk_root("n1") + path);
  }

  const ObjectRef kPod{"pods", "default", "p"};
  SystemClock clock;
  TempDir folder;
  Registry registry;
  std::unique_ptr<Nodes> nodes;
};

inline json host_path(const std::string& path, const std::string& type) {
  return {{"name", "v"}, {"hostPath", {{"path", path}, {"type", type}}}};
}

inline json mounted(json pod, const json& volume, const std::string& at = "/v") {
  pod["spec"]["volumes"].push_back(volume);
  pod["spec"]["containers"][0]["volumeMounts"].push_back(
      {{"name", volume.at("name")}, {"mountPath", at}});
  return pod;
}

}  // namespace lpp::devcluster::testing
