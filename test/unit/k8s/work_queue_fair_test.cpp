// SPDX-License-Identifier: Apache-2.0
// How a queue is shared out between namespaces.

#include <doctest/doctest.h>

#include <future>
#include <set>
#include <string>
#include <vector>

#include "fakes/fake_clock.h"
#include "k8s/work_queue.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;
using namespace std::chrono_literals;

namespace {

/// "team/claim".
struct TeamOf {
  std::string_view operator()(const std::string& key) const {
    return std::string_view(key).substr(0, key.find('/'));
  }
};
using SharedQueue = WorkQueue<std::string, std::hash<std::string>, TeamOf>;

std::string of(const char* team, int number) {
  return std::string(team) + "/" + std::to_string(number);
}

}  // namespace

TEST_CASE("namespaces take turns, however many keys one of them has") {
  FakeClock clock;
  SharedQueue queue(clock);
  for (int i = 0; i < 5000; ++i) queue.add(of("loud", i));
  CHECK(*queue.get() == "loud/0");
  queue.add("quiet/0");
  queue.add("quiet/1");
  queue.add("other/0");
  for (const char* key :
       {"loud/1", "quiet/0", "other/0", "loud/2", "quiet/1", "loud/3", "loud/4"}) {
    CHECK(*queue.get() == key);
  }
  CHECK(queue.size() == 4995);
  CHECK(queue.state().ready == 4995);
}

TEST_CASE("keys that are changed in a loop, or are urgent, have no more than their turn") {
  FakeClock clock;
  SharedQueue queue(clock);
  constexpr int kLoud = 5000;
  for (int i = 0; i < kLoud; ++i) queue.add(of("loud", i));
  int handed_out = 0;
  const auto loud_step = [&](bool urgent) {
    const auto key = *queue.get();
    CHECK(key.starts_with("loud/"));
    for (int i = 0; i < 3; ++i) urgent ? queue.add_urgent(key) : queue.add(key);
    queue.done(key);
    ++handed_out;
  };
  for (const bool urgent : {false, true}) {
    for (int i = 0; i < 50; ++i) loud_step(urgent);
    for (int i = 0; i < 10; ++i) queue.add(of("quiet", i));
    handed_out = 0;
    for (int i = 0; i < 10; ++i) {
      loud_step(urgent);
      const auto key = *queue.get();
      CHECK(key == of("quiet", i));
      queue.done(key);
    }
    CHECK(handed_out == 10);
  }
}

TEST_CASE("urgent keys that are added without end do not starve the others of their namespace") {
  FakeClock clock;
  SharedQueue queue(clock);
  for (int i = 0; i < 20; ++i) queue.add_urgent(of("loud", i));
  queue.add("loud/new");
  for (int i = 0; i < SharedQueue::kUrgentInARow; ++i) {
    const auto key = *queue.get();
    CHECK(key == of("loud", i));
    queue.done(key);
    queue.add_urgent(key);
  }
  CHECK(*queue.get() == "loud/new");
  CHECK(*queue.get() == of("loud", SharedQueue::kUrgentInARow));
}

TEST_CASE("one namespace never has more keys in work than it may") {
  FakeClock clock;
  SharedQueue queue(clock, {}, nullptr, 2);
  for (int i = 0; i < 4; ++i) queue.add(of("loud", i));
  CHECK(*queue.get() == "loud/0");
  CHECK(*queue.get() == "loud/1");
  queue.add("quiet/0");
  queue.add_urgent("loud/4");
  CHECK(*queue.get() == "quiet/0");
  // Nothing more may be handed out until one is done, and then one is.
  auto next = std::async(std::launch::async, [&] { return *queue.get(); });
  CHECK(next.wait_for(30ms) == std::future_status::timeout);
  queue.add("loud/1");  // in work: waits for that, and for its turn
  queue.done("loud/0");
  REQUIRE(next.wait_for(60s) == std::future_status::ready);
  CHECK(next.get() == "loud/4");
  CHECK(queue.size() == 2);
  queue.done("loud/1");
  CHECK(*queue.get() == "loud/2");
  queue.done("loud/4");
  queue.done("loud/2");
  CHECK(*queue.get() == "loud/3");
  CHECK(*queue.get() == "loud/1");
}

TEST_CASE("the lines of many namespaces come and go") {
  FakeClock clock;
  SharedQueue queue(clock, {}, nullptr, 1);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i) {
      queue.add(std::to_string(i) + "/a");
      queue.add(std::to_string(i) + "/b");
    }
    std::set<std::string> seen;
    while (queue.size() > 0) {
      const auto key = *queue.get();
      seen.insert(key);
      queue.done(key);
    }
    CHECK(seen.size() == 1000);
  }
}

TEST_CASE("a key that goes on failing is not handed out each time its object changes") {
  FakeClock clock;
  SharedQueue queue(clock, {.base = 10s, .cap = 100s, .jitter = 0, .least = 1s});
  const auto fail = [&](const std::string& key) {
    queue.add_rate_limited(key);
    queue.done(key);
  };
  // The first changes may heal it.
  for (int i = 0; i < BackoffPolicy::kFreeFailures; ++i) {
    queue.add("a");
    CHECK(*queue.get() == "a");
    fail("a");
  }
  queue.add("a");
  CHECK(*queue.get() == "a");
  queue.add("a");  // changed while in work
  fail("a");
  int steps = 0;
  for (int i = 0; i < 100; ++i) {
    i % 2 == 0 ? queue.add("a") : queue.add_urgent("a");
    clock.advance(100ms);
    queue.add("probe/0");  // get() makes ready what is due, and never waits for it here
    while (queue.size() > 0) {
      const auto key = *queue.get();
      if (key == "a") {
        ++steps;
        queue.add_rate_limited(key);
      }
      queue.done(key);
    }
  }
  CHECK(steps >= 8);
  CHECK(steps <= 10);
  queue.forget("a");
  queue.add("a");
  CHECK(*queue.get() == "a");
}
