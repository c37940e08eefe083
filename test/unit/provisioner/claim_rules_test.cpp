// SPDX-License-Identifier: Apache-2.0
// Which claims are ours and when, which class and node they have, and how often they are tried.

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "provisioner/claim_shape.h"
#include "unit/provisioner/scene.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using operation::Kind;

namespace {

constexpr const char* kGa = "volume.kubernetes.io/storage-provisioner";
constexpr const char* kBeta = "volume.beta.kubernetes.io/storage-provisioner";
constexpr const char* kAlphaNode = "volume.alpha.kubernetes.io/selected-node";
constexpr const char* kBetaClass = "volume.beta.kubernetes.io/storage-class";

ClaimBuilder bare() { return claim("a").no_provisioner(); }

StorageClassBuilder immediate() { return storage_class().binding_mode("Immediate"); }

}  // namespace

TEST_CASE("a claim is ours by the storage-provisioner annotation, the newer one first") {
  struct Row {
    const char* what;
    ClaimBuilder asked;
    bool ours;
  };
  for (const Row& row : std::vector<Row>{
           {"both", claim("a"), true},
           {"the newer one alone", bare().annotation(kGa, kProvisionerName), true},
           {"the older one alone", bare().annotation(kBeta, kProvisionerName), true},
           {"none", bare(), false},
           {"the newer one names another",
            bare().annotation(kGa, "other").annotation(kBeta, kProvisionerName), false},
           {"the newer one is empty",
            bare().annotation(kGa, "").annotation(kBeta, kProvisionerName), false},
           {"the older one names another",
            bare().annotation(kGa, kProvisionerName).annotation(kBeta, "other"), true},
           {"a name that ours begins with", bare().annotation(kGa, "rancher.io/local"), false},
       }) {
    CAPTURE(row.what);
    CHECK(asks_for(row.asked.build(), kProvisionerName) == row.ours);
    CHECK(should_provision(row.asked.build(), immediate().shared().get(), kProvisionerName) ==
          row.ours);
  }
}

TEST_CASE("a claim with a selected node is ours by its class before the control plane has asked") {
  const auto elsewhere = storage_class().provisioner("other");
  struct Row {
    const char* what;
    ClaimBuilder asked;
    std::shared_ptr<const k8s::StorageClass> of_class;
    bool may_be_ours;
    bool wanted;
  };
  for (const Row& row : std::vector<Row>{
           {"our class", bare().node("n1"), storage_class().shared(), true, true},
           {"another provisioner's class", bare().node("n1"), elsewhere.shared(), true, false},
           {"no such class", bare().node("n1"), nullptr, true, false},
           // For these the control plane looks for a volume that is there first.
           {"Immediate", bare().node("n1"), immediate().shared(), true, false},
           {"no node", bare(), storage_class().shared(), false, false},
           {"an empty node", bare().node(""), storage_class().shared(), false, false},
           {"the alpha annotation does not count", bare().annotation(kAlphaNode, "n1"),
            storage_class().shared(), false, false},
           {"bound", bare().node("n1").volume("v"), storage_class().shared(), true, false},
           {"another one has been asked", bare().annotation(kGa, "other").node("n1"),
            storage_class().shared(), false, false},
           {"nobody, and that is said", bare().annotation(kGa, "").node("n1"),
            storage_class().shared(), false, false},
       }) {
    CAPTURE(row.what);
    const auto built = row.asked.build();
    CHECK_FALSE(asks_for(built, kProvisionerName));
    CHECK(may_ask_for(built, kProvisionerName) == row.may_be_ours);
    CHECK(should_provision(built, row.of_class.get(), kProvisionerName) == row.wanted);
  }
}

TEST_CASE("a claim is provisioned once it is unbound and has the node that its class waits for") {
  struct Row {
    const char* what;
    ClaimBuilder asked;
    StorageClassBuilder of_class;
    bool wanted;
  };
  for (const Row& row : std::vector<Row>{
           {"node selected", claim("a").node("n1"), storage_class(), true},
           {"no node", claim("a"), storage_class(), false},
           {"an empty node", claim("a").node(""), storage_class(), false},
           {"the alpha annotation does not count", claim("a").annotation(kAlphaNode, "n1"),
            storage_class(), false},
           {"Immediate without a node", claim("a"), immediate(), true},
           {"Immediate with a node", claim("a").node("n1"), immediate(), true},
           {"no binding mode is Immediate", claim("a"),
            storage_class().unset("", "volumeBindingMode"), true},
           {"bound", claim("a").node("n1").volume("v"), storage_class(), false},
           {"bound by hand to a volume that is not there",
            claim("a").node("n1").set("/spec/volumeName", "v"), storage_class(), false},
           {"class of another provisioner", claim("a").node("n1"),
            storage_class().provisioner("other"), false},
       }) {
    CAPTURE(row.what);
    CHECK(should_provision(row.asked.build(), row.of_class.shared().get(), kProvisionerName) ==
          row.wanted);
  }
  // A class that is missing is an error to tell, not a reason to be silent.
  CHECK(should_provision(claim("a").node("n1").build(), nullptr, kProvisionerName));
}

