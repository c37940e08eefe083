// SPDX-License-Identifier: Apache-2.0
#include "harness/fault_proxy.h"

#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <future>
#include <map>
#include <nlohmann/json.hpp>

#include "fakes/eventually.h"
#include "harness/http_get.h"
#include "harness/raw_client.h"
#include "harness/temp_dir.h"
#include "harness/test_server.h"

namespace lpp::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// A client connection to the proxy.
class Client : public RawClient {
 public:
  explicit Client(const FaultProxy& proxy) : RawClient(proxy.port(), proxy.ca_pem()) {}

  bool send(const std::string& method, const std::string& target, const std::string& body = {}) {
    return request(method, target, "Authorization: Bearer secret\r\nAccept-Encoding: gzip\r\n",
                   body);
  }
  Answer call(const std::string& method, const std::string& target, const std::string& body = {}) {
    return send(method, target, body) ? answer() : Answer{};
  }
};

/// What stands in protobuf's frames is not looked at.
const std::array<std::string, 3> kCountedFrames = {
    std::string("\0\0\0\x0a", 4) + "\n\n\n\n\n\n\n\n\n\n", std::string("\0\0\0\0", 4),
    std::string("\0\0\0\4", 4) + "{3}\n"};

/// An API server that counts what reaches it, echoes bodies, and streams on ?watch=true.
struct Scene {
  std::atomic<int> reached = 0;
  TestCa ca;
  TestServer upstream{{.certificate = ca.server({"IP:127.0.0.1"})}, [this](Exchange& exchange) {
                        const HttpRequest& request = exchange.request();
                        ++reached;
                        last_authorization = request.header("authorization");
                        saw_accept_encoding = request.headers.contains("accept-encoding");
                        if (request.target.find("configmaps?watch=true") != std::string::npos) {
                          // Lengths and contents of frames look like line breaks, and pieces end
                          // anywhere.
                          const std::string frames =
                              kCountedFrames[0] + kCountedFrames[1] + kCountedFrames[2];
                          std::string answer =
                              "HTTP/1.1 200 OK\r\nContent-Type: "
                              "application/vnd.kubernetes.protobuf;stream=watch\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n";
                          for (const char byte : frames)
                            answer += std::string("1\r\n") + byte + "\r\n";
                          return exchange.send(answer);
                        }
                        if (request.target.find("watch=true") != std::string::npos) {
                          return exchange.send(
                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "4\r\n{1}\n\r\n2\r\n{2\r\n6\r\n}\n{3}\n\r\n");
                          // and leave it open
                        }
                        return exchange.respond(201, request.body.empty() ? "{}" : request.body);
                      }};
  std::string last_authorization;
  bool saw_accept_encoding = false;
  std::unique_ptr<FaultProxy> proxy =
      std::move(FaultProxy::start({.port = upstream.port(), .ca_pem = ca.pem()})).value();
};

constexpr const char* kPods = "/api/v1/namespaces/a/pods";

TEST_CASE("requests pass with their credentials and are recorded") {
  Scene scene;
  Client client(*scene.proxy);
  REQUIRE(client.connected());
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.call("POST", kPods, R"({"kind":"Pod"})");
    REQUIRE(answer.status != 0);
    CHECK(answer.status == 201);
    CHECK(answer.body == R"({"kind":"Pod"})");
  }
  CHECK(scene.last_authorization == "Bearer secret");
  CHECK_FALSE(scene.saw_accept_encoding);
  CHECK(scene.upstream.connections() == 1);
  const auto records = scene.proxy->records();
  REQUIRE(records.size() == 3);
  CHECK(records[2].request.to_string() == "create pods a/");
  CHECK(records[2].request.body == R"({"kind":"Pod"})");
  CHECK(records[2].request.sequence == 3);
  CHECK(records[2].status == 201);
  scene.proxy->clear_records();
  REQUIRE(client.call("GET", kPods).status == 201);
  CHECK(scene.proxy->records().at(0).request.sequence == 4);
}

