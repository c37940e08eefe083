// SPDX-License-Identifier: Apache-2.0
#include "provisioner/base_paths.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fakes/builders.h"

using namespace lpp;               // NOLINT(google-build-using-namespace): a test file
using namespace lpp::provisioner;  // NOLINT(google-build-using-namespace)
using namespace lpp::testing;      // NOLINT(google-build-using-namespace)

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
    return disks_named(volumes, nodes, node, base, {"/data", "/data/ssd", "/more"});
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
  CHECK(disks_named(volumes, nodes, "n1", "/data", {"/data"}).empty());
  // A pattern may have led it there.
  add("/data/fast/b", "/data", "slow");
  CHECK(disks_named(volumes, nodes, "n1", "/data", {"/data"}) == std::vector<std::string>{"slow"});
  CHECK(disks_named(volumes, nodes, "n1", "/data/fast", {"/data/fast"}) ==
        std::vector<std::string>{"fast"});
}
