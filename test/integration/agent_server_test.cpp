// SPDX-License-Identifier: Apache-2.0
// The HTTPS server for agents, with real sockets.

#include "agent/agent_server.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>

#include "fakes/captured_log.h"
#include "fakes/empty_cluster.h"
#include "fakes/eventually.h"
#include "harness/raw_client.h"
#include "harness/test_ca.h"

namespace lpp::testing {
namespace {

using agent::AgentExecutor;
using agent::AgentIdentity;
using agent::AgentServer;
using agent::Presence;

constexpr const char* kHello = "/agent/v1/hello";
constexpr const char* kTell = "/agent/v1/tell";
constexpr const char* kPoll = "/agent/v1/poll";
/// A request's time that is over soon, and not before a busy machine has done a handshake.
constexpr std::chrono::seconds kShort{4};

/// Tokens are "good-<node>"; others are of nobody, of somebody else, or cannot be asked for.
struct ServerBed {
  explicit ServerBed(AgentServer::Settings settings = {}) {
    std::signal(SIGPIPE, SIG_IGN);
    executor.begin({.wake = [](const operation::Operation&) {}, .is_quiet = [] { return true; }});
    settings.port = 0;
    server = std::move(AgentServer::start(
                           settings, executor,
                           [this](const std::string& token) { return authenticate(token); },
                           [this] { return leads.load(); }, clock))
                 .value();
    const auto first = ca.server({"DNS:localhost"});
    REQUIRE(server->use(first.certificate, first.key).ok());
  }
  ~ServerBed() {
    server->stop();
    executor.end({});
  }
  Result<AgentIdentity> authenticate(const std::string& token) {
    ++asked;
    if (token == "stranger") return Error{.code = ErrorCode::kForbidden, .message = "not an agent"};
    if (token == "unclear") return Error{.code = ErrorCode::kTimeout, .message = "no answer"};
    if (!token.starts_with("good-")) return Error{.code = ErrorCode::kUnauthorized};
    AgentIdentity who{.node = token.substr(5), .pod = "pod"};
    if (ends_at_once) who.good_until = clock.now();
    return who;
  }
  RawClient client() const { return RawClient(server->port()); }
  /// The session that has begun.
  std::string hello(RawClient& client, const std::string& node) const {
    const auto answer = client.ask(kHello, "good-" + node, "{}");
    REQUIRE(answer.status == 200);
    const std::string session = agent::decode_welcome(answer.body).value().session;
    REQUIRE(
        client
            .ask(kTell, "good-" + node, encode(agent::Tell{.session = session, .everything = true}))
            .status == 200);
    return session;
  }
  bool hold_poll(RawClient& client, const std::string& node, const std::string& session) const {
    return client.post(kPoll, "good-" + node, encode(agent::Poll{.session = session}));
  }
  std::uint64_t refused(const std::string& reason) const {
    const auto counts = server->counts();
    const auto it = counts.refused.find(reason);
    return it == counts.refused.end() ? 0 : it->second;
  }
  static operation::Operation make(const std::string& node) {
    operation::Operation operation;
    operation.volume_name = "pvc-" + node;
    operation.claim = {"app", node};
    operation.owner_uid = "uid-" + node;
    operation.base_path = "/opt";
    operation.node = node;
    operation.path = "/opt/" + operation.volume_name;
    return operation;
  }

  SystemClock clock;
  EmptyCluster cluster;
  operation::PathLedger ledger{cluster};
  std::atomic<bool> leads = true;
  std::atomic<int> asked = 0;
  std::atomic<bool> ends_at_once = false;  // what is said of a token
  AgentExecutor executor{
      clock,
      ledger,
      {.instance = "me"},
      {.cmd_timeout = [] { return std::chrono::seconds(120); },
       .base_paths = [](const auto&) { return std::vector<std::string>{"/opt"}; },
       .belief = [](const auto&) { return operation::Belief{}; },
       .is_node_gone = [](const auto&) -> Result<bool> { return false; },
       .has_agent_pod = [](const auto&) -> Result<bool> { return true; },
       .bases_told = [](const auto&, const auto&) {},
       .disks_named = [](const auto&, const auto&) { return std::vector<std::string>(); },
       .not_put_back = [](const auto&, const auto&) {},
       .cluster = [] { return std::string(); },
       .nobodys = [](const auto&, const auto&, bool) { return std::vector<agent::Listed>(); }}};
  TestCa ca;
  std::unique_ptr<AgentServer> server;
};

TEST_CASE("an agent begins a session, and its poll is answered as soon as there is an order") {
  ServerBed bed;
  auto client = bed.client();
  const std::string session = bed.hello(client, "a");
  CHECK(bed.executor.presence("a") == Presence::kConnected);
  REQUIRE(bed.hold_poll(client, "a", session));
  CHECK(eventually([&] { return bed.server->counts().requests["poll"] == 1; }));
  CHECK(bed.executor.start(ServerBed::make("a")).ok());
  const auto answer = client.answer();
  CHECK(answer.status == 200);
  const auto orders = agent::decode_orders(answer.body).value().orders;
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].operation->volume_name == "pvc-a");
  CHECK(bed.asked == 1);  // one token, one connection
}

