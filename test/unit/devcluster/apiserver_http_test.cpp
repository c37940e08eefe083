// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "harness/file_text.h"
#include "harness/loopback.h"
#include "unit/devcluster/apiserver_test_support.h"

namespace lpp::devcluster::apiserver_http {
namespace {

using test::at;
using test::Json;
using test::json_of;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kJson = "application/json";
constexpr const char* kMerge = "application/merge-patch+json";

}  // namespace

TEST_CASE("objects are created, read, listed, changed and deleted over TLS") {
  test::Server server;
  auto client = server.client();
  auto reply = client->Post(kMaps.c_str(), test::config_map("a").dump(), kJson);
  REQUIRE(reply);
  CHECK(reply->status == 201);
  const Json created = json_of(reply);
  CHECK(json_of(client->Get((kMaps + "/a").c_str())) == created);

  reply = client->Patch((kMaps + "/a").c_str(), R"({"data":{"key":"2"}})", kMerge);
  CHECK(at(json_of(reply), "data.key") == "2");
  CHECK(client->Put((kMaps + "/a").c_str(), created.dump(), kJson)->status == 409);

  const Json list = json_of(client->Get(kMaps.c_str()));
  CHECK(at(list, "kind") == "ConfigMapList");
  CHECK(at(list, "apiVersion") == "v1");
  REQUIRE(at(list, "items").size() == 1);
  CHECK(!list["items"][0].contains("kind"));
  CHECK(!list["items"][0].contains("apiVersion"));
  CHECK(at(list["items"][0], "data.key") == "2");
  CHECK(json_of(client->Get("/api/v1/configmaps"))["items"].size() == 1);
  CHECK(
      json_of(client->Get((kMaps + "?fieldSelector=metadata.name%3Db").c_str()))["items"].empty());

  CHECK(json_of(client->Delete((kMaps + "/a").c_str()))["status"] == "Success");
  reply = client->Get((kMaps + "/a").c_str());
  CHECK(reply->status == 404);
  CHECK(at(json_of(reply), "kind") == "Status");
  CHECK(at(json_of(reply), "reason") == "NotFound");
}

TEST_CASE("pages and their tokens travel in the list's metadata") {
  test::Server server;
  for (const char* name : {"a", "b", "c"}) {
    REQUIRE(server.registry.create("configmaps", "default", test::config_map(name)).ok());
  }
  auto client = server.client();
  const Json first = json_of(client->Get((kMaps + "?limit=2").c_str()));
  CHECK(at(first, "metadata.remainingItemCount") == 1);
  const auto token = at(first, "metadata.continue").get<std::string>();
  const Json rest = json_of(client->Get((kMaps + "?limit=2&continue=" + token).c_str()));
  CHECK(at(rest["items"][0], "metadata.name") == "c");
  CHECK(at(rest, "metadata.continue").is_null());
  CHECK(at(rest, "metadata.resourceVersion") == at(first, "metadata.resourceVersion"));
  const auto late = client->Get((kMaps + "?resourceVersion=99999999").c_str());
  CHECK(late->status == 504);
  CHECK(late->get_header_value("Retry-After") == "1");
}

TEST_CASE("without a known token only health and version are answered") {
  test::Server server;
  auto client = server.client();
  for (const char* authorization : {"", "Bearer wrong", "Basic YTpi"}) {
    client->set_default_headers({{"Authorization", authorization}});
    const auto refused = client->Get("/api/v1/pods");
    REQUIRE(refused);
    CHECK(refused->status == 401);
    CHECK(at(json_of(refused), "reason") == "Unauthorized");
    CHECK(client->Get("/api")->status == 401);
    CHECK(client->Get("/readyz")->body == "ok");
    CHECK(at(json_of(client->Get("/version")), "gitVersion") == "v1.36.0");
  }
}

TEST_CASE("service account tokens are minted, name their user and can be revoked") {
  test::Server server;
  REQUIRE(
      server.registry.create("serviceaccounts", "default", {{"metadata", {{"name", "sa"}}}}).ok());
  auto client = server.client();
  const std::string path = "/api/v1/namespaces/default/serviceaccounts/";
  CHECK(client->Post((path + "none/token").c_str(), "{}", kJson)->status == 404);
  const auto token =
      at(json_of(client->Post((path + "sa/token").c_str(), "{}", kJson)), "status.token")
          .get<std::string>();
  client->set_default_headers({{"Authorization", "Bearer " + token}});
  CHECK(client->Get("/api/v1/pods")->status == 403);  // no role grants it
  CHECK(server.api.requests().all().back().user == "system:serviceaccount:default:sa");
  server.api.revoke_token(token);
  CHECK(client->Get("/api/v1/pods")->status == 401);
}

TEST_CASE("paths and methods that do not exist are refused as a real server does") {
  test::Server server;
  auto client = server.client();
  CHECK(client->Get("/nothing")->status == 404);
  CHECK(at(json_of(client->Get("/api/v1/gadgets")), "message") ==
        "the server could not find the requested resource");
  CHECK(client->Get("/apis/apps/v2/deployments")->status == 404);
  CHECK(client->Get("/api/v1/namespaces/default/nodes")->status == 404);
  CHECK(client->Get("/api/v1/pods/no-namespace")->status == 404);
  CHECK(client->Get((kMaps + "/a/status").c_str())->status == 404);
  CHECK(client->Post((kMaps + "/a").c_str(), "{}", kJson)->status == 405);
  CHECK(client->Put(kMaps.c_str(), "{}", kJson)->status == 405);
  CHECK(client->Post("/api/v1/pods", test::pod("a").dump(), kJson)->status == 405);
  CHECK(client->Delete("/api/v1/namespaces")->status == 405);
}

TEST_CASE("bodies are refused when they are too large, of another type or no JSON") {
  test::Server server({.body_limit = 1000});
  auto client = server.client();
  CHECK(client->Post(kMaps.c_str(), "{", kJson)->status == 400);
  CHECK(client->Post(kMaps.c_str(), std::string(900, '['), kJson)->status == 400);
  CHECK(client->Post(kMaps.c_str(), "a: b", "application/yaml")->status == 415);
  CHECK(client->Patch((kMaps + "/a").c_str(), "{}", kJson)->status == 415);
  CHECK(client->Patch((kMaps + "/a").c_str(), "{}", "application/apply-patch+yaml")->status == 422);
  CHECK(client->Post(kMaps.c_str(), "k8s", "application/vnd.kubernetes.protobuf")->status == 415);
  const auto large = client->Post(kMaps.c_str(), std::string(1001, ' '), kJson);
  REQUIRE(large);
  CHECK(large->status == 413);
  CHECK(at(json_of(large), "reason") == "RequestEntityTooLarge");
  CHECK(server.client()->Get("/readyz")->status == 200);
}

TEST_CASE("DELETE takes its options from the body and from the query") {
  test::Server server;
  auto client = server.client();
  REQUIRE(server.registry.create("pods", "default", test::pod("a")).ok());
  REQUIRE(server.registry.bind_pod("default", "a", "n1").ok());
  const std::string path = "/api/v1/namespaces/default/pods/a";
  CHECK(client->Delete(path.c_str(), R"({"preconditions":{"uid":"x"}})", kJson)->status == 409);
  CHECK(at(json_of(client->Delete(path.c_str(), R"({"gracePeriodSeconds":7})", kJson)),
           "metadata.deletionGracePeriodSeconds") == 7);
  CHECK(client->Delete(path.c_str(), "[]", kJson)->status == 400);
  CHECK(client->Delete((path + "?gracePeriodSeconds=0").c_str())->status == 200);
  CHECK(server.registry.find("pods", "default", "a") == nullptr);
  REQUIRE(server.registry.create("configmaps", "default", test::config_map("m")).ok());
  CHECK(client->Delete((kMaps + "?labelSelector=a%3Db").c_str())->status == 200);
  CHECK(server.registry.all("configmaps").size() == 1);
  CHECK(client->Delete(kMaps.c_str())->status == 200);
  CHECK(server.registry.all("configmaps").empty());
}

TEST_CASE("a deleted namespace takes nothing new, and is emptied after its delay") {
  const auto add_namespace = [](test::Server& server) {
    REQUIRE(server.registry.create("namespaces", "", {{"metadata", {{"name", "app"}}}}).ok());
    REQUIRE(server.registry.create("configmaps", "app", test::config_map("a")).ok());
  };
  SUBCASE("before the delay its objects are there") {
    test::Server server({.namespace_delay = std::chrono::hours(1)});
    auto client = server.client();
    add_namespace(server);
    const Json deleted = json_of(client->Delete("/api/v1/namespaces/app"));
    CHECK(at(deleted, "status.phase") == "Terminating");
    const auto late =
        client->Post("/api/v1/namespaces/app/configmaps", test::config_map("b").dump(), kJson);
    CHECK(late->status == 403);
    CHECK(client->Delete("/api/v1/namespaces/app/configmaps/a")->status == 200);
  }
  SUBCASE("after it everything is gone") {
    test::Server server({.namespace_delay = std::chrono::milliseconds(1)});
    add_namespace(server);
    const auto version = std::to_string(server.registry.resource_version());
    auto started =
        server.registry.watch({.resources = {"namespaces"}, .resource_version = version});
    CHECK(server.client()->Delete("/api/v1/namespaces/app")->status == 200);
    auto event = started.watch->next(std::chrono::seconds(60));
    while (event && event->type != WatchEventType::kDeleted) {
      event = started.watch->next(std::chrono::seconds(60));
    }
    CHECK(event);
    CHECK(server.registry.find("configmaps", "app", "a") == nullptr);
  }
}

TEST_CASE("the Accept header chooses whole objects, metadata only or a table") {
  test::Server server;
  REQUIRE(server.registry.create("pods", "default", test::pod("a")).ok());
  auto client = server.client();
  const auto get = [&](const std::string& path, const std::string& accept) {
    return client->Get(path.c_str(), {{"Accept", accept}});
  };
  const std::string partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  const std::string partial_list =
      "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  const std::string table = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";
  const std::string pods = "/api/v1/namespaces/default/pods";

  const Json one = json_of(get(pods + "/a", partial));
  CHECK(at(one, "kind") == "PartialObjectMetadata");
  CHECK(at(one, "metadata.name") == "a");
  CHECK(!one.contains("spec"));
  const Json list = json_of(get(pods, partial_list));
  CHECK(at(list, "kind") == "PartialObjectMetadataList");
  CHECK(!list["items"][0].contains("spec"));

  const Json rows = json_of(get(pods, table));
  CHECK(at(rows, "kind") == "Table");
  CHECK(rows["columnDefinitions"][0]["name"] == "Name");
  CHECK(rows["rows"][0]["cells"][0] == "a");
  CHECK(rows["rows"][0]["cells"][1] == "0/1");
  CHECK(rows["rows"][0]["cells"][2] == "Pending");
  CHECK(at(rows["rows"][0], "object.metadata.name") == "a");
  CHECK(at(json_of(get(pods + "/missing", table)), "kind") == "Status");

  const std::string secrets = "/api/v1/namespaces/default/secrets";
  CHECK(get(secrets, "application/vnd.kubernetes.protobuf")->status == 406);
  CHECK(get(secrets, "application/vnd.kubernetes.protobuf, application/json")->status == 200);
}

TEST_CASE("every kind has a table and appears in discovery and OpenAPI") {
  test::Server server;
  auto client = server.client();
  CHECK(at(json_of(client->Get("/api")), "versions") == Json::array({"v1"}));
  const Json groups = json_of(client->Get("/apis"));
  CHECK(groups["groups"].size() >= 4);
  for (const auto& group : groups["groups"]) {
    const auto version = at(group, "preferredVersion.groupVersion").get<std::string>();
    const Json resources = json_of(client->Get(("/apis/" + version).c_str()))["resources"];
    CHECK(!resources.empty());
    for (const auto& resource : resources) {
      const auto name = resource["name"].get<std::string>();
      if (resource["verbs"].size() < 8) continue;
      CAPTURE(name);
      const auto list =
          client->Get(std::string("/apis/").append(version).append("/").append(name).c_str(),
                      {{"Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"}});
      CHECK(at(json_of(list), "kind") == "Table");
    }
  }
  const std::string aggregated =
      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
  const auto apis = client->Get("/apis", {{"Accept", aggregated}});
  CHECK(at(json_of(apis), "kind") == "APIGroupDiscoveryList");
  CHECK(apis->get_header_value("Content-Type").find("APIGroupDiscoveryList") != std::string::npos);
  const Json documents = json_of(client->Get("/openapi/v3"))["paths"];
  for (const auto& [name, entry] : documents.items()) {
    const auto url = entry["serverRelativeURL"].get<std::string>();
    CHECK(at(json_of(client->Get(url.c_str())), "openapi") == "3.0.0");
  }
}

TEST_CASE("pod logs come from the log source, cut to what was asked for") {
  test::Server server;
  REQUIRE(server.registry.create("pods", "default", test::pod("a")).ok());
  auto client = server.client();
  const std::string path = "/api/v1/namespaces/default/pods/a/log";
  CHECK(client->Get(path.c_str())->body.empty());
  server.api.set_log_source([](const std::string& ns, const std::string& pod,
                               const std::string& container) -> std::optional<std::string> {
    return ns + "/" + pod + "/" + container + "\n2\n3\n";
  });
  CHECK(client->Get(path.c_str())->body == "default/a/c\n2\n3\n");
  CHECK(client->Get((path + "?container=c&tailLines=2").c_str())->body == "2\n3\n");
  CHECK(client->Get((path + "?tailLines=0").c_str())->body.empty());
  CHECK(client->Get((path + "?tailLines=9").c_str())->body == "default/a/c\n2\n3\n");
  CHECK(client->Get((path + "?limitBytes=3").c_str())->body == "def");
  CHECK(client->Get((path + "?container=x").c_str())->status == 400);
  CHECK(client->Get("/api/v1/namespaces/default/pods/b/log")->status == 404);
  server.api.set_log_source([](auto&, auto&, auto&) { return std::optional<std::string>(); });
  CHECK(client->Get(path.c_str())->status == 400);
}

TEST_CASE("a followed log grows until the pod has ended") {
  test::Server server;
  REQUIRE(server.registry.create("pods", "default", test::pod("a")).ok());
  std::atomic<int> lines = 2;
  server.api.set_log_source([&lines](auto&, auto&, auto&) {
    std::string text;
    for (int i = 1; i <= lines; ++i) text += std::to_string(i) + "\n";
    return std::optional<std::string>(text);
  });
  test::WatchStream stream(server, "/api/v1/namespaces/default/pods/a/log?follow=true&tailLines=1");
  CHECK(stream.frame(0) == 2);
  lines = 3;
  CHECK(stream.frame(1) == 3);
  lines = 4;
  REQUIRE(server.registry
              .patch({"pods", "default", "a"}, PatchType::kMerge,
                     {{"status", {{"phase", "Succeeded"}}}}, {.subresource = "status"})
              .ok());
  CHECK(stream.wait_ended());
  CHECK(stream.cleanly_ended());
  CHECK(stream.frame(2) == 4);
}

TEST_CASE("the bodies of kubectl's imperative commands are read as protobuf") {
  test::Server server;
  auto client = server.client();
  const auto field = [](char number, const std::string& bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  const auto envelope = [&](const std::string& kind, const std::string& raw) {
    return std::string("k8s\0", 4) + field(1, field(1, "v1") + field(2, kind)) + field(2, raw);
  };
  const auto post = [&](const std::string& path, const std::string& body) {
    return client->Post(path.c_str(), body, "application/vnd.kubernetes.protobuf");
  };
  const std::string metadata =
      field(1, field(1, "m") + field(3, "") + field(11, field(1, "a") + field(2, "b")));
  const std::string data = field(2, field(1, "key") + field(2, "value"));
  CHECK(post(kMaps, envelope("ConfigMap", metadata + data))->status == 201);
  const auto map = server.registry.find("configmaps", "default", "m");
  REQUIRE(map != nullptr);
  CHECK(at(map, "data.key") == "value");
  CHECK(at(map, "metadata.labels.a") == "b");
  CHECK(post("/api/v1/namespaces", envelope("Namespace", field(1, field(1, "made"))))->status ==
        201);
  CHECK(post("/api/v1/nodes", envelope("Node", ""))->status == 415);
  const std::string whole = envelope("ConfigMap", metadata + data);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto reply = post(kMaps, whole.substr(0, size));
    REQUIRE(reply);
    CHECK(reply->status >= 400);
    CHECK(reply->status < 500);
  }
}

TEST_CASE("reviews allow everything, bindings bind") {
  test::Server server;
  auto client = server.client();
  CHECK(at(json_of(client->Post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                                R"({"spec":{}})", kJson)),
           "status.allowed") == true);
  REQUIRE(server.registry.create("pods", "default", test::pod("a")).ok());
  CHECK(
      client
          ->Post("/api/v1/namespaces/default/pods/a/binding", R"({"target":{"name":"n1"}})", kJson)
          ->status == 201);
  CHECK(at(server.registry.find("pods", "default", "a"), "spec.nodeName") == "n1");
}

