// SPDX-License-Identifier: Apache-2.0
// Other people's objects, as large as a real API server takes them; on a real node, or a hollow
// one. More than 1,000 of them, made while they are sent: test/integration/load_memory_test.cpp.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "fakes/setting.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr const char* kStrangers = "large-strangers";
constexpr const char* kTenant = "large-tenant";
// With the longest keys: 0.7 MiB of labels, and 0.6 MiB of who has set which. Shorter ones, and
// more of them, cost the API server many times as much.
constexpr int kLabels = 2'200;
constexpr int kMostMib = 40;
constexpr int kChanged = 40;  // each is kept once more by etcd

/// So many of each kind in turn: mostly claims, which anybody may make.
constexpr int kInTurn = 8;

json labels() {
  json all = json::object();
  for (int i = 0; i < kLabels; ++i) {
    all[fmt::format("{:k>253}/k{:06}", "", i)] = fmt::format("{:063}", i);
  }
  return all;
}

json foreign_volume() {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"spec",
           {{"capacity", {{"storage", "1Gi"}}},
            {"accessModes", {"ReadWriteOnce"}},
            {"persistentVolumeReclaimPolicy", "Retain"},
            {"storageClassName", "theirs"},
            {"csi", {{"driver", "csi.example.com"}, {"volumeHandle", "theirs"}}}}}};
}

json foreign_node() {
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"spec", {{"unschedulable", true}}}};
}

json foreign_map(const char* ns) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"namespace", ns}}},
          {"data", {{"text", "theirs"}}}};
}

/// The i-th foreign object, without its load.
json foreign(int i) {
  json object;
  switch (i % kInTurn) {
    case 0: object = foreign_volume(); break;
    case 1: object = class_object({.provisioner = "example.com/theirs"}); break;
    case 2: object = foreign_node(); break;
    case 3: object = foreign_map(kDaemonNamespace); break;
    // Of our class, which no pod asks for; and of others'.
    case 4: object = claim_object({.key = {kStrangers, "-"}}); break;
    default: object = claim_object({.key = {kStrangers, "-"}, .storage_class = "theirs"}); break;
  }
  object["metadata"]["name"] = fmt::format("large-{}", i);
  return object;
}

k8s::ObjectKey key_of(const json& object) {
  return {object["metadata"].value("namespace", ""), object["metadata"]["name"]};
}

/// Calls work(0) to work(count - 1) on a few threads, until one fails.
Result<void> at_once(int count, const std::function<Result<void>(int)>& work) {
  constexpr int kThreads = 4;
  std::atomic<int> next = 0;
  std::array<Result<void>, kThreads> results;
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] {
        for (int i = next++; i < count && result.ok(); i = next++) result = work(i);
      });
    }
  }
  for (const auto& result : results) LPP_RETURN_IF_ERROR(Result<void>(result), "at once");
  return {};
}

/// An answer of this size can be late on a busy machine: asked again.
template <typename Call>
auto patiently(const Call& call) {
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    auto answer = call();
    if (answer.ok() || answer.error().code != ErrorCode::kTimeout || i == kTries) return answer;
  }
}

struct Strangers {
  Strangers(Kube& admin, int objects) : admin_(admin), objects_(objects) {}
  ~Strangers() {
    (void)at_once(objects_, [&](int i) -> Result<void> {
      const json object = foreign(i);
      LPP_ASSIGN_OR_RETURN(const auto* resource, resource_of(object), "foreign object");
      (void)admin_.remove(*resource, key_of(object));
      return {};
    });
    (void)admin_.remove(kNamespaces, {"", kStrangers});
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  Result<void> create() {
    const json load = labels();
    return at_once(objects_, [&](int i) -> Result<void> {
      json object = foreign(i);
      object["metadata"]["labels"] = load;
      object["metadata"]["annotations"]["theirs"] = "made";
      const auto created = patiently([&] { return admin_.create(object); });
      if (created.ok() || created.error().code == ErrorCode::kAlreadyExists) return {};
      return created.error();
    });
  }
  /// So that each of some comes once more, in a watch.
  Result<void> change() {
    return at_once(std::min(objects_, kChanged), [&](int i) -> Result<void> {
      const json object = foreign(i);
      LPP_ASSIGN_OR_RETURN(const auto* resource, resource_of(object), "foreign object");
      const json patch = {{"metadata", {{"annotations", {{"theirs", "changed"}}}}}};
      LPP_ASSIGN_OR_RETURN(const json changed, patiently([&] {
                             return admin_.merge(*resource, key_of(object), patch);
                           }),
                           "foreign object");
      return changed.empty() ? Result<void>(invalid("nothing there")) : Result<void>();
    });
  }

 private:
  Kube& admin_;
  const int objects_;
};

void provision(RealStory& story, const std::string& name) {
  LPP_MUST(story.admin().create(
      claim_object({.key = {kTenant, name}, .selected_node = story.bed->nodes().front()})));
  LPP_MUST(wait_until(
      "the claim is bound",
      [&]() -> std::string {
        const auto now = story.admin().get(k8s::kPersistentVolumeClaims, {kTenant, name});
        if (!now.ok()) return now.error().message;
        return (*now)["status"].value("phase", "") == "Bound" ? "" : now->dump();
      },
      story.bed->patience()));
}

}  // namespace

TEST_CASE("foreign objects as large as the API server takes them fit into 40 MiB") {
  RealStory story("large-objects");
  LPP_MUST(story.admin().apply(namespace_object(kStrangers)));
  LPP_MUST(story.admin().apply(namespace_object(kTenant)));
  Strangers strangers(story.admin(), setting("LPP_LARGE_OBJECTS", 64));
  LPP_MUST(strangers.create());

  const auto began = std::chrono::steady_clock::now();
  story.start();
  const std::chrono::duration<double> ready = std::chrono::steady_clock::now() - began;
  const int starting = story.installation->daemon().peak_mib();
  provision(story, "first");
  LPP_MUST(strangers.change());
  provision(story, "second");
  const int peak = story.installation->daemon().peak_mib();
  MESSAGE("ready after ", ready.count(), " s with ", starting, " MiB, at most ", peak, " MiB");
  CHECK(peak <= kMostMib);

  for (const auto* name : {"first", "second"}) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {kTenant, name}));
  }
  LPP_MUST(wait_until(
      "the volumes of the claims are gone",
      [&]() -> std::string {
        const auto volumes = story.admin().list(k8s::kPersistentVolumes);
        if (!volumes.ok()) return volumes.error().message;
        const auto foreign = [](const json& volume) { return volume["spec"].contains("csi"); };
        return std::all_of(volumes->begin(), volumes->end(), foreign) ? "" : "not yet";
      },
      story.bed->patience()));
  LPP_MUST(story.installation->stop_daemon());
}

}  // namespace lpp::testing
