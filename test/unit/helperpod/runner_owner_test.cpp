// SPDX-License-Identifier: Apache-2.0
// Who is told of what, and when.

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "fakes/eventually.h"
#include "fakes/helper_pod_scene.h"

using namespace lpp;
using namespace lpp::helperpod;
using namespace lpp::testing;
using operation::Operation;
using Names = std::vector<std::string>;

namespace {

Operation make_for(const std::string& volume, const std::string& node = "n1") {
  Operation operation;
  operation.volume_name = volume;
  operation.owner_uid = "1";
  operation.node = node;
  operation.path = "/data/" + volume;
  return operation;
}

std::string pod_of(const std::string& volume) { return "helper-pod-create-" + volume; }

}  // namespace

TEST_CASE(
    "the owner is woken for what is recorded when it begins, and for every change until it ends") {
  HelperPodScene scene;
  scene.accept_posts();
  scene.run(make_for("a"));
  scene.begin();
  CHECK(scene.take_woken() == Names{"a"});
  scene.start(make_for("b"));
  CHECK(scene.take_woken().empty());
  scene.show(HelperPodScene::running(scene.posted()));
  CHECK(scene.take_woken() == Names{"b"});
  scene.hide(pod_of("b"));
  CHECK(scene.take_woken() == Names{"b"});
  scene.runner.end(Duration::zero());
  scene.hide(pod_of("a"));
  CHECK(scene.take_woken().empty());
  scene.begin();
  CHECK(scene.take_woken().empty());
}

TEST_CASE("after the end the owner is told nothing, not even by a call that had begun") {
  HelperPodScene scene;
  scene.accept_posts();
  std::atomic<bool> telling = false;
  std::atomic<bool> ended = false;
  std::atomic<bool> told_after_end = false;
  scene.runner.begin(
      {.wake =
           [&](const Operation&) {
             telling = true;
             if (eventually([&] { return ended.load(); }, std::chrono::milliseconds(100))) {
               told_after_end = true;
             }
           },
       .is_quiet = [] { return false; }});
  scene.start(make_for("a"));
  const auto pod = HelperPodScene::running(scene.posted());
  std::jthread informer([&] { scene.show(pod); });
  REQUIRE(eventually([&] { return telling.load(); }));
  scene.runner.end(Duration::zero());
  ended = true;
  informer.join();
  CHECK_FALSE(told_after_end);
}

TEST_CASE("when a node changes, owners of what is recorded there are woken") {
  HelperPodScene scene;
  scene.accept_posts();
  scene.begin();
  scene.start(make_for("a", "n1"));
  scene.start(make_for("b", "n2"));
  scene.runner.node_changed("n2");
  CHECK(scene.take_woken() == Names{"b"});
  scene.runner.node_changed("n3");
  CHECK(scene.take_woken().empty());
}

TEST_CASE(
    "a node gets no more helper pods than it may, and who waits is woken when there is room") {
  HelperPodScene scene(1);
  scene.accept_posts();
  scene.begin();
  {
    const auto room = scene.runner.admit(make_for("a"));
    REQUIRE(room);
    CHECK_FALSE(scene.runner.admit(make_for("b")));
    scene.start(make_for("a"));
  }
  CHECK(scene.take_woken().empty());  // started: the room is still taken
  CHECK_FALSE(scene.runner.admit(make_for("b")));
  CHECK(scene.runner.admit(make_for("c", "n2")));
  (void)scene.take_woken();
  const auto pod = scene.posted();
  SUBCASE("when the pod is over") { scene.show(HelperPodScene::ended(pod, 0)); }
  SUBCASE("when the pod is gone") {
    scene.show(HelperPodScene::running(pod));
    CHECK_FALSE(scene.runner.admit(make_for("b")));
    (void)scene.take_woken();
    scene.hide(pod_of("a"));
  }
  auto woken = scene.take_woken();
  std::sort(woken.begin(), woken.end());
  CHECK(woken == Names{"a", "b"});
  CHECK(scene.runner.admit(make_for("b")));
}

TEST_CASE("room that was not used is given back") {
  HelperPodScene scene(1);
  scene.begin();
  {
    const auto room = scene.runner.admit(make_for("a"));
    REQUIRE(room);
    CHECK_FALSE(scene.runner.admit(make_for("b")));
  }
  CHECK(scene.take_woken() == Names{"b"});
  CHECK(scene.runner.admit(make_for("b")));
}

TEST_CASE("after a restart the pods at work count, those that are over do not") {
  HelperPodScene first;
  first.accept_posts();
  first.start(make_for("a"));
  HelperPodScene restarted(1);
  SUBCASE("at work") {
    restarted.show(HelperPodScene::running(first.posted()));
    CHECK_FALSE(restarted.runner.admit(make_for("b")));
  }
  SUBCASE("over") {
    restarted.show(HelperPodScene::ended(first.posted(), 0));
    CHECK(restarted.runner.admit(make_for("b")));
  }
}
