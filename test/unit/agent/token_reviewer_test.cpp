// SPDX-License-Identifier: Apache-2.0
#include "agent/token_reviewer.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "agent/protocol.h"
#include "fakes/fake_transport.h"
#include "fakes/skipping_clock.h"
#include "k8s/base64.h"

namespace lpp::agent {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::FakeTransport;
using testing::SkippingClock;

constexpr const char* kReviews = "/apis/authentication.k8s.io/v1/tokenreviews";

struct ReviewerFixture {
  SkippingClock clock;
  FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  TokenReviewer reviewer{client, clock, {"storage", "agent"}};

  static json good() {
    return {{"status",
             {{"authenticated", true},
              {"audiences", {std::string(kAudience)}},
              {"user",
               {{"username", "system:serviceaccount:storage:agent"},
                {"extra",
                 {{"authentication.kubernetes.io/node-name", {"node-1"}},
                  {"authentication.kubernetes.io/pod-name", {"agent-x"}},
                  {"authentication.kubernetes.io/pod-uid", {"uid-x"}}}}}}}}};
  }
  static json without_node() {
    json review = good();
    review["status"]["user"]["extra"].erase("authentication.kubernetes.io/node-name");
    return review;
  }
  Result<AgentIdentity> answered(const json& review) {
    transport.on("POST", kReviews).reply(201, review.dump());
    return reviewer.check("token");
  }
  std::size_t reviews() const { return transport.count("POST", kReviews); }
};

std::string refusal(const Result<AgentIdentity>& answer, ErrorCode code) {
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().is(code));
  return answer.error().message;
}

TEST_CASE_FIXTURE(ReviewerFixture,
                  "an agent is the account of the agents, on the node of its token") {
  const auto identity = answered(good()).value();
  CHECK(identity.node == "node-1");
  CHECK(identity.pod == "agent-x");
  const json sent = json::parse(transport.requests().front().body);
  CHECK(sent["spec"]["token"] == "token");
  CHECK(sent["spec"]["audiences"] == json::array({std::string(kAudience)}));
}

TEST_CASE_FIXTURE(ReviewerFixture, "everybody else is refused, with the reason") {
  json review = good();
  auto& status = review["status"];
  ErrorCode code = ErrorCode::kUnauthorized;
  const char* why = "";
  SUBCASE("a token that nobody knows") {
    status = {{"authenticated", false}, {"error", "token expired"}};
    why = "token expired";
  }
  SUBCASE("an answer without a status") {
    review = json::object();
    why = "does not know";
  }
  SUBCASE("authenticated is no boolean") {
    status["authenticated"] = "true";
    why = "does not know";
  }
  SUBCASE("a token of the pod for the API server") {
    status["audiences"] = {"https://kubernetes.default.svc"};
    why = "audience";
  }
  SUBCASE("audiences are missing: an API server that does not know of them") {
    status.erase("audiences");
    why = "audience";
  }
  SUBCASE("another account") {
    status["user"]["username"] = "system:serviceaccount:web:agent";
    code = ErrorCode::kForbidden;
    why = "is no agent";
  }
  SUBCASE("no user") {
    status.erase("user");
    code = ErrorCode::kForbidden;
    why = "is no agent";
  }
  SUBCASE("a token that is bound to no pod") {
    status["user"].erase("extra");
    code = ErrorCode::kForbidden;
    why = "not bound to a pod";
  }
  SUBCASE("an extra of another shape") {
    status["user"]["extra"] = {{"authentication.kubernetes.io/pod-name", "x"}};
    code = ErrorCode::kForbidden;
    why = "not bound to a pod";
  }
  const std::string message = refusal(answered(review), code);
  CAPTURE(message);
  CHECK(message.find(why) != std::string::npos);
}

