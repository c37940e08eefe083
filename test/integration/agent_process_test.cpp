// SPDX-License-Identifier: Apache-2.0
#include "harness/agent_process.h"

#include <doctest/doctest.h>

#include <deque>

#include "agent/protocol.h"
#include "base/sync.h"
#include "fakes/eventually.h"
#include "harness/file_text.h"
#include "integration/support/transport_fixture.h"
#include "places/places.h"

using namespace lpp;
using namespace lpp::testing;
using namespace std::chrono_literals;
using agent::Order;
using operation::Kind;
using operation::Operation;
using State = operation::Progress::State;

namespace {

constexpr const char* kBase = "/disk";
constexpr auto kGrace = 15s;  // which its pod has, as we ship it

/// A controller that holds polls until it has orders, and remembers what it is told.
class Controller {
 public:
  explicit Controller(const TransportFixture& tls)
      : server_(tls.options(), [this](Exchange& exchange) { return serve(exchange); }) {}

  int port() const { return server_.port(); }
  TestServer& server() { return server_; }
  void order(Order order) {
    MutexLock lock(mutex_);
    order.number = static_cast<std::int64_t>(orders_.size()) + 1;
    orders_.push_back(std::move(order));
  }
  std::optional<operation::Progress> progress(const Operation& operation) {
    MutexLock lock(mutex_);
    for (auto work = works_.rbegin(); work != works_.rend(); ++work) {
      if (work->operation.id() == operation.id()) return work->progress;
    }
    return std::nullopt;
  }
  bool succeeds(const Operation& operation) {
    return eventually([&] {
      const auto now = progress(operation);
      return now && now->state == State::kSucceeded;
    });
  }
  std::vector<agent::Tell> first_tells() {
    MutexLock lock(mutex_);
    return first_tells_;
  }

 private:
  bool serve(Exchange& exchange) {
    const std::string& target = exchange.request().target;
    const std::string& body = exchange.request().body;
    if (exchange.request().header("authorization") != "Bearer the-token") {
      return exchange.respond(401, "");
    }
    if (target == agent::kHelloTarget) {
      return exchange.respond(200, encode(agent::Welcome{.session = "s", .base_paths = {kBase}}));
    }
    if (target == agent::kTellTarget) {
      auto tell = agent::decode_tell(body);
      if (!tell.ok()) return exchange.respond(400, tell.error().message);
      MutexLock lock(mutex_);
      works_.insert(works_.end(), tell->works.begin(), tell->works.end());
      if (tell->everything) first_tells_.push_back(*std::move(tell));
      return exchange.respond(200, encode(agent::Told{.begin = tell->asks}));
    }
    const auto poll = agent::decode_poll(body);
    if (!poll.ok()) return exchange.respond(400, poll.error().message);
    while (true) {
      agent::Orders orders;
      {
        MutexLock lock(mutex_);
        for (const Order& order : orders_) {
          if (order.number > poll->taken) orders.orders.push_back(order);
        }
      }
      if (!orders.orders.empty()) return exchange.respond(200, encode(orders));
      if (!exchange.pause(2ms)) return false;
    }
  }

  Mutex mutex_;
  std::vector<Order> orders_ LPP_GUARDED_BY(mutex_);
  std::vector<agent::Work> works_ LPP_GUARDED_BY(mutex_);
  std::vector<agent::Tell> first_tells_ LPP_GUARDED_BY(mutex_);
  TestServer server_;  // last: its threads use the others
};

/// A node's disk, and the files that a pod of the agent has.
struct Node {
  Node() {
    std::filesystem::create_directories(disk());
    folder.write("token", "the-token");
  }
  std::string disk() const { return folder.path() + "/node" + kBase; }
  AgentProcessOptions options(const std::string& controller, const TransportFixture& tls) {
    folder.write("ca.crt", tls.ca.pem());
    return {.program = built("src/local-path-provisioner"),
            .controller = controller,
            .ca_file = folder.path() + "/ca.crt",
            .token_file = folder.path() + "/token",
            .root = folder.path() + "/node",
            .log_file = folder.path() + "/log"};
  }
  TempDir folder;
};

Operation operation_of(Kind kind, const std::string& name) {
  return {.kind = kind,
          .volume_name = name,
          .claim = {"web", "data"},
          .owner_uid = "u-1",
          .node = "node-1",
          .base_path = kBase,
          .path = std::string(kBase) + "/" + name,
          .size_bytes = 1 << 20};
}

Order start(const Operation& operation) {
  return {.what = Order::What::kStart, .operation = operation};
}

std::string url_of(const Controller& controller) {
  return "https://127.0.0.1:" + std::to_string(controller.port());
}

}  // namespace

