// SPDX-License-Identifier: Apache-2.0
#include "k8s/work_queue.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;
using namespace std::chrono_literals;

namespace {

using Queue = WorkQueue<std::string>;

/// The machine's clock, which tells how many threads have begun to wait.
class CountingClock final : public Clock {
 public:
  TimePoint now() const override { return clock_.now(); }
  std::chrono::system_clock::time_point wall_now() const override { return clock_.wall_now(); }
  void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) override LPP_REQUIRES(mutex) {
    ++waits;
    clock_.wait_until(cv, mutex, deadline);
  }

  std::atomic<int> waits = 0;

 private:
  SystemClock clock_;
};

/// get() when a key is ready, "" otherwise: never blocks.
std::string take(Queue& queue) { return queue.size() == 0 ? "" : *queue.get(); }

/// Makes due keys ready, as the next get() would: a probe key behind them is taken and given back.
std::vector<std::string> drain(Queue& queue) {
  queue.add("probe");
  std::vector<std::string> keys;
  while (queue.size() > 0) {
    auto key = *queue.get();
    queue.done(key);
    if (key != "probe") keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

TEST_CASE("keys are handed out in the order they were added, each once") {
  FakeClock clock;
  Queue queue(clock);
  for (const char* key : {"a", "b", "a", "c", "b", "a"}) queue.add(key);
  CHECK(queue.size() == 3);
  CHECK(take(queue) == "a");
  CHECK(take(queue) == "b");
  CHECK(take(queue) == "c");
  CHECK(take(queue) == "");
}

TEST_CASE("urgent keys come first, in their own order, each once") {
  FakeClock clock;
  Queue queue(clock);
  for (const char* key : {"a", "b", "c"}) queue.add(key);
  for (const char* key : {"x", "b", "x"}) queue.add_urgent(key);
  queue.add("x");
  queue.add("d");
  CHECK(queue.size() == 5);
  for (const char* key : {"x", "b", "a", "c", "d", ""}) CHECK(take(queue) == key);
}

TEST_CASE("a key that becomes urgent in work is urgent after it, and only once") {
  FakeClock clock;
  Queue queue(clock);
  for (const char* key : {"a", "b", "c"}) queue.add(key);
  CHECK(take(queue) == "a");
  SUBCASE("at once") {}
  SUBCASE("after it was added again") { queue.add("a"); }
  queue.add_urgent("a");
  CHECK(queue.size() == 2);
  queue.done("a");
  CHECK(take(queue) == "a");
  queue.add("a");
  queue.done("a");
  for (const char* key : {"b", "c", "a", ""}) CHECK(take(queue) == key);
}

TEST_CASE("an urgent key does not wait for its due time") {
  FakeClock clock;
  Queue queue(clock);
  queue.add("a");
  queue.add_after("b", 10s);
  queue.add_urgent("b");
  for (const char* key : {"b", "a", ""}) CHECK(take(queue) == key);
  clock.advance(20s);
  CHECK(drain(queue).empty());
}

TEST_CASE("what waits longest is told of urgent keys and of others") {
  FakeClock clock;
  Queue queue(clock);
  queue.add("a");
  clock.advance(3s);
  queue.add_urgent("b");
  clock.advance(1s);
  CHECK(queue.state().ready == 2);
  CHECK(queue.state().longest_waiting == 4s);
  CHECK(take(queue) == "b");
  CHECK(take(queue) == "a");
  CHECK(queue.state().longest_waiting == 0s);
}

TEST_CASE("a key added while in work comes again only after done") {
  FakeClock clock;
  Queue queue(clock);
  queue.add("a");
  CHECK(take(queue) == "a");
  queue.add("a");
  queue.add("a");
  queue.add("b");
  CHECK(take(queue) == "b");
  CHECK(queue.size() == 0);
  queue.done("a");
  CHECK(queue.size() == 1);
  CHECK(take(queue) == "a");
  queue.done("a");
  CHECK(queue.size() == 0);
}

TEST_CASE("a key that nobody has in work may be reported done without effect") {
  FakeClock clock;
  Queue queue(clock);
  queue.done("a");
  queue.add("a");
  queue.done("a");
  CHECK(queue.size() == 1);
  CHECK(take(queue) == "a");
}

TEST_CASE("a delayed key comes when it is due, not before") {
  FakeClock clock;
  Queue queue(clock);
  queue.add_after("a", 10s);
  clock.advance(9999ms);
  CHECK(drain(queue).empty());
  clock.advance(1ms);
  CHECK(drain(queue) == std::vector<std::string>{"a"});
  CHECK(drain(queue).empty());
}

TEST_CASE("delayed keys come in the order of their due times") {
  FakeClock clock;
  Queue queue(clock);
  queue.add_after("late", 3s);
  queue.add_after("early", 1s);
  queue.add_after("middle", 2s);
  queue.add_after("now", 0s);
  queue.add_after("past", -5s);
  CHECK(take(queue) == "now");
  CHECK(take(queue) == "past");
  clock.advance(5s);
  CHECK(drain(queue) == std::vector<std::string>{"early", "middle", "late"});
}

TEST_CASE("of several due times the earliest counts") {
  FakeClock clock;
  Queue queue(clock);
  SUBCASE("a later one does not postpone") {
    queue.add_after("a", 1s);
    queue.add_after("a", 10s);
  }
  SUBCASE("an earlier one brings forward") {
    queue.add_after("a", 10s);
    queue.add_after("a", 1s);
  }
  clock.advance(1s);
  CHECK(drain(queue) == std::vector<std::string>{"a"});
  clock.advance(1h);
  CHECK(drain(queue).empty());
}

TEST_CASE("a key that is added now needs no later visit") {
  FakeClock clock;
  Queue queue(clock);
  SUBCASE("delayed first") {
    queue.add_after("a", 10s);
    queue.add("a");
  }
  SUBCASE("delayed while ready") {
    queue.add("a");
    queue.add_after("a", 10s);
  }
  CHECK(drain(queue) == std::vector<std::string>{"a"});
  clock.advance(1h);
  CHECK(drain(queue).empty());
}

TEST_CASE("a key delayed by its own worker comes after the delay") {
  FakeClock clock;
  Queue queue(clock);
  queue.add("a");
  CHECK(take(queue) == "a");
  queue.add_after("a", 10s);
  queue.done("a");
  CHECK(drain(queue).empty());
  clock.advance(10s);
  CHECK(drain(queue) == std::vector<std::string>{"a"});
}

TEST_CASE("a delayed key that falls due while in work waits for done") {
  FakeClock clock;
  Queue queue(clock);
  queue.add("a");
  CHECK(take(queue) == "a");
  queue.add_after("a", 1s);
  clock.advance(2s);
  CHECK(drain(queue).empty());
  queue.done("a");
  CHECK(drain(queue) == std::vector<std::string>{"a"});
}

TEST_CASE("a delay beyond the end of time does not overflow") {
  FakeClock clock;
  Queue queue(clock);
  queue.add_after("a", Duration::max());
  clock.advance(24h);
  CHECK(drain(queue).empty());
  queue.add_after("a", 1s);
  clock.advance(1s);
  CHECK(drain(queue) == std::vector<std::string>{"a"});
}

TEST_CASE("back-off doubles per key up to the cap, with jitter, until it is forgotten") {
  FakeClock clock;
  Queue queue(clock, {.base = 15s, .cap = 1000s, .jitter = 0.1});
  const std::array<Duration, 9> expected = {15s, 30s, 60s, 120s, 240s, 480s, 960s, 1000s, 1000s};
  int n = 0;
  for (const Duration base : expected) {
    CHECK(queue.failures("a") == n++);
    const Duration delay = queue.add_rate_limited("a");
    CHECK(delay >= base);
    CHECK(delay < base + base / 10 + 1ns);
    clock.advance(delay);
    CHECK(drain(queue) == std::vector<std::string>{"a"});
  }
  CHECK(queue.failures("b") == 0);
  CHECK(queue.add_rate_limited("b") < 17s);
  queue.forget("a");
  CHECK(queue.failures("a") == 0);
  CHECK(queue.add_rate_limited("a") < 17s);
  for (int i = 0; i < 10'000; ++i) CHECK(queue.add_rate_limited("c") <= 1100s);
}

TEST_CASE("jitter differs from key to key") {
  FakeClock clock;
  WorkQueue<int> queue(clock, {.base = 10s, .cap = 100s, .jitter = 1.0});
  std::set<Duration> delays;
  for (int key = 0; key < 20; ++key) delays.insert(queue.add_rate_limited(key));
  CHECK(delays.size() > 15);
}

TEST_CASE("a waiting consumer is woken by a key, by a due time, and by shutdown") {
  FakeClock clock;
  Queue queue(clock);
  auto consumer = std::async(std::launch::async, [&] {
    std::vector<std::string> keys;
    while (auto key = queue.get()) {
      keys.push_back(*key);
      queue.done(*key);
    }
    return keys;
  });
  queue.add("a");
  queue.add_after("b", 5s);
  clock.advance(5s);
  // "b" is handed out before "c" can be.
  CHECK(eventually([&] { return queue.size() == 0; }));
  queue.add("c");
  CHECK(eventually([&] { return queue.size() == 0; }));
  clock.advance(1s);
  queue.shutdown();
  REQUIRE(consumer.wait_for(60s) == std::future_status::ready);
  const auto keys = consumer.get();
  CHECK(std::set<std::string>(keys.begin(), keys.end()) == std::set<std::string>{"a", "b", "c"});
}

TEST_CASE("after shutdown nothing is handed out and adding has no effect") {
  FakeClock clock;
  Queue queue(clock);
  queue.add("a");
  queue.add("b");
  queue.add_after("c", 1s);
  CHECK(take(queue) == "a");
  queue.add("a");
  queue.shutdown();
  CHECK_FALSE(queue.get().has_value());
  queue.done("a");
  queue.add("d");
  queue.add_after("e", 0s);
  clock.advance(1h);
  CHECK_FALSE(queue.get().has_value());
  CHECK(queue.size() == 0);
}

TEST_CASE("every consumer leaves at shutdown") {
  SystemClock clock;
  Queue queue(clock);
  queue.add_after("a", 1h);
  std::vector<std::future<bool>> consumers;
  consumers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    consumers.push_back(std::async(std::launch::async, [&] { return queue.get().has_value(); }));
  }
  queue.shutdown();
  for (auto& consumer : consumers) {
    REQUIRE(consumer.wait_for(60s) == std::future_status::ready);
    CHECK_FALSE(consumer.get());
  }
}

TEST_CASE("each of two due times finds one of the consumers that already wait") {
  CountingClock clock;
  Queue queue(clock);
  std::atomic<int> taken = 0;
  // Each takes one key and keeps it.
  std::vector<std::jthread> consumers;
  consumers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    consumers.emplace_back([&] {
      if (queue.get()) ++taken;
    });
  }
  REQUIRE(eventually([&] { return clock.waits >= 2; }));
  queue.add_after("first", 5ms);
  queue.add_after("second", 10ms);  // whoever waits for the first is busy by then
  CHECK(eventually([&] { return taken == 2; }));
  queue.shutdown();
}

TEST_CASE("many producers and consumers: nothing is lost and no key is with two at once") {
  constexpr int kKeys = 50;
  constexpr int kAddsPerProducer = 4000;
  SystemClock clock;
  WorkQueue<int> queue(clock, {.base = 1us, .cap = 50us, .jitter = 1.0});
  std::array<std::atomic<int>, kKeys> in_work{};
  std::array<std::atomic<std::uint64_t>, kKeys> added{};  // a version per key, as in the cluster
  std::array<std::atomic<std::uint64_t>, kKeys> seen{};
  std::atomic<int> overlaps = 0;

  std::vector<std::jthread> consumers;
  consumers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    consumers.emplace_back([&] {
      while (const auto key = queue.get()) {
        const auto k = static_cast<std::size_t>(*key);
        if (in_work[k].fetch_add(1) != 0) ++overlaps;
        const auto version = added[k].load();
        if (random_below(10) == 0) {
          queue.add_rate_limited(*key);
        } else {
          seen[k].store(version);
          queue.forget(*key);
        }
        in_work[k].fetch_sub(1);
        queue.done(*key);
      }
    });
  }
  {
    std::vector<std::jthread> producers;
    producers.reserve(3);
    for (int i = 0; i < 3; ++i) {
      producers.emplace_back([&] {
        for (int n = 0; n < kAddsPerProducer; ++n) {
          const auto k = random_below(kKeys);
          added[k].fetch_add(1);
          if (random_below(2) == 0) {
            queue.add(static_cast<int>(k));
          } else {
            queue.add_after(static_cast<int>(k), std::chrono::microseconds(random_below(100)));
          }
        }
      });
    }
  }
  const auto all_seen = [&] {
    for (std::size_t k = 0; k < kKeys; ++k) {
      if (seen[k].load() != added[k].load()) return false;
    }
    return true;
  };
  CHECK(eventually(all_seen));
  CHECK(overlaps == 0);
  queue.shutdown();
}