TEST_CASE("the request log tells what was asked, by whom, and what was not") {
  test::Server server;
  auto client = server.client();
  CHECK(client->Post(kMaps.c_str(), R"({"metadata":{"generateName":"x-"}})", kJson)->status == 201);
  CHECK(client->Get("/api/v1/nodes?watch=false")->status == 200);
  auto& log = server.api.requests();
  CHECK(log.count(requests("create configmaps")) == 1);
  CHECK(log.count(requests("list nodes")) == 1);
  CHECK(log.count(requests("delete *")) == 0);
  const auto record = log.find(requests("create configmaps")).front();
  CHECK(record.code == 201);
  CHECK(record.operation.name == "x-");
  CHECK(record.operation.user_agent == "test/1.0");
  CHECK(record.user == "kubernetes-admin");
  CHECK(record.target == kMaps);
  CHECK(log.wait_for(requests("list nodes"), 1, std::chrono::seconds(0)));
  CHECK(!log.wait_for(requests("list nodes"), 2, std::chrono::milliseconds(1)));
  log.clear();
  CHECK(log.all().empty());
  CHECK(log.total() == 2);
}

TEST_CASE("the certificate is trusted through the CA of the kubeconfig, and only through it") {
  test::Server server;
  const std::string folder = "/tmp/lpp-apiserver-test-" + std::to_string(server.api.port());
  const auto write = [&](const std::string& text) {
    std::ofstream(folder) << text;
    auto client = server.client();
    client->enable_server_certificate_verification(true);
    client->set_ca_cert_path(folder.c_str());
    const auto reply = client->Get("/readyz");
    return reply ? reply->status : 0;
  };
  CHECK(write(server.api.ca_pem()) == 200);
  test::Server other;
  CHECK(write(other.api.ca_pem()) == 0);
  CHECK(server.api.write_kubeconfig(folder).ok());
  const std::string text = lpp::testing::text_of(folder);
  CHECK(text.find("server: " + server.api.url()) != std::string::npos);
  CHECK(text.find(server.api.admin_token()) != std::string::npos);
  CHECK(!server.api.write_kubeconfig("/nowhere/at/all").ok());
  std::remove(folder.c_str());
}

TEST_CASE("a taken port is an error with its number, stop can be called twice") {
  test::Server server;
  Registry registry;
  ApiServer second(registry, {.port = server.api.port()});
  const auto started = second.start();
  REQUIRE(!started.ok());
  CHECK(started.error().message.find(std::to_string(server.api.port())) != std::string::npos);
  server.api.stop();
  server.api.stop();
  CHECK(!server.client()->Get("/readyz"));
}

TEST_CASE("malformed requests end their connection and nothing else") {
  test::Server server;
  for (const char* junk : {"GET\r\n\r\n", "NONSENSE / FTP/1.0\r\n\r\n", "\x16\x03\x01 garbage"}) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = testing::loopback(server.api.port());
    REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    CHECK(::send(fd, junk, std::strlen(junk), MSG_NOSIGNAL) > 0);
    ::close(fd);
  }
  CHECK(server.client()->Get("/readyz")->status == 200);
}

}  // namespace lpp::devcluster::apiserver_http
