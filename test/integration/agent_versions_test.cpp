// SPDX-License-Identifier: Apache-2.0
// Agents of other versions at this controller: one before, from what it has once said, and one to
// come.

#include <doctest/doctest.h>

#include <csignal>

#include "agent/agent_server.h"
#include "fakes/empty_cluster.h"
#include "fakes/eventually.h"
#include "fakes/recorded_session.h"
#include "harness/raw_client.h"
#include "harness/test_ca.h"
#include "operation/record.h"

namespace lpp::testing {
namespace {

using agent::AgentExecutor;
using agent::AgentIdentity;
using agent::AgentServer;
using nlohmann::json;
using operation::Kind;
using operation::Operation;
using State = operation::Progress::State;

constexpr const char* kToken = "of-the-agent-of-node-1";

/// The controller's side as it is now, for an agent on node-1.
struct TodaysController {
  TodaysController() {
    std::signal(SIGPIPE, SIG_IGN);
    executor.begin({.wake = [](const Operation&) {}, .is_quiet = [] { return true; }});
    server = std::move(AgentServer::start(
                           {.port = 0}, executor,
                           [](const std::string&) -> Result<AgentIdentity> {
                             return AgentIdentity{.node = "node-1", .pod = "agent"};
                           },
                           [] { return true; }, clock))
                 .value();
    const auto certificate = ca.server({"DNS:localhost"});
    REQUIRE(server->use(certificate.certificate, certificate.key).ok());
  }
  ~TodaysController() {
    server->stop();
    executor.end({});
  }
  /// With this session where the recorded one stands.
  json ask(RawClient& client, const RecordedExchange& exchange, const std::string& theirs) {
    const auto answer =
        client.ask(exchange.target, kToken, replaced(exchange.request, theirs, session));
    CAPTURE(exchange.request);
    CAPTURE(answer.body);
    REQUIRE(answer.status == 200);
    return json::parse(answer.body);
  }
  std::string hello(RawClient& client, const std::string& text) {
    const auto answer = client.ask(std::string(agent::kHelloTarget), kToken, text);
    REQUIRE(answer.status == 200);
    welcome = json::parse(answer.body);
    return session = welcome.at("session");
  }
  json tell(RawClient& client, json what) {
    what["session"] = session;
    const auto answer = client.ask(std::string(agent::kTellTarget), kToken, what.dump());
    CAPTURE(answer.body);
    REQUIRE(answer.status == 200);
    return json::parse(answer.body);
  }
  std::optional<operation::Progress> progress(const Operation& operation) {
    for (const auto& one : executor.recorded(operation.volume_name)) {
      if (one.operation->id() == operation.id()) return one.progress;
    }
    return std::nullopt;
  }
  /// What a controller must have ordered for the answer.
  void order_as(const json& answer) {
    if (!answer.contains("orders")) return;
    for (const json& order : answer.at("orders")) {
      if (order.at("do") == "start") {
        last = operation::decode_operation(order.at("operation").dump()).value();
        REQUIRE(executor.start(last).ok());
      } else if (order.at("do") == "forget") {
        CHECK(executor.forget(last.id(), operation::Executor::When::kNow).ok());
      }
    }
  }

  SystemClock clock;
  EmptyCluster cluster;
  operation::PathLedger ledger{cluster};
  int asked_whose = 0;
  AgentExecutor executor{
      clock,
      ledger,
      {.program = "later", .instance = "me"},
      {.cmd_timeout = [] { return std::chrono::seconds(120); },
       .base_paths =
           [](const auto&) { return std::vector<std::string>{"/opt/local-path-provisioner"}; },
       .belief = [](const auto&) { return operation::Belief{}; },
       .is_node_gone = [](const auto&) -> Result<bool> { return false; },
       .has_agent_pod = [](const auto&) -> Result<bool> { return true; },
       .bases_told = [](const auto&, const auto&) {},
       .disks_named = [](const auto&, const auto&) { return std::vector<std::string>(); },
       .not_put_back = [](const auto&, const auto&) {},
       .cluster = [] { return std::string("cluster-1"); },
       .nobodys =
           [this](const auto&, auto directories, bool) {
             ++asked_whose;
             return directories;
           }}};
  TestCa ca;
  std::unique_ptr<AgentServer> server;
  std::string session;
  json welcome{};  // the last one
  Operation last;
};

/// An agent of another version makes and removes for this controller.
void make_and_remove(TodaysController& controller, RawClient& client, const char* recording) {
  const auto exchanges = recorded_session(recording);
  REQUIRE(exchanges.size() > 8);
  const std::string theirs = exchanges[0].answered().at("session");
  controller.hello(client, exchanges[0].request);
  int removals = 0;
  for (std::size_t i = 1; i < exchanges.size(); ++i) {
    CAPTURE(i);
    const auto& exchange = exchanges[i];
    const json then = exchange.answered();
    controller.order_as(then);
    // Whatever is new stands beside what the old one reads.
    CHECK(says_all(controller.ask(client, exchange, theirs), then));
    const json told = exchange.asked();
    if (!told.contains("works")) continue;
    const auto state = told.at("works").at(0).at("progress").at("state");
    const auto now = controller.progress(controller.last);
    REQUIRE(now);
    if (state == "running") CHECK(now->state == State::kRunning);
    if (state == "succeeded") CHECK(now->state == State::kSucceeded);
    const bool removed = controller.last.kind == Kind::kRemove && state == "succeeded";
    if (removed) CHECK(now->directory == operation::Directory::kRemoved);
    removals += removed ? 1 : 0;
  }
  CHECK(removals == 1);
  CHECK(controller.executor.sees("node-1", "/opt/local-path-provisioner"));
  CHECK(controller.executor.agents().at(0).program == "0.1.0");
  CHECK_FALSE(controller.progress(controller.last));
  CHECK(controller.executor.left_out().empty());
}

TEST_CASE("an agent of before inventories makes and removes for this controller") {
  TodaysController controller;
  RawClient client(controller.server->port());
  make_and_remove(controller, client, "before-inventory.jsonl");
  // It lists nothing, and is taken at its word: nothing is known to be nobody's.
  CHECK(controller.executor.orphans().empty());
  CHECK(controller.asked_whose == 0);

  RecordedExchange uses{.target = std::string(agent::kTellTarget),
                        .request = repository_text("test/data/agents/before-inventory-uses.json")};
  (void)controller.ask(client, uses, uses.asked().at("session"));
  const auto usage = controller.executor.usage();
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].path == "/opt/local-path-provisioner/pvc-1");
  CHECK(usage[0].usage ==
        operation::Usage{.bytes = 4096, .limit_bytes = 1 << 20, .inodes = 3, .limit_inodes = 64});
}