TEST_CASE_FIXTURE(ReviewerFixture, "what cannot be a token is refused without a question") {
  refusal(reviewer.check(""), ErrorCode::kUnauthorized);
  refusal(reviewer.check(std::string(20'000, 'x')), ErrorCode::kUnauthorized);
  CHECK(reviews() == 0);
}

TEST_CASE_FIXTURE(ReviewerFixture, "where the token does not say its node the pod does") {
  const char* pod = "";
  bool is_good = false;
  SUBCASE("it is on a node") {
    pod = R"({"metadata":{"uid":"uid-x"},"spec":{"nodeName":"node-2"}})";
    is_good = true;
  }
  SUBCASE("another pod of that name") {
    pod = R"({"metadata":{"uid":"uid-y"},"spec":{"nodeName":"node-2"}})";
  }
  SUBCASE("on no node") { pod = R"({"metadata":{"uid":"uid-x"},"spec":{}})"; }
  SUBCASE("nonsense") { pod = R"({"metadata":7})"; }
  transport.on("GET", "/namespaces/storage/pods/agent-x").reply(200, pod);
  const auto answer = answered(without_node());
  if (is_good) {
    CHECK(answer.value().node == "node-2");
  } else {
    refusal(answer, ErrorCode::kForbidden);
  }
}

TEST_CASE_FIXTURE(ReviewerFixture,
                  "a pod that is gone is no agent, and one that cannot be asked for may be") {
  SUBCASE("gone") {
    transport.on("GET", "/pods/agent-x").reply(404);
    refusal(answered(without_node()), ErrorCode::kForbidden);
  }
  SUBCASE("forbidden to us") {
    transport.on("GET", "/pods/agent-x").reply(403);
    refusal(answered(without_node()), ErrorCode::kUnavailable);
  }
}

TEST_CASE_FIXTURE(ReviewerFixture,
                  "what is wrong with our own call is not held against the agent") {
  auto& script = transport.on("POST", kReviews);
  SUBCASE("401") { script.reply(401); }
  SUBCASE("403") { script.reply(403); }
  SUBCASE("404") { script.reply(404); }
  SUBCASE("409") { script.reply(409); }
  SUBCASE("429") { script.reply(429); }
  SUBCASE("500") { script.reply(500); }
  SUBCASE("cut") { script.fail(ErrorCode::kUnavailable); }
  SUBCASE("timeout") { script.fail(ErrorCode::kTimeout); }
  SUBCASE("stop") { script.fail(ErrorCode::kCancelled); }
  const auto answer = reviewer.check("token");
  REQUIRE_FALSE(answer.ok());
  CHECK_FALSE(answer.error().is(ErrorCode::kUnauthorized));
  CHECK_FALSE(answer.error().is(ErrorCode::kForbidden));
  // And it is not remembered.
  CHECK(answered(good()).ok());
}

TEST_CASE_FIXTURE(ReviewerFixture,
                  "an answer is remembered for two minutes, a refusal for ten seconds") {
  const TimePoint asked = clock.now();
  CHECK(answered(good())->good_until == asked + 120s);
  clock.advance(119s);
  CHECK(reviewer.check("token")->good_until == asked + 120s);  // no longer than at first
  CHECK(reviews() == 1);
  clock.advance(2s);
  refusal(answered({{"status", {{"authenticated", false}}}}), ErrorCode::kUnauthorized);
  CHECK(reviews() == 2);
  refusal(reviewer.check("token"), ErrorCode::kUnauthorized);
  CHECK(reviews() == 2);
  clock.advance(11s);
  CHECK(answered(good()).ok());
  CHECK(reviews() == 3);
}

TEST_CASE_FIXTURE(ReviewerFixture, "no answer outlives the token") {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(clock.wall_now().time_since_epoch());
  std::string payload = k8s::base64_encode(json{{"exp", now.count() + 30}}.dump());
  while (payload.ends_with('=')) payload.pop_back();
  const std::string token = "head." + payload + ".signature";
  transport.on("POST", kReviews).reply(201, good().dump()).reply(201, good().dump());
  CHECK(reviewer.check(token)->good_until <= clock.now() + 30s);
  clock.advance(29s);
  CHECK(reviewer.check(token).ok());
  CHECK(reviews() == 1);
  clock.advance(2s);
  CHECK(reviewer.check(token).ok());
  CHECK(reviews() == 2);
}

TEST_CASE_FIXTURE(ReviewerFixture,
                  "a flood of bad tokens does not push out what is known of agents") {
  CHECK(answered(good()).ok());
  transport.on("POST", kReviews).always([](const auto&) {
    return k8s::Response{.status = 201,
                         .body = R"({"status":{"authenticated":false}})",
                         .content_type = "application/json"};
  });
  for (std::size_t i = 0; i <= TokenReviewer::kRemembered; ++i) {
    refusal(reviewer.check("t" + std::to_string(i)), ErrorCode::kUnauthorized);
  }
  const std::size_t before = reviews();
  CHECK(reviewer.check("token").ok());
  refusal(reviewer.check("t0"), ErrorCode::kUnauthorized);
  CHECK(reviews() == before);
  refusal(reviewer.check("t2000"), ErrorCode::kUnauthorized);  // had no place
  CHECK(reviews() == before + 1);
}

}  // namespace
}  // namespace lpp::agent
