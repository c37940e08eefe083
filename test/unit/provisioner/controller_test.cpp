// SPDX-License-Identifier: Apache-2.0
#include "provisioner/controller.h"

#include <doctest/doctest.h>

#include <memory>

#include "fakes/eventually.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::controller {
namespace {

using operation::Kind;
using testing::claim;

/// Its informers are not started: the caches are what the test puts there.
struct Bed : testing::Scene {
  void wait_until_idle() const {
    CHECK(testing::eventually([&] {
      const auto queue = controller.claim_queue();
      return queue && queue->ready == 0 && queue->in_work == 0;
    }));
  }

  k8s::Informer<k8s::PersistentVolumeClaim> claim_informer{
      "pvc", client, clock, {.resource = k8s::kPersistentVolumeClaims}};
  k8s::Informer<k8s::PersistentVolume> volume_informer{
      "pv", client, clock, {.resource = k8s::kPersistentVolumes}};
  k8s::Informer<k8s::StorageClass> class_informer{
      "sc", client, clock, {.resource = k8s::kStorageClasses}};
  k8s::Informer<k8s::Node> node_informer{"node", client, clock, {.resource = k8s::kNodes}};
  Controller controller{
      world, {claim_informer, volume_informer, class_informer, node_informer}, {}};
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

}  // namespace lpp::provisioner::controller