TEST_CASE("an agent of before serials makes and removes for this controller") {
  TodaysController controller;
  RawClient client(controller.server->port());
  make_and_remove(controller, client, "before-serials.jsonl");
  CHECK(controller.asked_whose > 0);  // it lists directories
}

TEST_CASE("an agent of a protocol that is too old is refused by its number") {
  TodaysController controller;
  RawClient client(controller.server->port());
  const auto answer =
      client.ask(std::string(agent::kHelloTarget), kToken, R"({"protocol":0,"program":"0"})");
  CHECK(answer.status == 400);
  CHECK(
      answer.body.find("the agent speaks version 0 of the protocol, this controller 1 at least") !=
      std::string::npos);
  CHECK(controller.executor.agents().empty());
  // One that says none is of the first.
  controller.hello(client, "{}");
  CHECK(controller.welcome.at("protocol") == 1);
}

TEST_CASE("what an agent to come says is heard as far as it is known, and lets nothing begin") {
  TodaysController controller;
  RawClient client(controller.server->port());
  const auto exchanges = recorded_session("before-inventory.jsonl");
  controller.hello(client, R"({"protocol":2,"program":"9","speaks":["smoke"],"cluster":{}})");
  CHECK(controller.welcome.at("protocol") == agent::kProtocol);  // what both know is spoken
  const json base{{"path", "/opt/local-path-provisioner"}, {"mood", "good"}};
  CHECK(controller.tell(client, {{"everything", true}, {"bases", {base}}, {"more", 1}}) ==
        json::object());
  CHECK(controller.executor.sees("node-1", "/opt/local-path-provisioner"));

  // A volume of this controller's own, and its make.
  for (const auto& exchange : exchanges) {
    const json then = exchange.answered();
    if (then.contains("orders")) {
      controller.order_as({{"orders", {then.at("orders").at(0)}}});
      break;
    }
  }
  const Operation make = controller.last;
  const json operation = json::parse(operation::encode_operation(make).value());
  const json id{{"volume", make.volume_name}, {"ownerUid", make.owner_uid}, {"attempt", 1}};
  const auto with = [](json object, const char* name, const json& value) {
    object[name] = value;
    return object;
  };
  const auto work = [](const json& of, const json& progress) {
    return json{{"operation", of}, {"progress", progress}};
  };
  const json strange_works{
      work(operation, {{"state", "melted"}, {"directory", "removed"}}),
      work(operation, {{"state", "running"}, {"directory", "shredded"}}),
      work(with(operation, "action", "archive"), {{"state", "succeeded"}}),
      work(with(with(operation, "action", "delete"), "kind", "archive"), {{"state", "succeeded"}})};
  const json strange_ids{with(id, "kind", "archive"), with(id, "kind", "removeAll"), id};
  CHECK(controller.tell(client, {{"works", strange_works},
                                 {"asks", strange_ids},
                                 {"ended", strange_ids},
                                 {"nothingLeft", {with(operation, "action", "archive")}}}) ==
        json::object());
  const auto left_out = controller.executor.left_out();
  REQUIRE(left_out.size() == 1);
  CHECK(left_out.begin()->second == 11);
  REQUIRE(controller.progress(make));
  CHECK(controller.progress(make)->state == State::kWaiting);

  // Another kind of message is refused by its name, and the session goes on.
  RawClient other(controller.server->port());
  const auto refused = other.ask("/agent/v1/smoke", kToken, "{}");
  CHECK(refused.status == 404);
  CHECK(controller.tell(client, json::object()) == json::object());
}

}  // namespace
}  // namespace lpp::testing