TEST_CASE("a watch is passed on frame by frame while it lasts") {
  Scene scene;
  std::map<std::string, FrameAction> actions;
  scene.proxy->set_hooks({.frame = [&](const ApiRequest& request, std::string_view frame) {
    CHECK(request.is("watch", "pods"));
    const auto it = actions.find(std::string(frame));
    return it == actions.end() ? FrameAction::kForward : it->second;
  }});
  Client client(*scene.proxy);
  SUBCASE("untouched") {}
  SUBCASE("a frame dropped and one doubled") {
    actions = {{"{1}\n", FrameAction::kDrop}, {"{2}\n", FrameAction::kDuplicate}};
  }
  SUBCASE("cut at a frame") { actions = {{"{3}\n", FrameAction::kCut}}; }
  SUBCASE("cut within a frame") { actions = {{"{3}\n", FrameAction::kTruncate}}; }
  REQUIRE(client.send("GET", "/api/v1/pods?watch=true"));
  REQUIRE(client.head().ok());
  std::string text;
  const bool cut = actions.contains("{3}\n");
  while (cut || text.size() < 12) {
    const auto piece = client.piece();
    if (!piece.ok() || piece->empty()) break;
    text += *piece;
  }
  if (actions.empty()) CHECK(text == "{1}\n{2}\n{3}\n");
  if (actions.contains("{1}\n")) CHECK(text == "{2}\n{2}\n{3}\n");
  if (cut) CHECK(text == (actions["{3}\n"] == FrameAction::kCut ? "{1}\n{2}\n" : "{1}\n{2}\n{3"));
}

TEST_CASE("a watch in protobuf is passed on frame by frame too") {
  Scene scene;
  FrameAction first = FrameAction::kForward;
  FrameAction last = FrameAction::kForward;
  std::string expected = kCountedFrames[0] + kCountedFrames[1] + kCountedFrames[2];
  SUBCASE("untouched") {}
  SUBCASE("a frame dropped and one doubled") {
    first = FrameAction::kDrop;
    last = FrameAction::kDuplicate;
    expected = kCountedFrames[1] + kCountedFrames[2] + kCountedFrames[2];
  }
  SUBCASE("cut at a frame") {
    last = FrameAction::kCut;
    expected = kCountedFrames[0] + kCountedFrames[1];
  }
  SUBCASE("cut within a frame") {
    last = FrameAction::kTruncate;
    expected = kCountedFrames[0] + kCountedFrames[1] + kCountedFrames[2].substr(0, 4);
  }
  scene.proxy->set_hooks({.frame = [&](const ApiRequest&, std::string_view frame) {
    if (frame == kCountedFrames[0]) return first;
    return frame == kCountedFrames[2] ? last : FrameAction::kForward;
  }});
  Client client(*scene.proxy);
  REQUIRE(client.send("GET", "/api/v1/configmaps?watch=true"));
  REQUIRE(client.head().ok());
  std::string bytes;
  while (bytes.size() < expected.size()) {
    const auto piece = client.piece();
    if (!piece.ok() || piece->empty()) break;
    bytes += *piece;
  }
  CHECK(bytes == expected);
  if (last == FrameAction::kCut || last == FrameAction::kTruncate) CHECK_FALSE(client.piece().ok());
}

TEST_CASE("an answer is late or slow, and whole") {
  Scene scene;
  Client client(*scene.proxy);
  Decision decision;
  std::string body(2500, 'x');
  SUBCASE("late: the API server has acted meanwhile") {
    decision = Decision::late(milliseconds(60));
  }
  SUBCASE("slow: in three pieces") { decision = Decision::slow(milliseconds(20)); }
  std::atomic<steady_clock::time_point> acted{};
  scene.proxy->set_hooks({.before = [&](const ApiRequest&) { return decision; },
                          .after = [&](const ApiRequest&, int) { acted = steady_clock::now(); }});
  const auto answer = client.call("POST", kPods, body);
  REQUIRE(answer.status != 0);
  CHECK(answer.body == body);
  CHECK(steady_clock::now() - acted.load() >= milliseconds(60));
}

