// SPDX-License-Identifier: Apache-2.0
// Binding a claim to its volume in the control plane's place: one test for each row of the table.
// What is written then: claim_bound_test.cpp.

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "provisioner/claim_binding.h"
#include "unit/provisioner/binding_scene.h"
#include "unit/provisioner/decision_scene.h"

namespace lpp::provisioner::claim_binding {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::claim;
using testing::claims_volume;
using testing::half_bound_claim;
using testing::kClaimsVolume;
using testing::State;
using testing::unasked_claim;

/// A claim that waits; its volume is there, and nobody has bound them yet.
struct Row : testing::ClaimRow {
  Row() {
    binds = true;
    volume = claims_volume("Pending").shared();
  }
  bool is_not_bound_by_us() const {
    const auto decision = next();
    return !std::holds_alternative<for_claim::Bind>(decision) &&
           !std::holds_alternative<for_claim::LeaveUnbound>(decision);
  }
};

}  // namespace

TEST_CASE("a claim whose own volume is there is bound to it") {
  Row row;
  for (const char* phase : {"", "Pending", "Available"}) {
    row.volume = claims_volume(phase).shared();
    const auto bind = row.next_is<for_claim::Bind>();
    CHECK(bind.volume_status);
    CHECK(bind.claim);
  }
  row.volume = claims_volume("Bound").shared();
  const auto bind = row.next_is<for_claim::Bind>();
  CHECK_FALSE(bind.volume_status);
  CHECK(bind.claim);
}

TEST_CASE("a binding that was cut short is finished") {
  Row row;
  for (const char* phase : {"Pending", "Bound"}) {
    row.claim_is(half_bound_claim(), "n1");
    row.volume = claims_volume(phase).shared();
    const auto bind = row.next_is<for_claim::Bind>();
    CHECK(bind.volume_status == (std::string(phase) == "Pending"));
    CHECK_FALSE(bind.claim);
  }
}

TEST_CASE("a claim of an Immediate class is bound once the control plane has asked") {
  Row row;
  row.storage_class = testing::storage_class().binding_mode("Immediate").shared();
  row.claim_is(claim("a"), "");
  (void)row.next_is<for_claim::Bind>();
  row.claim_is(claim("a").no_provisioner(), "");
  CHECK(row.is_not_bound_by_us());
}

TEST_CASE("what is bound, named by somebody else, not ours or on its way out is not bound by us") {
  const auto claim_seen = [](const testing::ClaimBuilder& seen) {
    return [=](Row& row) { row.claim_is(seen, "n1"); };
  };
  const auto volume_seen = [](const testing::VolumeBuilder& seen) {
    return [=](Row& row) { row.volume = seen.shared(); };
  };
  const auto on_n1 = [] { return claim("a").node("n1"); };
  const std::vector<std::function<void(Row&)>> others{
      claim_seen(on_n1().volume(kClaimsVolume)),
      claim_seen(half_bound_claim().volume(kClaimsVolume)),
      claim_seen(on_n1().volume("another")),
      claim_seen(half_bound_claim().volume("another").phase("Lost")),
      claim_seen(on_n1().volume(kClaimsVolume).phase("Pending")),  // a wish, by name
      claim_seen(on_n1().annotation(std::string(kBindCompleted), "yes")),
      claim_seen(on_n1().deleting()),
      claim_seen(half_bound_claim().deleting()),
      claim_seen(on_n1().provisioner("example.com/other")),
      claim_seen(on_n1().storage_class("another")),
      claim_seen(on_n1().volume_mode("Block")),
      claim_seen(claim("a")),  // no node is selected any more
      volume_seen(claims_volume("Pending").deleting()),
      volume_seen(claims_volume("Released")),
      volume_seen(claims_volume("Failed")),
      volume_seen(claims_volume("Pending").claim("default", "a", "another-uid")),
      volume_seen(claims_volume("Pending").claim("default", "b", "uid-a")),
      volume_seen(claims_volume("Pending").storage_class("another")),
      volume_seen(claims_volume("Pending").annotation(std::string(kProvisionedBy), "other")),
      volume_seen(claims_volume("Pending").resource_version("")),
      [](Row& row) { row.storage_class = nullptr; },
      [](Row& row) {
        row.storage_class = testing::storage_class().provisioner("example.com/other").shared();
      },
      [](Row& row) { row.binds = false; },
      [](Row& row) { row.claim_is_gone(); },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    Row row;
    others[i](row);
    CHECK(row.is_not_bound_by_us());
  }
}

TEST_CASE("what was just written is given time to come into the cache") {
  Row row;
  row.memory.binding = {.tries = 1, .hold_until = row.now + seconds(2)};
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.volume = claims_volume("Bound").resource_version("6").shared();
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.claim_is(half_bound_claim(), "n1");
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  CHECK_FALSE(row.next_is<for_claim::Wait>().forget);
  row.claim_is(half_bound_claim().phase("Bound"), "n1");
  CHECK(row.next_is<for_claim::Wait>().forget);
}

TEST_CASE("after a conflict another version of the claim is tried at once") {
  Row row;
  row.memory.binding = {.tries = 1,
                        .hold_until = row.now + seconds(1),
                        .outdated = {row.claim->meta.resource_version}};
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(1));
  row.claim_is(claim("a").node("n1").resource_version("2"), "n1");
  (void)row.next_is<for_claim::Bind>();
}

TEST_CASE("what could not be written is left to the control plane, and that is told once") {
  Row row;
  row.memory.binding = {.failure = "conflict", .message = "it has changed"};
  const auto left = row.next_is<for_claim::LeaveUnbound>();
  CHECK(left.reason == "conflict");
  CHECK(left.message == "it has changed");
  row.memory.binding.left = true;
  CHECK_FALSE(row.next_is<for_claim::Wait>().forget);
  row.binds = false;
  row.memory.binding.left = false;
  (void)row.next_is<for_claim::LeaveUnbound>();
}

TEST_CASE("a claim that the binder lost sight of is bound again after a moment") {
  Row row;
  row.claim_is(half_bound_claim().phase("Lost"), "n1");
  note_waits(row);
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.now += seconds(2);
  note_waits(row);
  CHECK_FALSE(row.next_is<for_claim::Bind>().claim);
  row.claim_is(half_bound_claim().phase("Bound"), "n1");
  note_waits(row);
  CHECK_FALSE(row.memory.lost);
}

TEST_CASE(
    "a claim that nobody has asked for is not touched before the control plane had its time") {
  Row row;
  row.claim_is(unasked_claim(), "n1");
  note_waits(row);
  CHECK(row.next_is<for_claim::Wait>().at_most == milliseconds(500));
  row.now += milliseconds(200);
  note_waits(row);
  CHECK(row.next_is<for_claim::Wait>().at_most == milliseconds(300));
  SUBCASE("it asks") {
    row.claim_is(claim("a").node("n1").resource_version("2"), "n1");
    note_waits(row);
    CHECK(row.next_is<for_claim::Bind>().claim);
  }
  SUBCASE("it does not") {
    row.now += milliseconds(300);
    note_waits(row);
    CHECK(row.next_is<for_claim::Bind>().claim);
  }
  SUBCASE("nor has anybody seen the volume before") {
    row.volume = nullptr;
    note_waits(row);
    CHECK_FALSE(row.memory.unasked);
  }
}

TEST_CASE("what is on record comes before the binding") {
  Row row;
  row.take_back(State::kRunning).in_use = true;
  (void)row.next_is<for_claim::Cancel>();
}

}  // namespace lpp::provisioner::claim_binding
