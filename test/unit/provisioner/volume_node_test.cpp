// SPDX-License-Identifier: Apache-2.0
// On which node the directory of a volume is, and which volumes are in an operation's way.

#include "provisioner/volume_node.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fakes/builders.h"
#include "provisioner/names.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner::volume_nodes {

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

namespace {

using nlohmann::json;
using Kind = VolumeNode::Kind;

constexpr const char* kHostname = "kubernetes.io/hostname";
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kDisk = "example.com/disk";
constexpr const char* kPath = "/data/default/a";

json is(const char* key, const char* op, const std::vector<std::string>& values) {
  return {{"key", key}, {"operator", op}, {"values", values}};
}
json in(const char* key, const std::vector<std::string>& values) { return is(key, "In", values); }

/// A term of expressions.
json all_of(const std::vector<json>& expressions) { return {{"matchExpressions", expressions}}; }
json field(const std::string& name) {
  return {{"matchFields", json::array({in("metadata.name", {name})})}};
}

VolumeBuilder with(const std::vector<json>& terms) {
  return volume("v").host_path(kPath).set("/spec/nodeAffinity/required/nodeSelectorTerms", terms);
}
VolumeBuilder at(const std::string& hostname) {
  return with({all_of({in(kHostname, {hostname})})});
}
VolumeBuilder annotated(VolumeBuilder made, const std::string& node) {
  return made.annotation("local.path.provisioner/selected-node", node);
}

/// n1 and n2 are as usual; "named" is not called what its hostname label says; the bare ones lack
/// that label; n2 has a disk and is alone in its zone.
struct Nodes : k8s::StoreWriter<k8s::Node> {
  Nodes() {
    add(node("n1").label(kZone, "z1"));
    add(node("n2").label(kZone, "z2").label(kDisk, "d2"));
    add(node("named").label(kHostname, "host").label(kZone, "z1"));
    for (const char* name : {"bare1", "bare2"}) {
      add(node(name).unset("/metadata/labels", kHostname));
    }
  }
  void add(const NodeBuilder& b) { put({"", b.build().meta.name}, b.shared()); }
};

struct Row {
  const char* what;
  VolumeBuilder made;
  std::string node;       // where it is; or "gone", "any", "unclear"
  std::string may_be_on;  // of n1, n2, named, bare1, bare2, in this order
};

std::vector<Row> rows() {
  const auto& a = annotated;
  return {
      {"by label", at("n1"), "n1", "n1"},
      {"by label that is not the name", at("host"), "named", "named"},
      {"by field", with({field("n2")}), "n2", "n2"},
      {"node without the label, by name", at("bare1"), "bare1", "bare1"},
      {"label that came after the volume, by name", at("named"), "named", "named"},
      {"annotation and label agree", a(at("n1"), "n1"), "n1", "n1"},
      {"annotation and name agree, the label has changed since", a(at("named"), "named"), "named",
       "named"},
      {"renamed node, label kept", a(at("host"), "old"), "named", "named"},
      {"renamed node, by another label", a(with({all_of({in(kDisk, {"d2"})})}), "old"), "n2", "n2"},
      {"node made anew, its label missing", a(with({all_of({in(kDisk, {"d9"})})}), "n1"), "n1",
       "n1"},
      {"annotation of another existing node", a(at("n2"), "n1"), "unclear", "n1 n2 bare1 bare2"},
      {"annotation of another existing node, by field", a(with({field("n2")}), "n1"), "unclear",
       "n1 n2"},
      {"annotation of a node that the affinity excludes", a(at("old"), "n1"), "unclear",
       "n1 bare1 bare2"},
      {"a disk that moved on, its node there", a(with({all_of({in(kDisk, {"d9"})})}), "n2"),
       "unclear", "n1 n2 named bare1 bare2"},
      {"node gone", at("old"), "gone", "bare1 bare2"},
      {"node gone, with the annotation", a(at("old"), "old"), "gone", "bare1 bare2"},
      {"node gone, by field", with({field("old")}), "gone", ""},
      {"node gone, by another label", with({all_of({in(kDisk, {"d9"})})}), "gone",
       "n1 named bare1 bare2"},
      {"several expressions", with({all_of({in(kZone, {"z1"}), in(kHostname, {"n1"})})}), "n1",
       "n1"},
      {"several expressions, the zone has changed",
       with({all_of({in(kZone, {"z9"}), in(kHostname, {"n1"})})}), "n1", "n1"},
      {"several expressions, none of a machine",
       with({all_of({in(kZone, {"z2"}), in(kDisk, {"d2"})})}), "n2", "n2"},
      {"expression and field",
       with({json{{"matchExpressions", {in(kZone, {"z1"})}},
                  {"matchFields", {in("metadata.name", {"n1"})}}}}),
       "n1", "n1"},
      {"another condition next to the machine",
       with({all_of({in(kHostname, {"n1"}), is("x", "DoesNotExist", {})})}), "n1", "n1"},
      {"several terms, several nodes",
       with({all_of({in(kHostname, {"n1"})}), all_of({in(kHostname, {"n2"})})}), "unclear",
       "n1 n2 bare1 bare2"},
      {"several terms, the annotation says which",
       a(with({all_of({in(kHostname, {"n1"})}), all_of({in(kHostname, {"n2"})})}), "n2"), "n2",
       "n2"},
      {"several terms, the annotated node is gone",
       a(with({all_of({in(kHostname, {"old"})}), all_of({in(kHostname, {"n2"})})}), "old"),
       "unclear", "n2 bare1 bare2"},
      {"several terms, one node", with({all_of({in(kHostname, {"n1"})}), field("n1")}), "n1", "n1"},
      {"a term that asks for nothing", with({json::object(), all_of({in(kHostname, {"n1"})})}),
       "n1", "n1"},
      {"several values", with({all_of({in(kHostname, {"n1", "n2"})})}), "unclear",
       "n1 n2 bare1 bare2"},
      {"several values, one is gone", with({all_of({in(kHostname, {"old", "n2"})})}), "unclear",
       "n2 bare1 bare2"},
      {"several values, all are gone", with({all_of({in(kHostname, {"old", "older"})})}), "gone",
       "bare1 bare2"},
      {"several values, the annotation says which",
       a(with({all_of({in(kHostname, {"n1", "n2"})})}), "n1"), "n1", "n1"},
      {"NotIn", with({all_of({is(kHostname, "NotIn", {"n1"})})}), "unclear",
       "n2 named bare1 bare2"},
      {"NotIn that leaves no node",
       with({all_of({is(kZone, "NotIn", {"z1", "z2"}), is(kHostname, "Exists", {})})}), "unclear",
       ""},
      {"NotIn, the annotation says which",
       a(with({all_of({is(kHostname, "NotIn", {"n1"})})}), "n2"), "n2", "n2"},
      {"a label that one node has", with({all_of({is(kDisk, "Exists", {})})}), "unclear", "n2"},
      {"a zone that one node is in", with({all_of({in(kZone, {"z2"})})}), "unclear",
       "n2 bare1 bare2"},
      {"no affinity", volume("v").host_path(kPath), "any", "n1 n2 named bare1 bare2"},
      {"no affinity, with the annotation", a(volume("v").host_path(kPath), "n1"), "n1",
       "n1 n2 named bare1 bare2"},
      {"no affinity, the annotated node is gone", a(volume("v").host_path(kPath), "old"), "any",
       "n1 n2 named bare1 bare2"},
  };
}

std::string shown(const VolumeNode& node) {
  switch (node.kind) {
    case Kind::kNode: return node.name;
    case Kind::kAny: return "any";
    case Kind::kGone: return "gone";
    case Kind::kUnclear: break;
  }
  return node.name.empty() ? "unclear" : "unclear " + node.name;
}

}  // namespace

