// SPDX-License-Identifier: Apache-2.0
#include "provisioner/crew.h"

#include <doctest/doctest.h>

#include <semaphore>

#include "base/clock.h"
#include "fakes/eventually.h"
#include "k8s/work_queue.h"
#include "provisioner/action.h"

using namespace lpp;

namespace {

/// Threads that are busy from taking a key until the test lets them go on.
struct Workshop {
  explicit Workshop(std::size_t most) : crew("worker-", most, [this] { run(); }) { crew.start(); }
  ~Workshop() {
    queue.shutdown();
    go_on.release(100);
    crew.join();
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  void run() {
    while (const auto key = queue.get()) {
      {
        const provisioner::Crew::Busy busy(crew);
        taken.release();
        go_on.acquire();
      }
      queue.done(*key);
    }
  }

  SystemClock clock;
  k8s::WorkQueue<int> queue{clock};
  std::counting_semaphore<> taken{0};
  std::counting_semaphore<> go_on{0};
  provisioner::Crew crew;
};

}  // namespace

TEST_CASE("of what two steps of one key ask for, neither is missed") {
  using provisioner::Action;
  using provisioner::sooner;
  const Action soon = Action::await_change(std::chrono::seconds(15));
  const Action later = Action::await_change(std::chrono::minutes(15));
  CHECK(sooner(soon, later) == soon);
  CHECK(sooner(Action::done(), later) == later);
  CHECK(sooner(Action::retry(), Action::done()) == Action::retry());
  // Its back-off may have grown long.
  for (const Action both : {sooner(Action::retry(), soon), sooner(soon, Action::retry())}) {
    CHECK(both.kind == Action::Kind::kRetry);
    CHECK(both.after == soon.after);
  }
}

TEST_CASE("a crew is one larger than its work, up to its limit") {
  Workshop workshop(3);
  CHECK(workshop.crew.size() == 1);
  workshop.queue.add(1);
  workshop.taken.acquire();
  CHECK(workshop.crew.size() == 2);
  workshop.queue.add(2);
  workshop.taken.acquire();  // another thread took it: the first is still busy
  CHECK(workshop.crew.size() == 3);
  workshop.queue.add(3);
  workshop.taken.acquire();
  workshop.queue.add(4);
  CHECK(workshop.crew.size() == 3);
  CHECK(workshop.queue.size() == 1);  // nobody is left for it
  workshop.go_on.release();
  workshop.taken.acquire();
  CHECK(workshop.queue.size() == 0);
}

TEST_CASE("a crew with work for one thread stays small, and adds nothing once it has ended") {
  Workshop workshop(8);
  for (int key = 0; key < 20; ++key) {
    workshop.queue.add(key);
    workshop.taken.acquire();
    CHECK(workshop.crew.size() == 2);
    workshop.go_on.release();
    CHECK(testing::eventually([&] { return workshop.queue.state().in_work == 0; }));
  }
  workshop.queue.shutdown();
  workshop.crew.join();
  CHECK(workshop.crew.size() == 0);
  const provisioner::Crew::Busy late(workshop.crew);
  CHECK(workshop.crew.size() == 0);
}
