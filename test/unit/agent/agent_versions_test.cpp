// SPDX-License-Identifier: Apache-2.0
// Controllers of other versions for this agent: one before, from what it has once said, and one to
// come.

#include <doctest/doctest.h>

#include "agent/agent_client.h"
#include "agent_bed.h"
#include "fakes/captured_log.h"
#include "fakes/recorded_session.h"
#include "fakes/skipping_clock.h"
#include "scripted_way.h"

using namespace lpp;
using namespace lpp::agent;
using namespace lpp::testing;
using nlohmann::json;
using operation::Kind;
using State = operation::Progress::State;

namespace {

/// The agent's side as it is now, with a controller that a test scripts. Its node's root is the
/// base folder.
struct TodaysAgent {
  TodaysAgent()
      : agent(kernel, agent_clock, {.root = base.path()}),
        client(agent, clock,
               {.find = [this](const std::stop_token&) -> Result<std::vector<Way>> {
                  return std::vector{way_to("controller", controller)};
                },
                .program = "later"}) {}
  void run() {
    agent.start();
    thread = std::jthread([this](const std::stop_token& stop) { client.run(stop); });
  }
  /// All that it has said of this kind.
  std::vector<json> said(std::string_view target) const {
    std::vector<json> all;
    for (const auto& request : controller.requests()) {
      if (request.target == target) all.push_back(json::parse(request.body));
    }
    return all;
  }
  bool has_told(const std::string& kind, const std::string& state) const {
    for (const json& tell : said(kTellTarget)) {
      for (const json& work : tell.value("works", json::array())) {
        if (work.at("operation").value("kind", "make") == kind &&
            work.at("progress").at("state") == state) {
          return true;
        }
      }
    }
    return false;
  }

  BaseFolder base;
  node::Kernel kernel;
  FakeClock agent_clock;
  SkippingClock clock;
  FakeTransport controller;
  Agent agent;
  AgentClient client;
  std::jthread thread;
};

constexpr const char* kBasePath = "opt/local-path-provisioner";

/// What each poll of the recorded session waits for: the end of the work before.
bool is_due(const TodaysAgent& bed, const json& answer) {
  const json& order = answer.at("orders").at(0);
  if (order.at("do") == "start" && order.at("operation").at("action") == "create") return true;
  const bool of_make = order.at("do") == "start" || order.at("id").at("kind") == "make";
  return eventually([&] { return bed.has_told(of_make ? "make" : "remove", "succeeded"); });
}

/// A controller of another version has this agent make and remove.
void make_and_remove(const char* recording) {
  const auto exchanges = recorded_session(recording);
  REQUIRE(exchanges.size() > 8);
  // The disk that the volume of the recording is on, as its version has named it.
  std::string path;
  std::string disk;
  std::string leave;
  std::atomic<bool> asked = false;
  TodaysAgent bed;  // after what its thread uses
  for (const auto& exchange : exchanges) {
    const json told = exchange.asked();
    if (told.contains("asks")) leave = exchange.answer;
    if (!told.contains("works")) continue;
    const json& work = told.at("works").at(0);
    path = work.at("operation").at("path").get<std::string>().substr(1);
    if (work.at("progress").contains("disk")) disk = work.at("progress").at("disk");
  }
  REQUIRE(disk.size() == 36);
  REQUIRE_FALSE(leave.empty());
  const std::string records = std::string(kBasePath) + "/" + node::kRecordFolder;
  bed.base.write(records + "/identity.json", json{{"disk", disk}, {"version", 1}}.dump());
  std::filesystem::permissions(bed.base.at(records), std::filesystem::perms(0700));

  bed.controller.on("POST", std::string(kHelloTarget)).reply(200, exchanges[0].answer);
  bed.controller.on("POST", std::string(kTellTarget)).always([&](const k8s::Request& request) {
    if (!json::parse(request.body).contains("asks"))
      return k8s::Response{.status = 200, .body = "{}"};
    // Nothing has happened before the leave.
    asked = true;
    CHECK(bed.base.has(path + "/file"));
    return k8s::Response{.status = 200, .body = leave};
  });
  for (const auto& exchange : exchanges) {
    if (exchange.target != kPollTarget) continue;
    bed.controller.on("POST", std::string(kPollTarget))
        .run([&bed, &path, answer = exchange.answer](const auto&, const auto*,
                                                     const auto&) -> Result<k8s::Response> {
          CHECK(is_due(bed, json::parse(answer)));
          const bool removes = answer.find("\"kind\":\"remove\"") != std::string::npos;
          if (removes && bed.base.has(path)) bed.base.write(path + "/file");
          return k8s::Response{.status = 200, .body = answer};
        });
  }
  bed.controller.on("POST", std::string(kPollTarget)).hang();
  bed.run();
  CHECK(eventually([&] { return bed.has_told("remove", "succeeded"); }));
  CHECK(asked);
  CHECK_FALSE(bed.base.has(path));
  CHECK(eventually([&] {
    const auto polls = bed.said(kPollTarget);
    return !polls.empty() && polls.back().at("taken") == 4;
  }));
  CHECK(bed.controller.unexpected() == 0);
  CHECK(bed.said(kHelloTarget).size() == 1);

  // The old one finds all that it reads, of the same kind, in what it is told now.
  for (const auto& exchange : exchanges) {
    const auto now = bed.said(exchange.target);
    CAPTURE(exchange.request);
    const json request = exchange.asked();
    for (const auto& field : request.items()) {
      const auto& [name, then] = field;
      if (name == "inventory") continue;  // of a later look
      CAPTURE(field.key());
      CHECK(std::any_of(now.begin(), now.end(), [&, member = name, value = then](const json& one) {
        return one.contains(member) && says_all(one.at(member), value, false);
      }));
    }
  }
  for (const json& tell : bed.said(kTellTarget)) CHECK_FALSE(tell.contains("sweeps"));
}

}  // namespace