TEST_CASE("a slow watch lags behind and loses nothing") {
  Scene scene;
  scene.proxy->set_hooks(
      {.before = [](const ApiRequest&) { return Decision::slow(milliseconds(20)); }});
  Client client(*scene.proxy);
  const auto began = steady_clock::now();
  REQUIRE(client.send("GET", "/api/v1/pods?watch=true"));
  REQUIRE(client.head().ok());
  std::string text;
  while (text.size() < 12) text += std::move(client.piece()).value();
  CHECK(text == "{1}\n{2}\n{3}\n");
  CHECK(steady_clock::now() - began >= milliseconds(60));
}

TEST_CASE("a request is answered in the API server's place") {
  Scene scene;
  scene.proxy->set_hooks(
      {.before = [](const ApiRequest&) { return Decision::reply(429, {}, seconds(2)); }});
  Client client(*scene.proxy);
  const auto answer = client.call("POST", kPods, "{}");
  REQUIRE(answer.status != 0);
  CHECK(answer.status == 429);
  REQUIRE(answer.head.find("retry-after") != nullptr);
  CHECK(*answer.head.find("retry-after") == "2");
  const auto status = nlohmann::json::parse(answer.body);
  CHECK(status["kind"] == "Status");
  CHECK(status["reason"] == "TooManyRequests");
  CHECK(status["code"] == 429);
  CHECK(status["details"]["retryAfterSeconds"] == 2);
  CHECK(scene.reached == 0);
  scene.proxy->set_hooks({});
  CHECK(client.call("POST", kPods, "{}").status == 201);
}

TEST_CASE("a connection is cut before or after the API server has the request") {
  for (const bool after : {false, true}) {
    CAPTURE(after);
    Scene scene;
    std::atomic<int> seen_after = 0;
    scene.proxy->set_hooks({.before =
                                [&](const ApiRequest&) {
                                  return after ? Decision::cut_after() : Decision::cut_before();
                                },
                            .after = [&](const ApiRequest&, int status) { seen_after = status; }});
    Client client(*scene.proxy);
    CHECK(client.call("POST", kPods, "{}").status == 0);
    CHECK(scene.reached == (after ? 1 : 0));
    CHECK(seen_after == (after ? 201 : 0));
    CHECK(scene.proxy->records().at(0).status == 0);
    scene.proxy->set_hooks({});
    Client second(*scene.proxy);
    CHECK(second.call("POST", kPods, "{}").status == 201);
  }
}

TEST_CASE("a hanging request waits until it is released") {
  for (const bool after : {false, true}) {
    CAPTURE(after);
    Scene scene;
    scene.proxy->set_hooks({.before = [&](const ApiRequest&) {
      return after ? Decision::hang_after() : Decision::hang();
    }});
    auto answer = std::async(std::launch::async, [&] {
      Client client(*scene.proxy);
      return client.call("POST", kPods, "{}");
    });
    REQUIRE(scene.proxy->wait_for_record([](const auto&) { return true; }, seconds(60)));
    if (after) REQUIRE(eventually([&] { return scene.reached == 1; }));
    CHECK(answer.wait_for(milliseconds(100)) == std::future_status::timeout);
    CHECK(scene.reached == (after ? 1 : 0));
    scene.proxy->release_hung();
    CHECK(answer.get().status == 201);
  }
}

TEST_CASE("a request that is released before its hook has decided does not hang") {
  Scene scene;
  std::atomic<bool> released = false;
  scene.proxy->set_hooks({.before = [&](const ApiRequest&) {
    released.wait(false);
    return Decision::hang();
  }});
  auto answer = std::async(std::launch::async, [&] {
    Client client(*scene.proxy);
    return client.call("POST", kPods, "{}");
  });
  REQUIRE(scene.proxy->wait_for_record([](const auto&) { return true; }, seconds(60)));
  scene.proxy->release_hung();
  released = true;
  released.notify_all();
  CHECK(answer.get().status == 201);
}