TEST_CASE_FIXTURE(TransportFixture, "an agent process works, survives a kill, and ends when told") {
  Node node;
  Controller controller(*this);
  auto agent = AgentProcess::start(node.options(url_of(controller), *this));
  REQUIRE_MESSAGE(agent.ok(), agent.error().message);
  const auto connected = (*agent)->wait_connected(60s);
  REQUIRE_MESSAGE(connected.ok(), connected.error().message);

  const Operation make = operation_of(Kind::kMake, "pvc-1");
  controller.order(start(make));
  REQUIRE(controller.succeeds(make));
  CHECK(std::filesystem::is_directory(node.disk() + "/pvc-1"));
  CHECK(controller.progress(make)->directory == operation::Directory::kMade);

  // What nobody has forgotten is told by the next one.
  (*agent)->kill();
  const std::size_t before = controller.first_tells().size();  // a session may be lost
  CHECK(controller.first_tells().front().works.empty());
  agent = AgentProcess::start(node.options(url_of(controller), *this));
  REQUIRE((*agent)->wait_connected(60s).ok());
  const auto tells = controller.first_tells();
  REQUIRE(tells.size() > before);
  for (std::size_t i = before; i < tells.size(); ++i) {
    REQUIRE(tells[i].works.size() == 1);
    CHECK(tells[i].works[0].progress.state == State::kSucceeded);
    CHECK(tells[i].bases->at(0).identity.size() == 36);
    CHECK(tells[i].bases->at(0).volumes == 1);
  }

  const auto ended = (*agent)->terminate(kGrace);
  REQUIRE_MESSAGE(ended.ok(), ended.error().message);
  CHECK(*ended == ChildExit{.code = 0});
}

TEST_CASE_FIXTURE(TransportFixture,
                  "an agent goes on from one that does not lead, and from a cut") {
  Node node;
  TestServer standby(options(), [](Exchange& exchange) { return exchange.respond(503, ""); });
  Controller controller(*this);
  const auto agent = AgentProcess::start(node.options(
      "https://127.0.0.1:" + std::to_string(standby.port()) + "," + url_of(controller), *this));
  REQUIRE_MESSAGE(agent.ok(), agent.error().message);
  REQUIRE((*agent)->wait_connected(60s).ok());
  CHECK_FALSE(standby.requests().empty());

  const Operation make = operation_of(Kind::kMake, "pvc-1");
  controller.order(start(make));
  REQUIRE(controller.succeeds(make));
  controller.server().close_connections();
  const Operation remove = operation_of(Kind::kRemove, "pvc-1");
  controller.order(start(remove));
  CHECK(controller.succeeds(remove));
  CHECK_FALSE(std::filesystem::exists(node.disk() + "/pvc-1"));
}

TEST_CASE_FIXTURE(TransportFixture, "an agent does not speak to whom it does not trust") {
  Node node;
  TestServer impostor({.certificate = TestCa().server({"DNS:localhost", "IP:127.0.0.1"})},
                      answer_ok);
  const auto agent = AgentProcess::start(
      node.options("https://127.0.0.1:" + std::to_string(impostor.port()), *this));
  REQUIRE_MESSAGE(agent.ok(), agent.error().message);
  CHECK(eventually([&] {
    return text_of((*agent)->log_file()).find("no session with the controller") !=
           std::string::npos;
  }));
  CHECK(impostor.requests().empty());
  CHECK((*agent)->terminate(kGrace).ok());
}