TEST_CASE("the class of a claim is its beta annotation's, else its spec's, else none") {
  CHECK(claim("a").build().class_name() == "local-path");
  CHECK(claim("a").annotation(kBetaClass, "old").build().class_name() == "old");
  CHECK(claim("a").annotation(kBetaClass, "").build().class_name().empty());
  CHECK(claim("a").unset("/spec", "storageClassName").build().class_name().empty());
  // And it decides: paths, policy and the name in the volume.
  Scene scene;
  config::Config config;
  config.classes["old"].node_path_map["n1"] = {"/old"};
  config.classes["local-path"].node_path_map["n1"] = {"/new"};
  const auto made = make_operation(claim("a").node("n1").annotation(kBetaClass, "old").build(),
                                   storage_class("old").build(), node("n1").shared().get(), config);
  REQUIRE(std::holds_alternative<operation::Operation>(made));
  CHECK(std::get<operation::Operation>(made).base_path == "/old");
  CHECK(std::get<operation::Operation>(made).storage_class == "old");
}

TEST_CASE("the node of a claim is the annotation's, and the alpha one's where none is waited for") {
  CHECK(selected_node(claim("a").node("n1").annotation(kAlphaNode, "n2").build()) == "n1");
  CHECK(selected_node(claim("a").annotation(kAlphaNode, "n2").build()) == "n2");
  CHECK(selected_node(claim("a").build()).empty());
}

TEST_CASE(
    "the base path of a node is its own entry's, else the default's, and a class may fix it") {
  config::Config config;
  config.paths.node_path_map["n1"] = {"/one", "/two"};
  config.paths.node_path_map["none"] = {};
  config.paths.node_path_map[std::string(config::kDefaultNode)] = {"/default"};
  config::Config listed_only;
  listed_only.paths.node_path_map["n1"] = {"/one"};
  struct Row {
    const char* on;
    const char* node_path;  // parameter; nullptr = none
    const config::Config& with;
    const char* base;  // "" = refused
    const char* says = "";
  };
  for (const Row& row : std::vector<Row>{
           {"n1", "/two", config, "/two"},
           {"n1", "/one", config, "/one"},
           {"n9", nullptr, config, "/default"},
           {"n9", "/default", config, "/default"},
           {"n1", nullptr, listed_only, "/one"},
           {"n1", "", listed_only, "/one"},
           {"none", nullptr, config, "", "no local path available on node none"},
           {"n9", nullptr, listed_only, "",
            "config doesn't contain node n9, and no DEFAULT_PATH_FOR_NON_LISTED_NODES is "
            "available"},
           {"n1", "/three", config, "", "config doesn't contain path /three on node n1"},
           {"n1", "/two/", config, "", "config doesn't contain path /two/ on node n1"},
           {"n1", "/default", config, "", "config doesn't contain path /default on node n1"},
       }) {
    CAPTURE(row.on);
    auto of_class = storage_class();
    if (row.node_path != nullptr) of_class.parameter("nodePath", row.node_path);
    const auto on = node(row.on).build();
    const auto made =
        make_operation(claim("a").node(row.on).build(), of_class.build(), &on, row.with);
    if (const auto* operation = std::get_if<operation::Operation>(&made)) {
      CHECK(operation->base_path == row.base);
      CHECK(operation->path == std::string(row.base) + "/pvc-uid-a_default_a");
    } else {
      CHECK(std::get<Refusal>(made).message == row.says);
      CHECK(std::get<Refusal>(made).node_is_the_reason);
    }
  }
  // On a shared filesystem a class's nodePath means nothing.
  config::Config shared;
  shared.paths.shared_file_system_path = "/mnt/nfs";
  const auto made = make_operation(
      claim("a").build(), storage_class().parameter("nodePath", "/two").build(), nullptr, shared);
  CHECK(std::get<operation::Operation>(made).base_path == "/mnt/nfs");
}