TEST_CASE("a volume whose label two nodes have is on neither for certain") {
  Nodes nodes;
  nodes.add(node("twin").label(kHostname, "n2"));
  const VolumeNode found = node_of(at("n2").build(), nodes);
  CHECK(found.kind == Kind::kUnclear);
  CHECK(found.description.find("n2, twin") != std::string::npos);
  CHECK(node_of(annotated(at("n2"), "twin").build(), nodes).name == "twin");
}

TEST_CASE("the node of a volume is the one that all it says leaves, or it is unclear") {
  const Nodes nodes;
  for (const Row& row : rows()) {
    CAPTURE(row.what);
    const VolumeNode found = node_of(row.made.build(), nodes);
    CHECK_MESSAGE(shown(found) == row.node, found.description);
    CHECK((found.kind == Kind::kGone || found.kind == Kind::kUnclear) ==
          !found.description.empty());
  }
}

TEST_CASE("a removal needs to know the node, or a filesystem that all nodes share") {
  const Nodes nodes;
  config::Config config;
  const auto where = [&](const VolumeBuilder& made) {
    return shown(removal_node_of(made.build(), nodes, config));
  };
  const auto shared = volume("v").host_path("/mnt/nfs/default/a");
  CHECK(where(at("n1")) == "n1");
  CHECK(where(shared) == "unclear");
  CHECK(where(annotated(shared, "old")) == "unclear");
  CHECK(where(annotated(shared, "n1")) == "n1");
  config.paths.shared_file_system_path = "/mnt/nfs";
  CHECK(where(shared) == "any");
  CHECK(where(annotated(shared, "old")) == "any");
  CHECK(where(annotated(shared, "n1")) == "any");
  CHECK(where(volume("v").host_path(kPath)) == "unclear");
}

