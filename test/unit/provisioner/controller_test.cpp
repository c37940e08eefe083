// SPDX-License-Identifier: Apache-2.0
#include "provisioner/controller.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "fakes/eventually.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::controller {
namespace {

using operation::Kind;
using testing::claim;

/// Its informers are not started: the caches are what the test puts there.
struct Bed : testing::Scene {
  explicit Bed(ControllerOptions with = {}) : options(with) {}

  void wait_until_idle() const {
    CHECK(testing::eventually([&] {
      const auto is_idle = [](const auto& queue) {
        return queue && queue->ready == 0 && queue->in_work == 0;
      };
      return is_idle(controller.claim_queue()) && is_idle(controller.volume_queue());
    }));
  }

  ControllerOptions options;
  k8s::Informer<k8s::PersistentVolumeClaim> claim_informer{
      "pvc", client, clock, {.resource = k8s::kPersistentVolumeClaims}};
  k8s::Informer<k8s::PersistentVolume> volume_informer{
      "pv", client, clock, {.resource = k8s::kPersistentVolumes}};
  k8s::Informer<k8s::StorageClass> class_informer{
      "sc", client, clock, {.resource = k8s::kStorageClasses}};
  k8s::Informer<k8s::Node> node_informer{"node", client, clock, {.resource = k8s::kNodes}};
  Controller controller{
      world, {claim_informer, volume_informer, class_informer, node_informer}, options};
};

}  // namespace

TEST_CASE("a claim made again under its name gets the directory as soon as it is free") {
  auto before = std::make_shared<operation::Operation>();
  SUBCASE("after the former volume's removal") { before->kind = Kind::kRemove; }
  SUBCASE("after the former claim's make was taken back") { before->kind = Kind::kTakeBack; }
  before->volume_name = "pvc-former";
  before->claim = {"default", "a"};
  before->owner_uid = "former";
  before->node = "n1";
  before->base_path = "/data";
  before->path = "/data/default/a";
  Bed bed;
  bed.put(testing::storage_class().parameter("pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}"));
  bed.put(claim("a").node("n1"));
  bed.ledger.add(before);
  bed.controller.start_working();
  bed.wait_until_idle();
  CHECK(bed.executor.started.empty());
  bed.ledger.remove(before);
  bed.executor.owner.wake(*before);
  bed.wait_until_idle();
  bed.controller.stop_working();
  REQUIRE(bed.executor.started.size() == 1);
  CHECK(bed.executor.started[0].path == before->path);
}

TEST_CASE("what a node tells of claims that nobody knows takes no turn of their namespace") {
  Bed bed({.worker_threads = 1});  // so many steps for one namespace at a time
  bed.put(testing::node("n1"));
  bed.put(testing::node("n2"));
  bed.put(testing::storage_class());
  std::atomic<bool> goes_on = false;
  std::atomic<int> asked = 0;
  bed.transport.on("GET", "gone-")
      .run([&](const auto&, const auto*, const auto&) -> Result<k8s::Response> {
        ++asked;
        // Longer than what waits for it below.
        (void)testing::eventually([&] { return goes_on.load(); }, std::chrono::minutes(10));
        return k8s::Response{.status = 404};
      });
  std::vector<operation::Operation> all;
  for (const std::string number : {"1", "2", "3"}) {
    operation::Operation& told = all.emplace_back();
    told.volume_name = "pvc-uid-gone-" + number;
    told.claim = {"default", "gone-" + number};
    told.owner_uid = "uid-gone-" + number;
    told.node = "n1";
    told.base_path = "/data";
    told.path = "/data/" + told.volume_name + "_default_gone-" + number;
    bed.executor.records.push_back({told, {.state = operation::Progress::State::kSucceeded}});
  }
  SUBCASE("makes") {}
  SUBCASE("with a volume of its own") {
    bed.put(testing::volume("own")
                .host_path("/data/own")
                .claim("other", "own")
                .node("n1")
                .phase("Bound"));
    for (auto& told : all) {
      told.kind = Kind::kResize;
      told.volume_name = "own";
      told.path = "/data/own";
    }
  }
  bed.controller.start_working();
  for (const auto& told : all) bed.executor.owner.wake_told(told);
  REQUIRE(testing::eventually([&] { return asked == 1; }));
  bed.put(claim("a").node("n2"));
  bed.executor.owner.wake_node("n2");
  CHECK(testing::eventually([&] { return bed.executor.has_started(); }));
  CHECK(asked == 1);
  goes_on = true;
  bed.wait_until_idle();
  bed.controller.stop_working();
}

