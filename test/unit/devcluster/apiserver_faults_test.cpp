// SPDX-License-Identifier: Apache-2.0
#include "fakes/eventually.h"
#include "unit/devcluster/apiserver_test_support.h"

namespace lpp::devcluster {
namespace {

using test::at;
using test::Json;
using test::json_of;
using namespace std::chrono_literals;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kJson = "application/json";

httplib::Result create(httplib::SSLClient& client, const std::string& name) {
  return client.Post(kMaps.c_str(), test::config_map(name).dump(), kJson);
}

/// A watch that is there before the rule's event happens.
struct WatchCase {
  test::Server server;
  test::WatchStream stream{server, kMaps + "?watch=true&resourceVersion=" +
                                       std::to_string(server.registry.resource_version())};
  void add(const std::string& name) {
    REQUIRE(server.api.requests().wait_for(requests("watch *"), 1, 60s));
    REQUIRE(server.registry.create("configmaps", "default", test::config_map(name)).ok());
  }
};

}  // namespace

TEST_CASE("a rule chooses by verb, resource, subresource, name and user agent") {
  const Operation operation{.verb = "patch",
                            .resource = "persistentvolumeclaims",
                            .subresource = "status",
                            .name = "claim-1",
                            .user_agent = "lpp/1"};
  CHECK(on("patch persistentvolumeclaims/status").matches(operation));
  CHECK(on("* */*").matches(operation));
  CHECK(on("patch */status").matches(operation));
  CHECK(on("* */*").name_prefix("claim-").user_agent_prefix("lpp/").matches(operation));
  CHECK(!on("patch persistentvolumeclaims").matches(operation));
  CHECK(!on("update */*").matches(operation));
  CHECK(!on("* */*").name_prefix("x").matches(operation));
  CHECK(!on("* */*").user_agent_prefix("kubectl").matches(operation));
}

TEST_CASE("nth, every, times and probability choose among the matches") {
  const Operation operation{.verb = "get", .resource = "pods"};
  const auto hits = [&](const FaultRule& rule, int calls) {
    FaultRules rules;
    rules.add(rule);
    std::string out;
    for (int i = 0; i < calls; ++i) out += rules.decide(operation).empty() ? '.' : 'x';
    return out;
  };
  CHECK(hits(on("get pods").nth(2).hang(), 5) == ".x...");
  CHECK(hits(on("get pods").every(2).hang(), 5) == ".x.x.");
  CHECK(hits(on("get pods").times(2).hang(), 5) == "xx...");
  CHECK(hits(on("get pods").every(2).times(1).hang(), 5) == ".x...");
  CHECK(hits(on("list pods").hang(), 2) == "..");
  const auto random = hits(on("get pods").with_probability(0.5, 7).hang(), 64);
  CHECK(random == hits(on("get pods").with_probability(0.5, 7).hang(), 64));
  CHECK(random.find('x') != std::string::npos);
  CHECK(random.find('.') != std::string::npos);
  CHECK(hits(on("get pods").with_probability(0.0, 7).hang(), 20).find('x') == std::string::npos);
}

TEST_CASE("a reply rule answers in place of the server and stores nothing") {
  test::Server server;
  auto client = server.client();
  const auto rule = server.api.faults().add(
      on("create configmaps").nth(1).reply(429, "", std::chrono::seconds(3)));
  const auto refused = create(*client, "a");
  REQUIRE(refused);
  CHECK(refused->status == 429);
  CHECK(refused->get_header_value("Retry-After") == "3");
  CHECK(at(json_of(refused), "reason") == "TooManyRequests");
  CHECK(at(json_of(refused), "details.retryAfterSeconds") == 3);
  CHECK(server.registry.all("configmaps").empty());
  CHECK(create(*client, "a")->status == 201);
  CHECK(server.api.faults().hits(rule) == 1);
  server.api.faults().add(on("get configmaps").reply(409, "AlreadyExists"));
  CHECK(at(json_of(client->Get((kMaps + "/a").c_str())), "reason") == "AlreadyExists");
  server.api.faults().clear();
  CHECK(client->Get((kMaps + "/a").c_str())->status == 200);
}

TEST_CASE("a connection cut before handling leaves nothing, after handling the write") {
  test::Server server;
  auto client = server.client();
  const auto rule = server.api.faults().add(on("create configmaps").cut_before());
  CHECK(!create(*client, "a"));
  CHECK(server.registry.all("configmaps").empty());
  CHECK(server.api.requests().all().back().code == 0);
  server.api.faults().remove(rule);
  server.api.faults().add(on("create configmaps").times(1).cut_after());
  CHECK(!create(*client, "b"));
  CHECK(server.registry.find("configmaps", "default", "b") != nullptr);
  CHECK(create(*client, "b")->status == 409);
}

TEST_CASE("delays delay, hangs hang until the client gives up") {
  test::Server server;
  auto client = server.client();
  server.api.faults().add(on("list configmaps").times(1).delay(30ms));
  const auto start = std::chrono::steady_clock::now();
  CHECK(client->Get(kMaps.c_str())->status == 200);
  CHECK(std::chrono::steady_clock::now() - start >= 30ms);
  server.api.faults().add(on("list nodes").hang());
  client->set_read_timeout(0, 50'000);
  CHECK(!client->Get("/api/v1/nodes"));
  CHECK(server.client()->Get(kMaps.c_str())->status == 200);
}

TEST_CASE("callbacks run before and after handling") {
  test::Server server;
  std::mutex mutex;  // the callbacks run on the connection's thread
  std::vector<bool> there;
  const auto look = [&] {
    const std::lock_guard lock(mutex);
    there.push_back(server.registry.find("configmaps", "default", "a") != nullptr);
  };
  server.api.faults().add(on("create configmaps").call_before(look));
  server.api.faults().add(on("create configmaps").call_after(look));
  CHECK(create(*server.client(), "a")->status == 201);
  const std::lock_guard lock(mutex);
  CHECK(there == std::vector<bool>{false, true});
}

TEST_CASE("a lost event changes the store and is never delivered") {
  WatchCase test;
  test.server.api.faults().add(on("watch configmaps").name_prefix("lost").lose_event());
  test.add("lost-1");
  test.add("seen");
  CHECK(at(test.stream.frame(0), "object.metadata.name") == "seen");
}

TEST_CASE("a duplicated event comes twice") {
  WatchCase test;
  test.server.api.faults().add(on("watch configmaps").duplicate_event());
  test.add("a");
  CHECK(!test.stream.frame(0).is_null());
  CHECK(test.stream.frame(0) == test.stream.frame(1));
}

TEST_CASE("a truncated frame breaks off in the middle") {
  WatchCase test;
  test.server.api.faults().add(on("watch configmaps").nth(2).truncate_event(25));
  test.add("a");
  test.add("b");
  CHECK(test.stream.wait_ended());
  CHECK(!test.stream.cleanly_ended());
  CHECK(test.stream.count() == 1);
  CHECK(test.stream.rest().size() <= 25);
}

TEST_CASE("an error frame takes the place of an event") {
  WatchCase test;
  test.server.api.faults().add(on("watch configmaps").error_event(500));
  test.add("a");
  CHECK(test.stream.frame(0)["type"] == "ERROR");
  CHECK(at(test.stream.frame(0), "object.code") == 500);
  CHECK(test.stream.wait_ended());
}

TEST_CASE("a stalled watch stays open and silent") {
  WatchCase test;
  const auto rule = test.server.api.faults().add(on("watch configmaps").nth(2).stall_event());
  test.add("a");
  test.add("b");
  test.add("c");
  CHECK(!test.stream.frame(0).is_null());
  CHECK(lpp::testing::eventually([&] { return test.server.api.faults().hits(rule) == 1; }));
  CHECK(test.stream.count() == 1);
  CHECK(test.server.api.connections() == 1);
}

TEST_CASE("faults after handling reach logs and watches too") {
  test::Server server;
  REQUIRE(server.registry.create("pods", "default", test::pod("a")).ok());
  std::atomic<int> called = 0;
  server.api.faults().add(on("get pods/log").call_after([&] { ++called; }));
  server.api.faults().add(on("get pods/log").cut_after());
  CHECK(!server.client()->Get("/api/v1/namespaces/default/pods/a/log"));
  CHECK(called == 1);
  server.api.faults().add(on("watch pods").cut_after());
  test::WatchStream stream(server, "/api/v1/pods?watch=true");
  CHECK(stream.wait_ended());
  CHECK(!stream.cleanly_ended());
}

TEST_CASE("an expire rule is an ERROR frame for a watch and a 410 for a list") {
  test::Server server;
  server.api.faults().add(on("* configmaps").expire());
  test::WatchStream stream(server, kMaps + "?watch=true");
  CHECK(at(stream.frame(0), "object.code") == 410);
  CHECK(server.client()->Get(kMaps.c_str())->status == 410);
}

TEST_CASE("cutting all connections is survived by new ones") {
  WatchCase test;
  auto client = test.server.client();
  CHECK(client->Get("/readyz")->status == 200);
  REQUIRE(test.server.api.requests().wait_for(requests("watch *"), 1, 60s));
  test.server.api.cut_connections();
  CHECK(test.stream.wait_ended());
  CHECK(test.server.client()->Get("/readyz")->status == 200);
}

}  // namespace lpp::devcluster