TEST_CASE("who does not show a good token is refused, and why is said and counted") {
  CapturedLog log;
  ServerBed bed;
  const auto ask = [&](const std::string& token) {
    auto client = bed.client();
    const int status = client.ask(kHello, token, "{}").status;
    CHECK(client.ended());
    return status;
  };
  CHECK(ask("") == 401);
  CHECK(ask("nobody") == 401);
  CHECK(ask("stranger") == 403);
  CHECK(ask("unclear") == 503);
  CHECK(bed.refused("token") == 2);
  CHECK(bed.refused("forbidden") == 1);
  CHECK(bed.refused("unproved") == 1);
  const auto lines = log.take();
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.starts_with("warning ") &&
                 line.find("127.0.0.1 is refused: ") != std::string::npos;
        }) == 1);
  CHECK(bed.executor.agents().empty());
  // A token of another node does not take over a connection.
  auto client = bed.client();
  (void)bed.hello(client, "a");
  CHECK(client.ask(kHello, "good-b", "{}").status == 0);
  CHECK(bed.refused("forbidden") == 2);
}

TEST_CASE("a token of another node on an open connection is told") {
  CapturedLog log;
  ServerBed bed;
  auto client = bed.client();
  (void)bed.hello(client, "a");
  CHECK(client.ask(kHello, "good-b", "{}").status == 0);
  CHECK(bed.refused("forbidden") == 1);
  const auto lines = log.take();
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("a token of node b on the connection of node a") != std::string::npos;
        }) == 1);
}

TEST_CASE("a token is looked at again when what was said of it has ended, however soon") {
  ServerBed bed;
  auto client = bed.client();
  (void)bed.hello(client, "a");
  const int asked = bed.asked;
  (void)bed.hello(client, "a");
  CHECK(bed.asked == asked);
  bed.ends_at_once = true;
  auto other = bed.client();
  (void)bed.hello(other, "a");
  (void)bed.hello(other, "a");
  CHECK(bed.asked == asked + 4);  // each of its requests
}

TEST_CASE("a replica that does not lead says so, and asks nobody who that is") {
  ServerBed bed;
  auto client = bed.client();
  const std::string session = bed.hello(client, "a");
  REQUIRE(bed.hold_poll(client, "a", session));
  const int asked = bed.asked;
  bed.leads = false;
  auto other = bed.client();
  CHECK(other.ask(kHello, "good-b", "{}").status == 503);
  CHECK(bed.asked == asked);
  // Nor does an order leave it.
  (void)bed.executor.start(ServerBed::make("a"));
  CHECK(client.answer().status == 503);
  CHECK(bed.refused("not_leading") == 2);
}

TEST_CASE("a session that has ended is answered 410, and its connection may begin another") {
  ServerBed bed;
  auto first = bed.client();
  const std::string session = bed.hello(first, "a");
  REQUIRE(bed.hold_poll(first, "a", session));
  auto second = bed.client();
  (void)bed.hello(second, "a");
  CHECK(first.answer().status == 410);
  CHECK(first.ask(kPoll, "good-a", encode(agent::Poll{.session = session})).status == 410);
  CHECK(first.ask(kTell, "good-a", encode(agent::Tell{.session = session})).status == 410);
  CHECK(first.ask(kHello, "good-a", "{}").status == 200);
  CHECK(bed.refused("session") == 3);
}

TEST_CASE("what is no message is answered 400, and the connection goes on") {
  ServerBed bed;
  auto client = bed.client();
  for (const char* body : {"", "{", "[]", "{\"session\": 7}"}) {
    CHECK(client.ask(kTell, "good-a", body).status == 400);
  }
  CHECK(client.ask(kHello, "good-a", "{}").status == 200);
  CHECK(client.ask("/agent/v1/other", "good-a", "{}").status == 404);
  CHECK(client.ended());
}

TEST_CASE("a request that is larger than any message is refused before it is read") {
  ServerBed bed;
  const auto status = [&](const std::string& head) {
    auto client = bed.client();
    client.send(head);
    return client.answer().status;
  };
  const std::string token = "Authorization: Bearer good-a\r\n";
  CHECK(status("POST /agent/v1/tell HTTP/1.1\r\n" + token + "Content-Length: 4194305\r\n\r\n") ==
        413);
  CHECK(status("POST /agent/v1/hello HTTP/1.1\r\n" + token + "Content-Length: 65537\r\n\r\n") ==
        413);
  CHECK(status("POST /agent/v1/hello HTTP/1.1\r\nX: " + std::string(9000, 'x')) == 431);
  CHECK(status("GET / HTTP/1.1\r\n\r\n") == 405);
  CHECK(bed.asked == 0);
  // The largest one is taken.
  auto client = bed.client();
  const std::string session = bed.hello(client, "a");
  std::string tell = encode(agent::Tell{.session = session});
  tell.insert(tell.size() - 1,
              ",\"x\":\"" + std::string(agent::kMaxMessage - tell.size() - 7, 'x') + "\"");
  CHECK(client.ask(kTell, "good-a", tell).status == 200);
}

