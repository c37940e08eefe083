// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/k8s/event_recorder_fixture.h"

namespace lpp::testing {

TEST_CASE("an event that must not get lost is stored before anything goes on") {
  EventFixture f;  // its thread does not run
  const auto about = claim_reference("data");
  auto& creates = f.transport.on("POST", "/namespaces/team/events");
  const auto store = [&] {
    return f.recorder.store(about, EventType::kWarning, "DirectoryKept", "it is not empty");
  };
  SUBCASE("twice is once") {
    creates.reply(201).reply(409, R"({"kind":"Status","reason":"AlreadyExists","code":409})");
    CHECK(store().ok());
    CHECK(store().ok());
    const json first = json::parse(f.request(0).body);
    CHECK(first["message"] == "it is not empty");
    CHECK(first["metadata"]["name"] == json::parse(f.request(1).body)["metadata"]["name"]);
  }
  SUBCASE("an error is told when another try may do better") {
    creates.fail(ErrorCode::kTimeout).reply(503).reply(429);
    CHECK_FALSE(store().ok());
    CHECK_FALSE(store().ok());
    CHECK_FALSE(store().ok());
  }
  SUBCASE("in a namespace that is going it is about the namespace") {
    creates.reply(403,
                  R"({"kind":"Status","reason":"Forbidden","code":403,"message":)"
                  R"("unable to create new content in namespace team: it is being terminated"})");
    f.transport.on("POST", "/namespaces/default/events").reply(201);
    CHECK(store().ok());
    const json event = json::parse(f.request(1).body);
    CHECK(event["involvedObject"]["kind"] == "Namespace");
    CHECK(event["involvedObject"]["name"] == "team");
    CHECK(event["message"] == "PersistentVolumeClaim data: it is not empty");
  }
  SUBCASE("what may not be written now goes the way of the others") {
    creates.reply(403).reply(201);
    CHECK(store().ok());
    f.recorder.start();
    CHECK(f.transport.wait_for_requests(2));
  }
}

}  // namespace lpp::testing