TEST_CASE(
    "the claim's annotation, the class's parameter, then its annotation say the volume type") {
  using Source = k8s::VolumeSource;
  const auto local_class = storage_class().annotation("defaultVolumeType", "local");
  const auto on = node("n1").build();
  config::Config config;
  config.paths.node_path_map["n1"] = {"/data"};
  const auto type_of = [&](const ClaimBuilder& asked, const StorageClassBuilder& of_class) {
    const auto shape = make_shape(asked.build(), of_class.build(), &on, config);
    REQUIRE(std::holds_alternative<operation::Shape>(shape));
    return std::get<operation::Shape>(shape).source;
  };
  CHECK(type_of(claim("a"), storage_class()) == Source::kHostPath);
  CHECK(type_of(claim("a"), local_class) == Source::kLocal);
  CHECK(type_of(claim("a").annotation("volumeType", "hostPath"), local_class) == Source::kHostPath);
  for (const char* spelling : {"local", "Local", "LOCAL"}) {
    CHECK(type_of(claim("a").annotation("volumeType", spelling), storage_class()) ==
          Source::kLocal);
  }
  for (const char* spelling : {"hostpath", "hostPath", "HOSTPATH"}) {
    CHECK(type_of(claim("a").annotation("volumeType", spelling), local_class) == Source::kHostPath);
  }
  CHECK(type_of(claim("a"), StorageClassBuilder(local_class).parameter("volumeType", "hostPath")) ==
        Source::kHostPath);
}

TEST_CASE("waits grow to their limit, and after the last retry come with the resync") {
  FakeClock clock;
  const k8s::BackoffPolicy policy{
      .base = std::chrono::seconds(1), .cap = std::chrono::seconds(1000), .jitter = 0};
  struct Row {
    int retry_count;
    int failed;
    std::chrono::seconds wait;
  };
  for (const Row& row : std::vector<Row>{
           {15, 1, std::chrono::seconds(1)},
           {15, 2, std::chrono::seconds(2)},
           {15, 3, std::chrono::seconds(4)},
           {15, 10, std::chrono::seconds(512)},
           {15, 11, std::chrono::seconds(1000)},
           {15, 15, std::chrono::seconds(1000)},
           {15, 16, Memories::kResync},  // 15 retries after the first attempt
           {15, 17, Memories::kResync},
           {1, 1, std::chrono::seconds(1)},
           {1, 2, Memories::kResync},
           {0, 16, std::chrono::seconds(1000)},  // for ever
           {0, 1'000'000, std::chrono::seconds(1000)},
       }) {
    CAPTURE(row.retry_count);
    CAPTURE(row.failed);
    CHECK(Memories(clock, policy, row.retry_count).wait_after(row.failed) == row.wait);
  }
}

TEST_CASE(
    "a claim that was given up gets one more attempt at each resync, and a change revives it") {
  for (const int retry_count : {0, 2}) {
    CAPTURE(retry_count);
    Scene scene;
    scene.put(claim("a").node("n1"));
    Memories attempts(
        scene.clock, {.base = std::chrono::seconds(1), .cap = std::chrono::seconds(8), .jitter = 0},
        retry_count);
    ClaimReconciler reconciler(scene.world, attempts);
    const ClaimKey key{{"default", "a"}, "uid-a"};
    std::vector<std::chrono::seconds> waits;
    for (int i = 0; i < 6; ++i) {
      (void)reconciler.step(key);  // makes the pod
      scene.executor.fail(Kind::kMake, "pvc-uid-a", "broken");
      const auto action = reconciler.step(key);
      CHECK(scene.executor.started.back().attempt == i + 1);
      waits.push_back(std::chrono::duration_cast<std::chrono::seconds>(action.after));
      scene.clock.advance(action.after);
    }
    using s = std::chrono::seconds;
    const s resync = Memories::kResync;
    CHECK(waits == (retry_count == 0 ? std::vector<s>{s(1), s(2), s(4), s(8), s(8), s(8)}
                                     : std::vector<s>{s(1), s(2), resync, resync, resync, resync}));
    // Another node, class, claim or configuration: not at the resync but now.
    (void)reconciler.step(key);
    scene.executor.fail(Kind::kMake, "pvc-uid-a", "broken");
    (void)reconciler.step(key);
    const auto before = scene.executor.started.size();
    (void)reconciler.step(key);
    CHECK(scene.executor.started.size() == before);
    scene.put(storage_class().resource_version("2"));
    (void)reconciler.step(key);
    CHECK(scene.executor.started.size() == before + 1);
    CHECK(scene.executor.started.back().attempt == 8);
  }
}