TEST_CASE("who sends nothing, or a byte now and then, is cut off in time") {
  ServerBed bed({.request_time = kShort});
  RawClient silent(bed.server->port(), "", false);
  auto slow_head = bed.client();
  slow_head.send("POST /agent");
  auto slow_body = bed.client();
  slow_body.send(
      "POST /agent/v1/hello HTTP/1.1\r\nAuthorization: Bearer good-a\r\n"
      "Content-Length: 10\r\n\r\n{");
  CHECK(slow_head.ended());
  CHECK(slow_body.ended());
  CHECK(eventually([&] { return bed.server->counts().connections == 0; }));
  CHECK(bed.refused("timeout") == 3);
}

TEST_CASE("a held poll has all the time, and a peer that goes away is noticed at once") {
  ServerBed bed({.request_time = kShort});
  auto client = bed.client();
  const std::string session = bed.hello(client, "a");
  REQUIRE(bed.hold_poll(client, "a", session));
  auto other = bed.client();
  CHECK(other.ended());  // its time is over, and so would be the poll's
  CHECK(bed.executor.presence("a") == Presence::kConnected);
  client.cut();
  CHECK(eventually([&] { return bed.executor.presence("a") == Presence::kExpected; }));
  // The session goes on when it comes back in time.
  auto again = bed.client();
  REQUIRE(bed.hold_poll(again, "a", session));
  CHECK(eventually([&] { return bed.executor.presence("a") == Presence::kConnected; }));
}

TEST_CASE("a node has few connections, and who has proved nothing has few in all") {
  // Their time must not be over before others push them out.
  ServerBed bed({.most_per_node = 2, .most_unproved = 3, .request_time = std::chrono::minutes(1)});
  auto first = bed.client();
  auto second = bed.client();
  auto third = bed.client();
  CHECK(first.ask(kHello, "good-a", "{}").status == 200);
  CHECK(second.ask(kHello, "good-a", "{}").status == 200);
  CHECK(third.ask(kHello, "good-a", "{}").status == 200);
  CHECK(first.ended());
  CHECK(second.ask(kHello, "good-a", "{}").status == 200);
  std::vector<RawClient> strangers;
  for (int i = 0; i < 10; ++i) strangers.push_back(bed.client());
  CHECK(bed.server->counts().connections <= 5);
  // They hold up nobody.
  CHECK(second.ask(kHello, "good-a", "{}").status == 200);
  auto other = bed.client();
  CHECK(other.ask(kHello, "good-b", "{}").status == 200);
  CHECK(bed.refused("connections") >= 8);
}

TEST_CASE("a node that asks too often is told so, and others are served") {
  ServerBed bed({.requests_per_second = 0.001, .burst = 5});
  int status = 200;
  for (int i = 0; i < 6 && status == 200; ++i) {
    auto client = bed.client();
    status = client.ask(kHello, "good-a", "{}").status;
  }
  CHECK(status == 429);
  CHECK(bed.refused("rate") == 1);
  auto other = bed.client();
  CHECK(other.ask(kHello, "good-b", "{}").status == 200);
}

TEST_CASE("another certificate is used from then on, and open connections stay") {
  ServerBed bed;
  auto before = bed.client();
  const std::string session = bed.hello(before, "a");
  CHECK_FALSE(bed.server->use("no certificate", "no key").ok());
  const auto first = bed.ca.server({"DNS:localhost"});
  const auto second = bed.ca.server({"DNS:localhost"});
  CHECK_FALSE(bed.server->use(first.certificate, second.key).ok());
  {
    auto same = bed.client();
    CHECK(same.serial() == before.serial());
  }
  REQUIRE(bed.server->use(second.certificate, second.key).ok());
  CHECK(eventually([&] {
    auto after = bed.client();
    return after.connected() && after.serial() != before.serial();
  }));
  CHECK(before.ask(kTell, "good-a", encode(agent::Tell{.session = session})).status == 200);
}

TEST_CASE("hundreds of held polls take no thread each, and are all answered") {
  ServerBed bed({.most_unproved = 1000});
  constexpr int kAgents = 300;
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  std::vector<RawClient> clients;
  std::vector<std::string> sessions;
  const auto connect = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      clients.push_back(bed.client());
      sessions.push_back(bed.hello(clients.back(), "n" + std::to_string(i)));
      REQUIRE(bed.hold_poll(clients.back(), "n" + std::to_string(i), sessions.back()));
    }
    REQUIRE(eventually(
        [&] { return bed.server->counts().requests["poll"] == static_cast<std::uint64_t>(to); }));
  };
  connect(0, 10);
  const auto threads_before = threads();
  connect(10, kAgents);
  CHECK(threads() == threads_before);
  CHECK(bed.server->counts().connections == kAgents);
  for (int i = 0; i < kAgents; ++i) {
    CHECK(bed.executor.start(ServerBed::make("n" + std::to_string(i))).ok());
  }
  for (auto& client : clients) CHECK(client.answer().status == 200);
}

}  // namespace
}  // namespace lpp::testing