TEST_CASE("a controller of before inventories has this agent make and remove") {
  make_and_remove("before-inventory.jsonl");
}

TEST_CASE("a controller of before serials has this agent make and remove") {
  make_and_remove("before-serials.jsonl");
}

TEST_CASE("what a controller to come orders is refused by its name, and nothing is removed") {
  TodaysAgent bed;
  CapturedLog log;
  const std::string path = std::string(kBasePath) + "/pvc-1";
  bed.base.write(path + "/file");
  const json operation{{"action", "delete"}, {"kind", "remove"},
                       {"volume", "pvc-1"},  {"ownerUid", "u-1"},
                       {"node", "node-1"},   {"basePath", "/" + std::string(kBasePath)},
                       {"path", "/" + path}, {"attempt", 1}};
  const auto with = [](json object, const char* name, const json& value) {
    object[name] = value;
    return object;
  };
  const json order{{"number", 1}, {"do", "start"}, {"operation", operation}};
  json later = order;
  later["do"] = "bases";
  later["basePaths"] = {"/" + std::string(kBasePath)};
  const json id{{"volume", "pvc-1"}, {"ownerUid", "u-1"}, {"kind", "archive"}};
  const std::vector<std::pair<json, std::string>> strange = {
      {with(order, "do", "wipe"), "do is not known"},
      {with(order, "operation", with(operation, "action", "archive")), "action must be"},
      {with(order, "operation", with(operation, "kind", "archive")), "kind must be"},
      {{{"number", 1}, {"do", "forget"}, {"id", id}}, "kind is not known"},
      {{{"number", 1}, {"do", "cancel"}, {"id", id}}, "kind is not known"},
      {{{"do", "start"}, {"operation", operation}}, "number is missing"}};
  const json welcome{{"session", "s"},
                     {"protocol", kProtocol},
                     {"basePaths", later["basePaths"]},
                     {"sweep", {"/" + path}},
                     {"speaks", {"smoke"}}};
  bed.controller.on("POST", std::string(kHelloTarget))
      .reply(200, with(welcome, "protocol", kProtocol + 1).dump());
  bed.controller.on("POST", std::string(kHelloTarget)).always([&](const auto&) {
    return k8s::Response{.status = 200, .body = welcome.dump()};
  });
  bed.controller.on("POST", std::string(kTellTarget)).always([&](const auto&) {
    // Leave for what was not asked, and for a kind that is not there.
    const json told{{"sweep", {"/" + path}}, {"remove", {operation}}};
    return k8s::Response{.status = 200, .body = told.dump()};
  });
  for (const auto& [one, why] : strange) {
    bed.controller.on("POST", std::string(kPollTarget)).reply(200, json{{"orders", {one}}}.dump());
  }
  // Members beside the known ones change nothing.
  bed.controller.on("POST", std::string(kPollTarget))
      .reply(200, json{{"orders", {later}}, {"more", order}}.dump())
      .hang();
  bed.run();
  CHECK(eventually([&] {
    const auto polls = bed.said(kPollTarget);
    return !polls.empty() && polls.back().at("taken") == 1;
  }));
  bed.thread = {};
  CHECK(bed.said(kHelloTarget).size() == strange.size() + 2);
  CHECK(bed.base.has(path + "/file"));
  for (const json& tell : bed.said(kTellTarget)) {
    CHECK_FALSE(tell.contains("asks"));
    CHECK_FALSE(tell.contains("works"));
  }
  std::string lines;
  for (const auto& line : log.take()) lines += line + "\n";
  CHECK(lines.find("speaks version 2 of the protocol") != std::string::npos);
  for (const auto& [one, why] : strange) {
    CAPTURE(lines);
    CHECK(lines.find(why) != std::string::npos);
  }
}
