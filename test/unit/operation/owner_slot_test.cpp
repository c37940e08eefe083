// SPDX-License-Identifier: Apache-2.0
#include "operation/owner_slot.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

using namespace lpp;

using operation::Operation;
using operation::Owner;
using operation::OwnerSlot;

namespace {

Owner owner_of(std::function<void()> wake) {
  return {.wake = [wake = std::move(wake)](const Operation&) { wake(); }, .is_quiet = {}};
}

}  // namespace

TEST_CASE("an owner is called as long as it is set, and the next one in its place") {
  OwnerSlot slot;
  int first = 0;
  int second = 0;
  slot.wake({});
  slot.set(owner_of([&] { ++first; }));
  slot.wake({});
  slot.clear();
  slot.wake({});
  slot.call([&](const Owner&) { ++first; });
  CHECK(first == 1);
  slot.set(owner_of([&] { ++second; }));
  slot.wake({});
  CHECK(first == 1);
  CHECK(second == 1);
}

TEST_CASE("an owner is called under no lock: it may lead to another call of itself") {
  OwnerSlot slot;
  int woken = 0;
  slot.set(owner_of([&] {
    if (++woken == 1) slot.wake({});
  }));
  slot.wake({});
  CHECK(woken == 2);
}

TEST_CASE("two calls of an owner run at the same time") {
  OwnerSlot slot;
  std::counting_semaphore<> inside{0};
  std::counting_semaphore<> go_on{0};
  slot.set(owner_of([&] {
    inside.release();
    go_on.acquire();
  }));
  const std::jthread one([&] { slot.wake({}); });
  const std::jthread other([&] { slot.wake({}); });
  inside.acquire();
  inside.acquire();
  go_on.release(2);
}

TEST_CASE("an owner that is taken off is called no more, also by who had begun to") {
  for (int round = 0; round < 10; ++round) {
    OwnerSlot slot;
    std::atomic<bool> is_set = true;
    std::atomic<int> late = 0;
    std::counting_semaphore<> called{0};
    slot.set(owner_of([&] {
      called.release();
      if (!is_set) ++late;
    }));
    std::vector<std::jthread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) slot.wake({});
      });
    }
    called.acquire();
    slot.clear();
    is_set = false;
    slot.wake({});
    callers.clear();
    CHECK(late == 0);
  }
}

TEST_CASE("to take an owner off waits for a call that runs, and leaves nothing of the owner") {
  OwnerSlot slot;
  std::binary_semaphore inside{0};
  std::binary_semaphore go_on{0};
  std::atomic<bool> is_cleared = false;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> left = held;
  slot.set(owner_of([&, held = std::move(held)] {
    inside.release();
    go_on.acquire();
    CHECK_FALSE(is_cleared);
  }));
  const std::jthread caller([&] { slot.wake({}); });
  inside.acquire();
  const std::jthread clearer([&] {
    slot.clear();
    is_cleared = true;
    CHECK(left.expired());
  });
  // As soon as clear() has begun, nobody else gets to the owner.
  bool is_reached = true;
  while (is_reached) {
    is_reached = false;
    slot.call([&](const Owner&) { is_reached = true; });
  }
  CHECK_FALSE(is_cleared);
  go_on.release();
}
