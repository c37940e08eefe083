// SPDX-License-Identifier: Apache-2.0
// Which of the answers of a file system's quota are told, and when.

#include "agent/usage_notes.h"

#include <doctest/doctest.h>

#include <limits>

namespace lpp::agent {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

node::VolumeUsage volume_of(const std::string& path, std::optional<node::ProjectUse> use) {
  node::VolumeUsage one{.use = use};
  one.volume.path = path;
  return one;
}

UsageNotes::Seen seen(const std::vector<node::VolumeUsage>& volumes) {
  UsageNotes::Seen all;
  UsageNotes::add("/data", volumes, all);
  return all;
}

UsageNotes::Seen one(std::int64_t bytes, std::int64_t limit, std::int64_t inodes = 1,
                     std::int64_t limit_inodes = 0) {
  return {{"/data/a",
           {.bytes = bytes, .limit_bytes = limit, .inodes = inodes, .limit_inodes = limit_inodes}}};
}

/// Whether it is told; it is heard then.
bool tells(UsageNotes& notes, const UsageNotes::Seen& now) {
  notes.saw(now);
  const auto news = notes.news(1000);
  CHECK(news.empty() != notes.any_news());
  notes.told(news);
  CHECK_FALSE(notes.any_news());
  return !news.empty();
}

TEST_CASE("a volume that is counted is told with its path, one without a limit is not") {
  node::VolumeUsage going = volume_of("web/gone", node::ProjectUse{.bytes = 1});
  going.volume.state = node::State::kRemoving;
  const auto all = seen(
      {volume_of("web/a",
                 node::ProjectUse{.bytes = 7, .inodes = 3, .limits = {.bytes = 9, .inodes = 5}}),
       volume_of("btrfs", node::ProjectUse{.bytes = 1, .inodes = std::nullopt}),
       volume_of("free", std::nullopt), going,
       volume_of("odd", node::ProjectUse{.bytes = std::numeric_limits<std::uint64_t>::max()})});
  REQUIRE(all.size() == 3);
  CHECK(all.at("/data/web/a") ==
        operation::Usage{.bytes = 7, .limit_bytes = 9, .inodes = 3, .limit_inodes = 5});
  CHECK_FALSE(all.at("/data/btrfs").inodes.has_value());
  CHECK(all.at("/data/odd").bytes == std::numeric_limits<std::int64_t>::max());
  UsageNotes::Seen root;
  UsageNotes::add("/", {volume_of("a", node::ProjectUse{})}, root);
  CHECK(root.contains("/a"));
}

TEST_CASE("nothing is told twice, and no change that is small") {
  UsageNotes notes;
  CHECK_FALSE(tells(notes, {}));
  CHECK(tells(notes, one(0, 1000 * kMiB)));
  CHECK_FALSE(tells(notes, one(0, 1000 * kMiB)));
  CHECK_FALSE(tells(notes, one(kMiB - 1, 1000 * kMiB)));
  CHECK(tells(notes, one(kMiB, 1000 * kMiB)));
  CHECK(tells(notes, one(0, 1000 * kMiB)));  // less is news as well

  // One percent of what is small is less than that.
  CHECK(tells(notes, one(0, 10 * kMiB)));
  CHECK_FALSE(tells(notes, one(kMiB / 10 - 1, 10 * kMiB)));
  CHECK(tells(notes, one(kMiB / 10, 10 * kMiB)));
  CHECK_FALSE(tells(notes, one(kMiB / 10, 10 * kMiB, 99)));
  CHECK(tells(notes, one(kMiB / 10, 10 * kMiB, 101)));
  CHECK(tells(notes, one(kMiB / 10, 10 * kMiB, 101, 1000)));  // another limit
  CHECK_FALSE(tells(notes, one(kMiB / 10, 10 * kMiB, 110, 1000)));
  CHECK(tells(notes, one(kMiB / 10, 10 * kMiB, 111, 1000)));
}

TEST_CASE("small changes are told once they are large together") {
  UsageNotes notes;
  CHECK(tells(notes, one(0, 1000 * kMiB)));
  CHECK_FALSE(tells(notes, one(kMiB / 2, 1000 * kMiB)));
  CHECK(tells(notes, one(kMiB, 1000 * kMiB)));
}

TEST_CASE("a volume that is gone is told to be gone, once") {
  UsageNotes notes;
  notes.saw({{"/data/never told", {.bytes = 1}}});
  notes.saw({});
  CHECK_FALSE(notes.any_news());
  CHECK(tells(notes, one(1, 10)));
  notes.saw({});
  REQUIRE(notes.news(1000).size() == 1);
  CHECK(notes.news(1000)[0] == Use{.path = "/data/a"});
  CHECK(tells(notes, {}));
  CHECK_FALSE(tells(notes, {}));
}

TEST_CASE("to a new session everything is told again, and what is gone is not") {
  UsageNotes notes;
  CHECK(tells(notes, {{"/data/a", {.bytes = 1}}, {"/data/b", {.bytes = 1}}}));
  notes.saw(one(1, 10));
  notes.tell_anew();
  CHECK(notes.count_news() == 1);
  CHECK(notes.news(1000)[0].path == "/data/a");
}

TEST_CASE("what changes while it is on its way is told after it") {
  UsageNotes notes;
  notes.saw(one(1, 10));
  const auto sent = notes.news(1000);
  notes.saw(one(9, 10));
  notes.told(sent);
  REQUIRE(notes.news(1000).size() == 1);
  CHECK(notes.news(1000)[0].usage->bytes == 9);
}

TEST_CASE("many volumes are told in parts that fit into a message, beyond a bound none") {
  std::vector<node::VolumeUsage> volumes;
  const std::string longest(1000, '\x01');  // six bytes each in JSON
  for (std::size_t i = 0; i <= kMaxUses; ++i) {
    volumes.push_back(volume_of(longest + std::to_string(i), node::ProjectUse{.bytes = i}));
  }
  volumes.push_back(volume_of(std::string(kMaxPath, 'x'), node::ProjectUse{}));
  UsageNotes notes;
  notes.saw(seen(volumes));
  CHECK(notes.count_news() == kMaxUses);
  std::size_t parts = 0;
  std::size_t told = 0;
  while (notes.any_news()) {
    const auto part = notes.news(kMaxMessage / 2);
    REQUIRE_FALSE(part.empty());
    CHECK(encode(Tell{.session = "s", .uses = part}).size() < kMaxMessage / 2);
    told += part.size();
    ++parts;
    notes.told(part);
  }
  CHECK(told == kMaxUses);
  CHECK(parts > 5);
  notes.tell_anew();
  CHECK(notes.news(1).size() == 1);
}

}  // namespace
}  // namespace lpp::agent
