// SPDX-License-Identifier: Apache-2.0
#include "k8s/frame_splitter.h"
#include "unit/devcluster/apiserver_test_support.h"

namespace lpp::devcluster {
namespace {

using test::at;
using test::Json;
using namespace std::chrono_literals;

const std::string kBoth = "application/vnd.kubernetes.protobuf,application/json";
const std::string kMetadata =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/json";
constexpr const char* kProtobuf = "application/vnd.kubernetes.protobuf";
const std::string kPods = "/api/v1/namespaces/default/pods";

struct ProtobufCase {
  test::Server server;
  std::unique_ptr<httplib::SSLClient> client = server.client();

  /// "type code" of the answer.
  std::string type(const std::string& path, const std::string& accept) {
    const auto result = client->Get(path.c_str(), {{"Accept", accept}});
    REQUIRE(result);
    body = result->body;
    return result->get_header_value("Content-Type") + " " + std::to_string(result->status);
  }
  std::string body;
};

}  // namespace

TEST_CASE("protobuf is sent of what the table holds, to clients that prefer it") {
  ProtobufCase test;
  REQUIRE(test.server.registry.create("pods", "default", test::pod("a")).ok());
  CHECK(test.type(kPods, kBoth) == kProtobuf + std::string(" 200"));
  CHECK(test.body.starts_with(std::string("k8s\0", 4)));
  CHECK(test.body.find("PodList") != std::string::npos);
  CHECK(test.type(kPods + "/a", kBoth) == kProtobuf + std::string(" 200"));
  CHECK(test.type(kPods, "application/json," + kBoth) == "application/json 200");
  CHECK(test.type("/api/v1/secrets", kBoth) == "application/json 200");
  CHECK(test.type("/api/v1/nodes", kBoth) == "application/json 200");
  CHECK(test.type("/api/v1/nodes", kMetadata) == kProtobuf + std::string(" 200"));
  CHECK(test.body.find("PartialObjectMetadataList") != std::string::npos);

  // A member that the table lacks must not be lost.
  Json odd = test::pod("odd");
  odd["spec"]["containers"][0]["livenessProbe"] = {{"tcpSocket", {{"port", 80}}}};
  REQUIRE(test.server.registry.create("pods", "default", odd).ok());
  CHECK(test.type(kPods, kBoth) == "application/json 200");
  CHECK(test.body.find("livenessProbe") != std::string::npos);
}

TEST_CASE("a Status comes in the first format that is accepted for whole objects") {
  ProtobufCase test;
  CHECK(test.type(kPods + "/none", kBoth) == kProtobuf + std::string(" 404"));
  CHECK(test.body.find("pods \"none\" not found") != std::string::npos);
  CHECK(test.type("/api/v1/secrets?labelSelector=a+in", kBoth) == kProtobuf + std::string(" 400"));
  CHECK(test.type(kPods + "?watch=1&resourceVersion=x", kBoth) == kProtobuf + std::string(" 400"));
  CHECK(test.type(kPods + "/none", kMetadata) == "application/json 404");
  CHECK(test.type(kPods + "/none", "application/json") == "application/json 404");
}

TEST_CASE("a server without protobuf answers with JSON") {
  test::Server server({.protobuf = false});
  const auto result = server.client()->Get(kPods.c_str(), {{"Accept", kBoth}});
  REQUIRE(result);
  CHECK(result->get_header_value("Content-Type") == "application/json");
}

TEST_CASE("a watch in protobuf has counted frames, faults included") {
  test::Server server({.bookmark_period = 300ms});
  const std::string version = std::to_string(server.registry.resource_version());
  REQUIRE(server.registry.create("configmaps", "default", test::config_map("a")).ok());
  REQUIRE(server.registry.create("configmaps", "default", test::config_map("b")).ok());
  std::vector<std::string> frames;
  k8s::FrameSplitter splitter;
  std::string type;
  const auto watch = [&](const std::string& query = {}) {
    const std::string path =
        "/api/v1/configmaps?watch=true&timeoutSeconds=1&resourceVersion=" + version + query;
    return server.client()->Get(
        path.c_str(), {{"Accept", kBoth}},
        [&](const httplib::Response& response) {
          type = response.get_header_value("Content-Type");
          return true;
        },
        [&](const char* data, std::size_t size) {
          splitter.feed({data, size}, [&](std::string_view frame) {
            frames.emplace_back(frame);
            return true;
          });
          return true;
        });
  };
  SUBCASE("without faults") {
    CHECK(watch());
    REQUIRE(frames.size() == 2);
    CHECK(frames[1].starts_with("\n\5ADDED"));
    CHECK(frames[1].find("ConfigMap") != std::string::npos);
    CHECK(splitter.rest().empty());
  }
  SUBCASE("bookmarks") {
    CHECK(watch("&allowWatchBookmarks=true"));
    REQUIRE(frames.size() > 2);
    CHECK(frames[2].starts_with("\n\10BOOKMARK"));
    CHECK(frames[2].find("ConfigMap") != std::string::npos);
  }
  SUBCASE("an error in place of an event") {
    server.api.faults().add(on("watch configmaps").nth(2).error_event(410));
    CHECK(watch());
    REQUIRE(frames.size() == 2);
    CHECK(frames[1].starts_with("\n\5ERROR"));
    CHECK(frames[1].find("Expired") != std::string::npos);
  }
  SUBCASE("a frame that breaks off") {
    server.api.faults().add(on("watch configmaps").nth(2).truncate_event(25));
    CHECK_FALSE(watch());
    CHECK(frames.size() == 1);
    CHECK(splitter.rest().size() <= 25);
  }
  SUBCASE("an expired version") {
    server.api.faults().add(on("watch configmaps").expire());
    CHECK(watch());
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].starts_with("\n\5ERROR"));
  }
  CHECK(type == "application/vnd.kubernetes.protobuf;stream=watch");
}

}  // namespace lpp::devcluster
