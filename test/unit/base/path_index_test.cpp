// SPDX-License-Identifier: Apache-2.0
#include "base/path_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/paths.h"

using namespace lpp;

namespace {

struct Place {
  std::string path;
  int number = 0;
};

std::shared_ptr<const Place> place(std::string path, int number = 0) {
  return std::make_shared<const Place>(Place{.path = std::move(path), .number = number});
}

bool any(const Place&) { return true; }

}  // namespace

TEST_CASE("a path index finds what is, contains or lies inside a path, by whole components") {
  PathIndex<Place> index;
  const auto base = place("/data/a");
  const auto inner = place("/data/b/c/d");
  index.add(base);
  index.add(inner);
  index.add(place("/data/ab"));
  index.add(place("/data/a-1"));
  CHECK(index.find_overlapping("/data/a", any) == base);
  CHECK(index.find_overlapping("/data/a/x/y", any) == base);
  CHECK(index.find_overlapping("/data/b", any) == inner);
  CHECK(index.find_overlapping("/data/b/c/d", any) == inner);
  CHECK(index.find_overlapping("/data/b/c/dd", any) == nullptr);
  CHECK(index.find_overlapping("/data/b/e", any) == nullptr);
  CHECK(index.find_overlapping("/", any) != nullptr);
  index.add(place("/"));
  CHECK(index.find_overlapping("/elsewhere", any)->path == "/");
}

TEST_CASE("a path index keeps items of one path apart, and none without a path") {
  PathIndex<Place> index;
  const auto first = place("/a", 1);
  const auto second = place("/a", 2);
  index.add(first);
  index.add(second);
  const auto number = [](int wanted) {
    return [wanted](const Place& item) { return item.number == wanted; };
  };
  CHECK(index.find_overlapping("/a", number(1)) == first);
  CHECK(index.find_overlapping("/a/b", number(2)) == second);
  index.remove(first);
  index.remove(first);
  index.remove(place("/a", 2));  // another item that looks the same
  CHECK(index.find_overlapping("/", number(1)) == nullptr);
  CHECK(index.find_overlapping("/a", any) == second);
  const auto nowhere = place("");
  index.add(nowhere);
  index.remove(nowhere);
  index.remove(second);
  CHECK(index.find_overlapping("/", any) == nullptr);
}

TEST_CASE("a path index finds what a look at every item finds") {
  std::mt19937 random(20261122);  // the same paths every time
  const auto pick = [&](int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random);
  };
  const auto path = [&] {
    std::string made;
    for (int parts = pick(4); parts > 0; --parts) {
      made += '/';
      for (int letters = 1 + pick(2); letters > 0; --letters) made += "a-b0"[pick(4)];
    }
    return made.empty() ? "/" : made;
  };
  for (int round = 0; round < 300; ++round) {
    PathIndex<Place> index;
    std::vector<std::shared_ptr<const Place>> all;
    for (int count = pick(12); count > 0; --count) {
      all.push_back(place(path(), pick(3)));
      index.add(all.back());
      if (pick(4) == 0) {
        index.remove(all.back());
        all.pop_back();
      }
    }
    for (int query = 0; query < 20; ++query) {
      const std::string wanted = path();
      const int number = pick(3);
      const auto matches = [&](const Place& item) { return item.number == number; };
      const bool there = std::any_of(all.begin(), all.end(), [&](const auto& item) {
        return matches(*item) && overlaps(item->path, wanted);
      });
      const auto found = index.find_overlapping(wanted, matches);
      CAPTURE(wanted);
      REQUIRE((found != nullptr) == there);
      if (found) CHECK((overlaps(found->path, wanted) && found->number == number));
      const auto every = index.all_overlapping(wanted);
      CHECK(std::all_of(every.begin(), every.end(),
                        [&](const auto& item) { return overlaps(item->path, wanted); }));
      CHECK(static_cast<std::ptrdiff_t>(every.size()) ==
            std::count_if(all.begin(), all.end(),
                          [&](const auto& item) { return overlaps(item->path, wanted); }));
    }
  }
}