TEST_CASE("a hanging request of a client that left never reaches the API server") {
  Scene scene;
  scene.proxy->set_hooks({.before = [](const ApiRequest&) { return Decision::hang(); }});
  {
    Client client(*scene.proxy);
    REQUIRE(client.send("POST", kPods, "{}"));
    REQUIRE(scene.proxy->wait_for_record([](const auto&) { return true; }, seconds(60)));
  }
  scene.proxy->set_hooks({});
  scene.proxy->release_hung();
  Client client(*scene.proxy);
  REQUIRE(client.call("POST", kPods, "{}").status == 201);
  scene.proxy->stop();
  CHECK(scene.reached <= 2);  // the release may have come before the leaving was noticed
}

TEST_CASE("a watch is cut after so many bytes") {
  Scene scene;
  scene.proxy->set_hooks({.before = [](const ApiRequest&) { return Decision::truncate(6); }});
  Client client(*scene.proxy);
  REQUIRE(client.send("GET", "/api/v1/pods?watch=true"));
  REQUIRE(client.head().ok());
  std::string text;
  while (true) {
    const auto piece = client.piece();
    if (!piece.ok()) break;
    REQUIRE_FALSE(piece->empty());
    text += *piece;
  }
  CHECK(std::string("{1}\n{2}\n{3}\n").starts_with(text));
  CHECK(text.size() <= 6);
}

TEST_CASE("connections are cut and refused on demand") {
  Scene scene;
  Client client(*scene.proxy);
  REQUIRE(client.send("GET", "/api/v1/pods?watch=true"));
  REQUIRE(client.head().ok());
  scene.proxy->cut_connections();
  while (true) {
    const auto piece = client.piece();
    if (!piece.ok() || piece->empty()) break;
  }
  scene.proxy->refuse(true);
  Client refused(*scene.proxy);
  CHECK(refused.call("GET", kPods).status == 0);
  scene.proxy->refuse(false);
  Client accepted(*scene.proxy);
  CHECK(accepted.call("GET", kPods).status == 201);
}

TEST_CASE("stop ends hanging requests and watches soon") {
  Scene scene;
  scene.proxy->set_hooks({.before = [](const ApiRequest& request) {
    return request.is_watch() ? Decision::forward() : Decision::hang();
  }});
  Client hanging(*scene.proxy);
  REQUIRE(hanging.send("POST", kPods, "{}"));
  Client watching(*scene.proxy);
  REQUIRE(watching.send("GET", "/api/v1/pods?watch=true"));
  REQUIRE(watching.head().ok());
  REQUIRE(scene.proxy->wait_for_record([](const auto& r) { return r.request.sequence == 2; },
                                       seconds(60)));
  scene.proxy->stop();  // both end by nothing else
}

TEST_CASE("an API server that is not there is a cut connection") {
  const auto proxy = std::move(FaultProxy::start({.port = free_port()})).value();
  Client client(*proxy);
  CHECK(client.call("GET", kPods).status == 0);
}

TEST_CASE("an API server with a certificate of somebody else is not talked to") {
  Scene scene;
  const auto other = TestCa("another");
  const auto proxy =
      std::move(FaultProxy::start({.port = scene.upstream.port(), .ca_pem = other.pem()})).value();
  Client client(*proxy);
  CHECK(client.call("GET", kPods).status == 0);
  CHECK(scene.reached == 0);
}

TEST_CASE("the kubeconfig leads to the proxy") {
  const TempDir dir;
  Scene scene;
  REQUIRE(scene.proxy->write_kubeconfig(dir.path("kubeconfig"), "abc").ok());
  std::ifstream in(dir.path("kubeconfig"));
  const auto config = nlohmann::json::parse(in);
  CHECK(config["clusters"][0]["cluster"]["server"] ==
        "https://127.0.0.1:" + std::to_string(scene.proxy->port()));
  CHECK(config["users"][0]["user"]["token"] == "abc");
  CHECK_FALSE(
      config["clusters"][0]["cluster"]["certificate-authority-data"].get<std::string>().empty());
}

}  // namespace
}  // namespace lpp::testing