TEST_CASE("what a node tells of others that exist is looked at once in a while") {
  Bed bed;
  bed.put(testing::node("n1"));
  bed.put(testing::node("n2"));
  bed.put(claim("a").node("n2").volume("pvc-uid-a").phase("Bound"));
  bed.put(testing::volume("pvc-uid-a")
              .host_path("/data/a")
              .claim("default", "a")
              .node("n2")
              .phase("Bound"));
  bed.controller.start_working();
  bed.wait_until_idle();
  operation::Operation told;
  told.volume_name = "pvc-uid-a";
  told.claim = {"default", "a"};
  told.owner_uid = "uid-a";
  told.base_path = "/data";
  told.path = "/data/a";
  SUBCASE("a make") {}
  SUBCASE("a removal") { told.kind = Kind::kRemove; }
  SUBCASE("a resize") { told.kind = Kind::kResize; }
  const auto adds = [&] {
    return bed.controller.claim_stats().adds.load() + bed.controller.volume_stats().adds.load();
  };
  const auto before = adds();
  told.node = "n1";
  for (int i = 0; i < 100; ++i) {
    bed.executor.owner.wake_told(told);
    bed.wait_until_idle();
  }
  CHECK(adds() == before);
  bed.clock.advance(std::chrono::seconds(1));
  CHECK(testing::eventually([&] { return adds() == before + 2; }));
  bed.wait_until_idle();
  // At home it comes at once.
  told.node = "n2";
  bed.executor.owner.wake_told(told);
  CHECK(adds() > before + 2);
  bed.controller.stop_working();
}

TEST_CASE("a change of a volume wakes its claim as long as they are not bound") {
  Bed bed;
  const auto volume = [](const std::string& phase, const std::string& version) {
    return testing::volume("pvc-uid-a")
        .claim("default", "a")
        .phase(phase)
        .resource_version(version)
        .json();
  };
  std::string phase;
  std::uint64_t more = 0;
  SUBCASE("not bound") {
    phase = "Pending";
    more = 1;
  }
  SUBCASE("bound") { phase = "Bound"; }
  std::atomic<bool> works = false;
  bed.transport.on("GET", "watch=true")
      .run([&](const auto&, const k8s::ChunkSink* sink, const auto&) -> Result<k8s::Response> {
        (void)testing::eventually([&] { return works.load(); });
        (*sink)(nlohmann::json{{"type", "MODIFIED"}, {"object", volume(phase, "11")}}.dump() +
                "\n");
        return k8s::Response{.status = 200};
      })
      .hang();
  bed.transport.on("GET", "/persistentvolumes")
      .reply(200, nlohmann::json{{"metadata", {{"resourceVersion", "10"}}},
                                 {"items", nlohmann::json::array({volume("Pending", "10")})}}
                      .dump());
  bed.volume_informer.start();
  REQUIRE(testing::eventually([&] { return bed.volume_informer.has_synced(); }));
  bed.controller.start_working();
  const auto before = bed.controller.claim_stats().adds.load();
  const auto volumes_before = bed.controller.volume_stats().adds.load();
  works = true;
  CHECK(testing::eventually(
      [&] { return bed.controller.volume_stats().adds.load() == volumes_before + 1; }));
  CHECK(testing::eventually(
      [&] { return bed.controller.claim_stats().adds.load() == before + more; }));
  bed.volume_informer.request_stop();
  bed.volume_informer.join();
  CHECK(bed.controller.claim_stats().adds.load() == before + more);  // nor later
  bed.controller.stop_working();
}

}  // namespace lpp::provisioner::controller
