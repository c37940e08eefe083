// SPDX-License-Identifier: Apache-2.0
// Two names that are served: each class's volumes carry its own, and neither answers for the other.

#include "provisioner/served_names.h"

#include <doctest/doctest.h>

#include "operation/record.h"
#include "provisioner/claim_decision.h"
#include "provisioner/volume_manifest.h"
#include "provisioner/volume_rules.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner {
namespace {

using testing::claim;
using testing::ClaimBuilder;
using testing::kProvisionerName;
using testing::storage_class;
using testing::volume;

constexpr const char* kSecond = "local-path.example.org";
constexpr const char* kAsked = "volume.kubernetes.io/storage-provisioner";
constexpr const char* kBy = "pv.kubernetes.io/provisioned-by";

ServedNames both() { return {kProvisionerName, kSecond}; }
ClaimBuilder asks(const char* name) {
  return claim("a").no_provisioner().annotation(kAsked, name).node("n1");
}

TEST_CASE("one name or two are served, and never the empty one") {
  const ServedNames one = kProvisionerName;
  CHECK(one.has(kProvisionerName));
  CHECK_FALSE(one.has(kSecond));
  CHECK_FALSE(one.has(""));
  CHECK(both().has(kProvisionerName));
  CHECK(both().has(kSecond));
  CHECK_FALSE(both().has(""));
  CHECK_FALSE(ServedNames().has(""));
  CHECK(to_string(one) == kProvisionerName);
  CHECK(to_string(both()) == std::string(kProvisionerName) + " or " + kSecond);
}

TEST_CASE("claims and volumes of both names are ours, those of others are not") {
  const ServedNames one = kProvisionerName;
  CHECK(asks_for(asks(kSecond).build(), both()));
  CHECK(may_ask_for(asks(kSecond).build(), both()));
  CHECK_FALSE(asks_for(asks(kSecond).build(), one));
  CHECK_FALSE(asks_for(asks("example.com/other").build(), both()));
  const auto made = volume("pvc-1").annotation(kBy, kSecond).build();
  CHECK(is_ours(made, both()));
  CHECK_FALSE(is_ours(made, one));
  CHECK(is_ours(volume("pvc-1").build(), both()));
}

TEST_CASE("a class answers only for claims that ask for its own name, or for none yet") {
  const auto first = storage_class().shared();
  const auto second = storage_class().provisioner(kSecond).shared();
  CHECK(should_provision(asks(kSecond).build(), second.get(), both()));
  CHECK(should_provision(asks(kProvisionerName).build(), first.get(), both()));
  CHECK_FALSE(should_provision(asks(kSecond).build(), first.get(), both()));
  CHECK_FALSE(should_provision(asks(kProvisionerName).build(), second.get(), both()));
  CHECK(should_provision(claim("a").no_provisioner().node("n1").build(), second.get(), both()));
  CHECK_FALSE(should_provision(asks(kSecond).build(), second.get(), kProvisionerName));
}

TEST_CASE("what is begun for a class of the second name makes a volume of that name") {
  for (const bool is_second : {false, true}) {
    CAPTURE(is_second);
    const char* const name = is_second ? kSecond : kProvisionerName;
    ClaimScene scene;
    scene.names = both();
    scene.claim = asks(name).shared();
    scene.storage_class = storage_class().provisioner(name).shared();
    scene.node = testing::node("n1").shared();
    scene.node_name = "n1";
    scene.volume_name = volume_name_of(scene.claim->meta.uid);
    config::Config config;
    config.paths.node_path_map["n1"] = {"/data"};
    scene.config = std::make_shared<const config::Config>(config);
    const auto decision = decide(scene);
    REQUIRE(std::holds_alternative<for_claim::Start>(decision));
    // It is on record, whatever becomes of the class.
    const auto text = operation::encode_operation(std::get<for_claim::Start>(decision).operation);
    REQUIRE(text.ok());
    CHECK((text->find(kSecond) != std::string::npos) == is_second);
    const auto recorded = operation::decode_operation(*text);
    REQUIRE(recorded.ok());
    const auto made = make_volume(*recorded, *scene.claim, both().own());
    CHECK(made["metadata"]["annotations"][kBy] == name);
    auto stored = made;
    stored["metadata"]["uid"] = "u";
    const auto decoded = k8s::decode<k8s::PersistentVolume>(stored);
    REQUIRE(decoded.ok());
    CHECK(difference(*decoded, *scene.claim, both()).empty());
    CHECK(difference(*decoded, *scene.claim, kProvisionerName).empty() != is_second);
  }
}

}  // namespace
}  // namespace lpp::provisioner
