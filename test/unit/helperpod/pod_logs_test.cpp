// SPDX-License-Identifier: Apache-2.0
#include "helperpod/pod_logs.h"

#include <doctest/doctest.h>

#include <atomic>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"

namespace lpp::helperpod {
namespace {

using testing::eventually;

struct LogScene {
  testing::FakeClock clock;
  testing::FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  std::atomic<int> told = 0;
  PodLogs logs{client, clock};

  void begin() {
    logs.begin([this](const std::string&) { ++told; });
  }
  static PodLogs::Pod pod(const std::string& name, const std::string& node = "n1") {
    return {.key = {"lps", name}, .uid = "uid-" + name, .node = node, .container = "helper-pod"};
  }
  bool known(const PodLogs::Pod& pod) { return logs.read(pod).known; }
};

TEST_CASE("a log is read once, by another thread, and told when it is there") {
  LogScene scene;
  scene.transport.on("GET", "/log").reply(200, "no space left", "text/plain");
  scene.begin();
  const auto first = scene.logs.read(LogScene::pod("a"));
  if (!first.known) CHECK(first.known_by == scene.clock.now() + PodLogs::kPatience);
  REQUIRE(eventually([&] { return scene.told == 1; }));
  CHECK(scene.known(LogScene::pod("a")));
  CHECK(scene.logs.read(LogScene::pod("a")).text == "no space left");
  CHECK(scene.transport.count("GET", "/log") == 1);
  scene.logs.forget("uid-a");
}

TEST_CASE("nothing is read while nobody works: a failure is told without its log") {
  LogScene scene;
  CHECK(scene.known(LogScene::pod("a")));
  scene.begin();
  scene.logs.end();
  CHECK(scene.known(LogScene::pod("b")));
  CHECK(scene.transport.requests().empty());
}

TEST_CASE("a log that cannot be read is known to be nothing") {
  LogScene scene;
  scene.transport.on("GET", "/log").reply(500);
  scene.begin();
  (void)scene.logs.read(LogScene::pod("a"));
  REQUIRE(eventually([&] { return scene.told == 1; }));
  CHECK(scene.known(LogScene::pod("a")));
  CHECK(scene.logs.read(LogScene::pod("a")).text.empty());
}

TEST_CASE("a kubelet that hangs holds up nobody longer than the patience, and no end") {
  LogScene scene;
  scene.transport.on("GET", "/log").hang();
  scene.begin();
  CHECK_FALSE(scene.known(LogScene::pod("a")));
  REQUIRE(scene.transport.wait_for_requests(1));
  CHECK_FALSE(scene.known(LogScene::pod("b", "n2")));
  scene.clock.advance(PodLogs::kPatience);
  CHECK(scene.known(LogScene::pod("a")));
  CHECK(scene.known(LogScene::pod("b", "n2")));
  scene.logs.end();  // cuts the call short
  CHECK(scene.transport.count("GET", "/log") == 1);
}

TEST_CASE("a node that let a call run into its deadline is not asked for a while, others are") {
  LogScene scene;
  scene.transport.on("GET", "/pods/a/log").fail(ErrorCode::kTimeout);
  scene.transport.on("GET", "/pods/b/log").reply(200, "said", "text/plain");
  scene.transport.on("GET", "/pods/d/log").reply(200, "later", "text/plain");
  scene.begin();
  (void)scene.logs.read(LogScene::pod("a"));
  (void)scene.logs.read(LogScene::pod("b", "n2"));
  (void)scene.logs.read(LogScene::pod("c"));
  REQUIRE(eventually([&] { return scene.told == 3; }));
  CHECK(scene.logs.read(LogScene::pod("b", "n2")).text == "said");
  CHECK(scene.known(LogScene::pod("c")));
  CHECK(scene.logs.read(LogScene::pod("c")).text.empty());
  CHECK(scene.transport.count("GET", "/pods/c/log") == 0);
  scene.clock.advance(std::chrono::seconds(61));
  (void)scene.logs.read(LogScene::pod("d"));
  REQUIRE(eventually([&] { return scene.told == 4; }));
  CHECK(scene.logs.read(LogScene::pod("d")).text == "later");
}

}  // namespace
}  // namespace lpp::helperpod
