// SPDX-License-Identifier: Apache-2.0
#include "agent/inventory_notes.h"

#include <doctest/doctest.h>

namespace lpp::agent {
namespace {

constexpr std::size_t kPlenty = 1U << 20U;

InventoryNotes::Seen seen(std::size_t count, std::int64_t used = 0) {
  InventoryNotes::Seen all;
  for (std::size_t i = 0; i < count; ++i) {
    all.directories.push_back({.path = "/b/" + std::to_string(i), .used = used});
  }
  return all;
}

TimePoint minute(int number) { return TimePoint{} + std::chrono::minutes(number); }

/// All parts, told; how many directories, -1 = there is nothing to tell.
int tell_all(InventoryNotes& notes, TimePoint now, std::size_t bytes = kPlenty) {
  if (!notes.any_news()) return -1;
  int count = 0;
  bool first = true;
  while (const auto part = notes.news(bytes)) {
    CHECK(part->first == first);
    first = false;
    count += static_cast<int>(part->directories.size());
    notes.told(*part, now);
    CHECK(part->last == !notes.any_news());
  }
  return count;
}

TEST_CASE("an inventory is told at the beginning, when it changes, and every ten minutes") {
  InventoryNotes notes;
  CHECK_FALSE(notes.any_news());
  notes.tell_anew();
  CHECK_FALSE(notes.any_news());
  notes.saw(seen(3), minute(0));
  CHECK(tell_all(notes, minute(0)) == 3);
  notes.saw(seen(3, 77), minute(1));  // only how much they hold has changed
  CHECK_FALSE(notes.any_news());
  notes.saw(seen(2), minute(2));
  CHECK(tell_all(notes, minute(2)) == 2);
  notes.saw(seen(2), minute(11));
  CHECK_FALSE(notes.any_news());
  notes.saw(seen(2), minute(12));
  CHECK(tell_all(notes, minute(12)) == 2);
  notes.tell_anew();
  CHECK(tell_all(notes, minute(12)) == 2);
  notes.saw(seen(0), minute(13));
  CHECK(tell_all(notes, minute(13)) == 0);
}

TEST_CASE("a long one is told every ten minutes only, and in parts") {
  InventoryNotes notes;
  const std::size_t many = kMaxListed + InventoryNotes::kFew;
  notes.saw(seen(many), minute(0));
  const auto first = notes.news(kPlenty);
  REQUIRE(first.has_value());
  CHECK(first->directories.size() < many);
  CHECK_FALSE(first->last);
  // What changes meanwhile is for the next time.
  notes.told(*first, minute(0));
  notes.saw(seen(1), minute(1));
  CHECK_FALSE(notes.news(kPlenty)->first);
  int rest = 0;
  while (const auto part = notes.news(1)) {  // one at least
    rest += static_cast<int>(part->directories.size());
    notes.told(*part, minute(1));
  }
  CHECK(first->directories.size() + static_cast<std::size_t>(rest) == many);
  notes.saw(seen(many - 1), minute(9));
  CHECK_FALSE(notes.any_news());
  notes.saw(seen(many - 1), minute(11));
  CHECK(notes.any_news());
  // A session that breaks off begins anew.
  notes.told(*notes.news(kPlenty), minute(11));
  notes.tell_anew();
  CHECK(notes.news(kPlenty)->first);
}

TEST_CASE("a limit is told of a directory that record and disk hold to it, in its place") {
  const node::Limits limits{.bytes = 9};
  const auto told = [](const node::VolumeUsage& volume) {
    node::BaseUsage usage;
    usage.volumes.push_back(volume);
    InventoryNotes::Seen all;
    InventoryNotes::add({.path = "/b", .own = true}, usage, {}, all);
    return all.directories.at(0).limit;
  };
  const node::VolumeUsage held{.volume = {.id = "a", .path = "a", .limits = limits},
                               .use = node::ProjectUse{.bytes = 4, .limits = limits}};
  CHECK(told(held) == 9);
  auto other = held;
  SUBCASE("the quota is off") { other.use.reset(); }
  SUBCASE("the disk has none") { other.use->limits = {}; }
  SUBCASE("the disk has another one") { other.use->limits.bytes = 8; }
  SUBCASE("the record has none") { other.volume.limits = {}; }
  SUBCASE("there is none") { other.volume.limits = other.use->limits = {}; }
  SUBCASE("it was taken out") { other.taken_out = true; }
  SUBCASE("it is on its way") { other.volume.state = node::State::kMaking; }
  CHECK(told(other) == 0);
}

TEST_CASE("what there is in a base path is told by its record, else by what lies there") {
  node::BaseUsage usage;
  usage.volumes.push_back(
      {.volume = {.id = "a", .path = "web/a", .claim = "web/a", .uid = "u", .limits = {.bytes = 9}},
       .use = node::ProjectUse{.bytes = 4}});
  usage.volumes.push_back(
      {.volume = {.id = "gone", .path = "gone", .state = node::State::kRemoving, .size = 5}});
  const node::Inventory inventory{
      .since = {{"a", 100}, {"gone", 200}},
      .leftovers = {{.id = "gone",
                     .state = node::State::kRemoving,
                     .path = ".local-path-provisioner/gone.gone",
                     .has_record = true,
                     .since = 300},
                    {.id = "new", .path = ".local-path-provisioner/new.new", .since = -5},
                    {.id = "busy", .path = ".local-path-provisioner/new.busy", .has_work = true},
                    {.id = "damaged",
                     .path = ".local-path-provisioner/new.damaged",
                     .has_record = true}},
      .bare = {{.path = "by hand", .since = 400}},
      .whole = false};
  InventoryNotes::Seen all;
  InventoryNotes::add({.path = "/b", .own = true}, usage, inventory, all);
  const std::vector<Listed> expected{
      {.path = "/b/web/a",
       .id = "a",
       .claim = "web/a",
       .uid = "u",
       .size = 9,
       .used = 4,
       .since = 100},
      {.path = "/b/gone", .id = "gone", .size = 5, .state = Listed::State::kRemoving, .since = 200},
      {.path = "/b/.local-path-provisioner/new.new", .id = "new", .state = Listed::State::kMaking},
      {.path = "/b/.local-path-provisioner/new.busy",
       .id = "busy",
       .state = Listed::State::kMaking},
      {.path = "/b/by hand", .since = 400}};
  CHECK(all.directories == expected);
  CHECK(all.left_out == 1);
  CHECK(all.directories[0].limit == 0);  // on record only
  REQUIRE(all.leftovers.size() == 2);
  CHECK(all.leftovers[0].listed.path == "/b/gone");
  CHECK(all.leftovers[0].listed.since == 300);
  CHECK(all.leftovers[1].listed.id == "new");

  SUBCASE("of another cluster, or of nobody knows which, nothing is to be swept") {
    InventoryNotes::Seen theirs;
    InventoryNotes::add({.path = "/b", .foreign = "c-2"}, usage, inventory, theirs);
    CHECK(theirs.leftovers.empty());
    REQUIRE(theirs.directories.size() == 5);
    CHECK(theirs.directories[0].cluster == "c-2");
  }
  SUBCASE("there is a most") {
    node::BaseUsage large;
    for (std::size_t i = 0; i < InventoryNotes::kMost; ++i) {
      large.volumes.push_back({.volume = {.id = std::to_string(i), .path = std::to_string(i)}});
    }
    large.volumes.push_back({.volume = {.id = "long", .path = std::string(kMaxPath, 'a')}});
    InventoryNotes::add({.path = "/c", .own = true}, large, {}, all);
    CHECK(all.directories.size() == InventoryNotes::kMost);
    CHECK(all.left_out == 1 + 5 + 1);
  }
}

}  // namespace
}  // namespace lpp::agent
