// SPDX-License-Identifier: Apache-2.0
#include "provisioner/base_paths.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fakes/builders.h"
#include "provisioner/named_disks.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

TEST_CASE("the disks of a base path are those that the node's volumes in it name") {
  k8s::StoreWriter<k8s::Node> nodes;
  for (const char* name : {"n1", "n2"}) nodes.put({"", name}, node(name).shared());
  k8s::StoreWriter<k8s::PersistentVolume> volumes;
  const auto add = [&](const std::string& path, const std::string& on, const std::string& disk,
                       const std::string& created) {
    auto made = volume("v" + std::to_string(volumes.list().size())).host_path(path).node(on);
    if (!disk.empty()) made.annotation("local.path.provisioner/disk", disk);
    made.created(created);
    volumes.put({"", made.build().meta.name}, made.shared());
  };
  const auto named = [&](const std::string& node, const std::string& base) {
    return disks_named(volumes.list(), nodes, node, base, {"/data", "/data/ssd", "/more"});
  };
  CHECK(named("n1", "/data").empty());

  add("/data/a", "n1", "", "2026-05-28T20:00:00Z");
  CHECK(named("n1", "/data").empty());
  add("/data/b", "n1", "z-old", "2026-05-28T20:00:01Z");
  add("/data/c", "n1", "a-new", "2026-05-28T20:00:09Z");
  add("/data/d", "n1", "z-old", "2026-05-28T20:00:02Z");
  add("/data/e", "n2", "other-node", "2026-05-28T20:00:10Z");
  add("/data/ssd/f", "n1", "ssd", "2026-05-28T20:00:11Z");
  add("/database/g", "n1", "neighbour", "2026-05-28T20:00:12Z");
  CHECK(named("n1", "/data") == std::vector<std::string>{"a-new", "z-old"});
  CHECK(named("n1", "/data/ssd") == std::vector<std::string>{"ssd"});
  CHECK(named("n2", "/data") == std::vector<std::string>{"other-node"});
  CHECK(named("n1", "/more").empty());
}

TEST_CASE(
    "a volume that says its node names that node's disk, whatever the node's label is by now") {
  k8s::StoreWriter<k8s::Node> nodes;
  for (const char* name : {"n1", "n2"}) nodes.put({"", name}, node(name).shared());
  k8s::StoreWriter<k8s::PersistentVolume> volumes;
  volumes.put({"", "v"}, volume("v")
                             .host_path("/data/a")
                             .node("former-label")
                             .annotation("local.path.provisioner/selected-node", "n1")
                             .annotation("local.path.provisioner/disk", "disk-1")
                             .shared());
  CHECK(disks_named(volumes.list(), nodes, "n1", "/data", {"/data"}) ==
        std::vector<std::string>{"disk-1"});
  CHECK(disks_named(volumes.list(), nodes, "n2", "/data", {"/data"}).empty());
}

TEST_CASE("the disk of a base path that is configured no more is not that of the one around it") {
  k8s::StoreWriter<k8s::Node> nodes;
  nodes.put({"", "n1"}, node("n1").shared());
  k8s::StoreWriter<k8s::PersistentVolume> volumes;
  const auto add = [&](const std::string& path, const std::string& base, const std::string& disk) {
    auto made = volume("v" + std::to_string(volumes.list().size())).host_path(path).node("n1");
    made.annotation("local.path.provisioner/disk", disk);
    made.annotation("local.path.provisioner/base-path", base);
    volumes.put({"", made.build().meta.name}, made.shared());
  };
  add("/data/fast/a", "/data/fast", "fast");
  CHECK(disks_named(volumes.list(), nodes, "n1", "/data", {"/data"}).empty());
  // A pattern may have led it there.
  add("/data/fast/b", "/data", "slow");
  CHECK(disks_named(volumes.list(), nodes, "n1", "/data", {"/data"}) ==
        std::vector<std::string>{"slow"});
  CHECK(disks_named(volumes.list(), nodes, "n1", "/data/fast", {"/data/fast"}) ==
        std::vector<std::string>{"fast"});
}

TEST_CASE(
    "the disks of all nodes are found in one look at the volumes, and in one more after news") {
  constexpr int kNodes = 40;
  k8s::StoreWriter<k8s::Node> nodes;
  k8s::StoreWriter<k8s::PersistentVolume> volumes;
  const auto name = [](int i) { return "n" + std::to_string(i); };
  const auto put = [&](const std::string& volume_name, int on, const std::string& disk) {
    auto made = volume(volume_name).host_path("/data/" + volume_name).node(name(on));
    made.annotation("local.path.provisioner/selected-node", name(on));
    made.annotation("local.path.provisioner/disk", disk);
    volumes.put({"", volume_name}, made.shared());
  };
  for (int i = 0; i < kNodes; ++i) {
    nodes.put({"", name(i)}, node(name(i)).shared());
    for (const char* which : {"a", "b"}) put(which + std::to_string(i), i, "disk-" + name(i));
  }
  NamedDisks named(volumes, nodes);
  const auto all_are_found = [&] {
    for (int i = 0; i < kNodes; ++i) {
      CAPTURE(i);
      const auto disks = named.of(name(i), "/data", {"/data", "/more"});
      CHECK(disks == disks_named(volumes.list(), nodes, name(i), "/data", {"/data", "/more"}));
      CHECK(named.of(name(i), "/more", {"/data", "/more"}).empty());
    }
  };
  all_are_found();
  CHECK(named.of("n7", "/data", {"/data"}) == std::vector<std::string>{"disk-n7"});
  CHECK(named.passes() == 1);
  SUBCASE("of a volume that comes") {
    put("c", 7, "disk-new");
    CHECK(named.of("n7", "/data", {"/data"}).size() == 2);
  }
  SUBCASE("of volumes that go") {
    for (const char* gone : {"a7", "b7"}) (void)volumes.erase({"", gone});
    CHECK(named.of("n7", "/data", {"/data"}).empty());
  }
  SUBCASE("of another state of all of them") {
    (void)volumes.swap({});
    CHECK(named.of("n7", "/data", {"/data"}).empty());
  }
  SUBCASE("of a node that goes, by whose label another one may have its volumes") {
    (void)nodes.erase({"", "n7"});
    nodes.put({"", "heir"}, node("heir").label("kubernetes.io/hostname", "n7").shared());
    CHECK(named.of("heir", "/data", {"/data"}) == std::vector<std::string>{"disk-n7"});
  }
  CHECK(named.passes() == 2);
  nodes.put({"", "n8"}, node("n8").label("beats", "again").shared());
  all_are_found();
  CHECK(named.passes() == 2);
}