TEST_CASE("a volume of a known other node is in no operation's way, one that may be there is") {
  const Nodes nodes;
  for (const Row& row : rows()) {
    k8s::StoreWriter<k8s::PersistentVolume> volumes;
    volumes.put(row.made.key(), row.made.shared());
    std::string blocked;
    for (const char* name : {"n1", "n2", "named", "bare1", "bare2"}) {
      const operation::Operation operation{
          .volume_name = "w", .node = name, .base_path = "/data", .path = kPath};
      const auto other = overlapping_volume(volumes, nodes, operation, kProvisionerName, {});
      CHECK((other != nullptr) == shares_directory(row.made.build(), operation, nodes));
      if (other != nullptr) blocked += (blocked.empty() ? "" : " ") + std::string(name);
    }
    CHECK_MESSAGE(blocked == row.may_be_on, row.what);
    // On a shared filesystem, and where any node will do, every volume counts.
    operation::Operation anywhere{.volume_name = "w", .base_path = "/data", .path = kPath};
    CHECK(shares_directory(row.made.build(), anywhere, nodes));
    anywhere.node = "n1";
    anywhere.shared = true;
    CHECK(shares_directory(row.made.build(), anywhere, nodes));
    anywhere.path = "/data/default/b";
    CHECK_FALSE(shares_directory(row.made.build(), anywhere, nodes));
  }
}

TEST_CASE("a volume whose annotation is a former name of its node shares that node's directories") {
  Nodes nodes;
  const auto old = annotated(at("host"), "old").build();
  operation::Operation operation{.node = "named", .base_path = "/data", .path = kPath};
  CHECK(shares_directory(old, operation, nodes));
  operation.node = "old";
  CHECK(shares_directory(old, operation, nodes));
  // A node that is not known (yet) may be the one.
  operation.node = "new";
  CHECK_FALSE(shares_directory(old, operation, nodes));
  nodes.erase({"", "named"});
  CHECK(shares_directory(old, operation, nodes));
}

TEST_CASE("a node concerns the volumes that name it: by annotation, label or name") {
  struct Row {
    const char* what;
    VolumeBuilder made;
    bool concerned;
  };
  const auto named = node("named").label(kHostname, "host").label(kZone, "z1").build();
  const std::vector<Row> rows{
      {"its label", at("host"), true},
      {"its name", at("named"), true},
      {"its name as a field", with({field("named")}), true},
      {"the annotation alone", annotated(at("n1"), "named"), true},
      {"its zone", with({all_of({in(kZone, {"z1"})})}), true},
      {"one of two terms", with({all_of({in(kHostname, {"n1"})}), field("named")}), true},
      {"another node", annotated(at("n1"), "n1"), false},
      {"any node", volume("v").host_path(kPath), false},
  };
  for (const Row& row : rows) {
    CHECK_MESSAGE(concerns(named, row.made.build()) == row.concerned, row.what);
  }
}

TEST_CASE("a volume is on the disk of the base path that it was made in, whatever is configured") {
  config::Config config;
  config.paths.node_path_map = {{"n1", {"/data/prod", "/data"}}};
  k8s::PersistentVolume volume;
  volume.path = "/data/prod/db";
  CHECK(base_path_of("n1", volume, config) == "/data/prod");
  const auto made_in = [&](const std::string& base) {
    volume.meta.annotations = {{std::string(kVolumeBasePath), base}};
    return base_path_of("n1", volume, config);
  };
  CHECK(made_in("/data") == "/data");
  CHECK(made_in("/elsewhere") == "/data/prod");
  CHECK(made_in("data") == "/data/prod");
  CHECK(made_in("/") == "/data/prod");
  volume.path = "/elsewhere/ns/db";
  CHECK(made_in("/elsewhere") == "/elsewhere");
  CHECK(made_in("/elsewhere/ns/db").empty());
  CHECK(made_in("").empty());
}

}  // namespace lpp::provisioner::volume_nodes