TEST_CASE("a queue tells how long keys wait and are worked on, and what stands still") {
  FakeClock clock;
  WorkQueueStats stats;
  Queue queue(clock, {.base = 10s, .cap = 100s, .jitter = 0}, &stats);
  queue.add("a");
  queue.add("a");  // once is enough
  queue.add("b");
  clock.advance(3s);
  const auto a = queue.get();
  REQUIRE(a == "a");
  CHECK(queue.waiting_since("a") == clock.now() - 3s);
  clock.advance(2s);
  queue.add("a");  // waits until it is done
  WorkQueueState state = queue.state();
  CHECK(state.ready == 1);
  CHECK(state.in_work == 1);
  CHECK(state.longest_work == 2s);
  CHECK(state.work_so_far == 2s);
  CHECK(state.longest_waiting == 5s);
  CHECK(state.since_last_get == 2s);
  queue.add_rate_limited("c");
  queue.done("a");
  state = queue.state();
  CHECK(state.ready == 2);
  CHECK(state.in_work == 0);
  CHECK(state.delayed == 1);
  CHECK(stats.adds == 3);
  CHECK(stats.retries == 1);
  CHECK(stats.waited.snapshot().sum_seconds == 3);
  CHECK(stats.worked.snapshot().sum_seconds == 2);
}
