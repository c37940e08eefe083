// SPDX-License-Identifier: Apache-2.0
#include "fakes/eventually.h"
#include "unit/devcluster/apiserver_test_support.h"

namespace lpp::devcluster::apiserver_watch {
namespace {

using test::at;
using test::Json;
using namespace std::chrono_literals;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";

std::string from_now(const test::Server& server) {
  return "watch=true&resourceVersion=" + std::to_string(server.registry.resource_version());
}

/// Creates a ConfigMap once the watch is there, so that nothing depends on timing.
void add(test::Server& server, const std::string& name) {
  REQUIRE(server.api.requests().wait_for(requests("watch *"), 1, 60s));
  REQUIRE(server.registry.create("configmaps", "default", test::config_map(name)).ok());
}

}  // namespace

TEST_CASE("a watch streams one JSON line per change") {
  test::Server server;
  test::WatchStream stream(server, kMaps + "?" + from_now(server));
  add(server, "a");
  REQUIRE(server.registry.remove({"configmaps", "default", "a"}).ok());
  CHECK(stream.frame(0)["type"] == "ADDED");
  CHECK(at(stream.frame(0), "object.kind") == "ConfigMap");
  CHECK(at(stream.frame(0), "object.metadata.name") == "a");
  CHECK(stream.frame(1)["type"] == "DELETED");
}

TEST_CASE("bookmarks come when asked for, with the version of everything") {
  test::Server server({.bookmark_period = 20ms});
  test::WatchStream without(server, kMaps + "?" + from_now(server));
  test::WatchStream stream(server, kMaps + "?allowWatchBookmarks=true&" + from_now(server));
  CHECK(stream.frame(0)["type"] == "BOOKMARK");
  REQUIRE(server.registry.create("secrets", "default", {{"metadata", {{"name", "s"}}}}).ok());
  const auto version = std::to_string(server.registry.resource_version());
  std::size_t n = 0;
  while (at(stream.frame(n), "object.metadata.resourceVersion") != version && n < 1000) ++n;
  CHECK(at(stream.frame(n), "object.metadata.resourceVersion") == version);
  CHECK(at(stream.frame(n), "object.kind") == "ConfigMap");
  CHECK(without.count() == 0);
}

TEST_CASE("a streaming list ends with the marked bookmark, or without one when unasked") {
  test::Server server;
  REQUIRE(server.registry.create("configmaps", "default", test::config_map("a")).ok());
  const std::string query =
      "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=20";
  test::WatchStream stream(server, kMaps + query + "&allowWatchBookmarks=true");
  CHECK(stream.frame(0)["type"] == "ADDED");
  CHECK(stream.frame(1)["type"] == "BOOKMARK");
  CHECK(stream.frame(1)["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] ==
        "true");
  test::WatchStream unmarked(server, kMaps + query);
  CHECK(unmarked.frame(0)["type"] == "ADDED");
  CHECK(unmarked.wait_ended());
  CHECK(unmarked.cleanly_ended());
  CHECK(unmarked.count() == 1);
  CHECK(server.client()->Get((kMaps + "?watch=true&sendInitialEvents=true").c_str())->status ==
        422);
  CHECK(server.client()->Get((kMaps + "?watch=true&resourceVersionMatch=Exact").c_str())->status ==
        422);
}

TEST_CASE("an old version is answered with 200 and an ERROR frame of 410") {
  test::Server server;
  const std::string path = kMaps + "?" + from_now(server);
  server.registry.compact();
  test::WatchStream stream(server, path);
  CHECK(stream.frame(0)["type"] == "ERROR");
  CHECK(at(stream.frame(0), "object.code") == 410);
  CHECK(at(stream.frame(0), "object.reason") == "Expired");
  CHECK(stream.wait_ended());
  CHECK(stream.cleanly_ended());
  CHECK(server.api.requests().all().back().code == 200);
}

TEST_CASE("watches are refused for bad versions and selectors") {
  test::Server server;
  auto client = server.client();
  CHECK(client->Get((kMaps + "?watch=1&resourceVersion=x").c_str())->status == 400);
  CHECK(client->Get((kMaps + "?watch=1&labelSelector=a+in").c_str())->status == 400);
  CHECK(
      client->Get("/api/v1/persistentvolumes?watch=1&fieldSelector=status.phase%3DBound")->status ==
      400);
}

TEST_CASE("watches deliver metadata only, tables and single objects") {
  test::Server server;
  test::WatchStream partial(server, kMaps + "?" + from_now(server),
                            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  test::WatchStream table(server, kMaps + "?" + from_now(server),
                          "application/json;as=Table;g=meta.k8s.io;v=v1");
  test::WatchStream single(server, kMaps + "/b?" + from_now(server));
  REQUIRE(server.api.requests().wait_for(requests("watch *"), 3, 60s));
  add(server, "a");
  add(server, "b");
  CHECK(at(partial.frame(0), "object.kind") == "PartialObjectMetadata");
  CHECK(at(partial.frame(0), "object.data").is_null());
  CHECK(at(table.frame(0), "object.kind") == "Table");
  CHECK(table.frame(0)["object"]["rows"][0]["cells"][0] == "a");
  CHECK(at(single.frame(0), "object.metadata.name") == "b");
}

TEST_CASE("stopping the server ends running watches soon") {
  test::Server server;
  test::WatchStream stream(server, kMaps + "?" + from_now(server));
  REQUIRE(server.api.requests().wait_for(requests("watch *"), 1, 60s));
  server.api.stop();  // the watch ends by nothing else
  CHECK(stream.wait_ended());
}

TEST_CASE("a client that goes away frees its connection") {
  test::Server server;
  {
    test::WatchStream stream(server, kMaps + "?" + from_now(server));
    REQUIRE(server.api.requests().wait_for(requests("watch *"), 1, 60s));
    CHECK(server.api.connections() == 1);
  }
  CHECK(lpp::testing::eventually([&] { return server.api.connections() == 0; }));
}

}  // namespace lpp::devcluster::apiserver_watch
