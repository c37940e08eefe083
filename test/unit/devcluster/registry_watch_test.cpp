// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <thread>

#include "unit/devcluster/registry_test_support.h"

namespace lpp::devcluster::registry_watch {
namespace {

using test::at;
using test::Json;
using namespace std::chrono_literals;

const std::string kNs = "default";
constexpr auto kSoon = 60s;

using Events = std::vector<std::string>;

/// All events there are now: "+name" added, "~name" modified, "-name" deleted.
Events drain(Watch& watch) {
  Events out;
  while (const auto event = watch.next(0ms)) {
    static constexpr std::string_view kSigns = "+~-b!";
    out.push_back(kSigns[static_cast<std::size_t>(event->type)] +
                  at(event->object, "metadata.name").get<std::string>());
  }
  return out;
}

WatchOptions from(const Registry& registry, const std::string& resource) {
  return {.resources = {resource}, .resource_version = std::to_string(registry.resource_version())};
}

constexpr auto kAdded = WatchEventType::kAdded;
constexpr auto kModified = WatchEventType::kModified;
constexpr auto kDeleted = WatchEventType::kDeleted;

}  // namespace

TEST_CASE("a watch delivers the changes after its version, in order, with their versions") {
  Registry registry;
  REQUIRE(registry.create("configmaps", kNs, test::config_map("old")).ok());
  auto started = registry.watch(from(registry, "configmaps"));
  REQUIRE(started.ok());
  auto& watch = *started.watch;
  const auto created = registry.create("configmaps", kNs, test::config_map("a"));
  REQUIRE(registry.create("secrets", kNs, {{"metadata", {{"name", "s"}}}}).ok());
  REQUIRE(
      registry.patch({"configmaps", kNs, "a"}, PatchType::kMerge, {{"data", {{"k", "2"}}}}).ok());
  REQUIRE(registry.remove({"configmaps", kNs, "a"}).ok());
  auto event = watch.next(kSoon);
  REQUIRE(event);
  CHECK(event->type == kAdded);
  CHECK(event->resource == "configmaps");
  CHECK(event->object == created.body);
  event = watch.next(kSoon);
  REQUIRE(event);
  CHECK(event->type == kModified);
  event = watch.next(kSoon);
  REQUIRE(event);
  CHECK(event->type == kDeleted);
  CHECK(at(event->object, "data.k") == "2");
  CHECK(at(event->object, "metadata.resourceVersion") ==
        std::to_string(registry.resource_version()));
  CHECK(!watch.next(0ms));
  CHECK(watch.resource_version() == registry.resource_version());
}

TEST_CASE("a watch from nothing or 0 starts with what is there") {
  Registry registry;
  REQUIRE(registry.create("configmaps", kNs, test::config_map("a")).ok());
  for (const char* version : {"", "0"}) {
    auto started = registry.watch({.resources = {"configmaps"}, .resource_version = version});
    CHECK(drain(*started.watch) == Events{"+a"});
  }
}

TEST_CASE("a streaming list ends with a marked bookmark") {
  Registry registry;
  REQUIRE(registry.create("configmaps", kNs, test::config_map("a")).ok());
  auto started = registry.watch({.resources = {"configmaps"}, .send_initial_events = true});
  auto event = started.watch->next(0ms);
  REQUIRE(event);
  CHECK(event->type == kAdded);
  event = started.watch->next(0ms);
  REQUIRE(event);
  CHECK(event->type == WatchEventType::kBookmark);
  CHECK(event->initial_events_end);
  CHECK(event->resource_version == registry.resource_version());
}

TEST_CASE("leaving a selector shows the last state inside with the new version") {
  Registry registry;
  REQUIRE(registry.create("pods", kNs, test::pod("a")).ok());
  auto options = from(registry, "pods");
  options.field_selector = "spec.nodeName=";
  auto started = registry.watch(options);
  REQUIRE(registry.bind_pod(kNs, "a", "n1").ok());
  const auto event = started.watch->next(kSoon);
  REQUIRE(event);
  CHECK(event->type == kDeleted);
  CHECK(at(event->object, "spec.nodeName").is_null());
  CHECK(at(event->object, "metadata.resourceVersion") ==
        std::to_string(registry.resource_version()));
}

TEST_CASE("one watch of several resources sees one common order") {
  Registry registry;
  auto started = registry.watch({.resources = {"pods", "configmaps"},
                                 .resource_version = std::to_string(registry.resource_version())});
  REQUIRE(registry.create("pods", kNs, test::pod("p")).ok());
  REQUIRE(registry.create("configmaps", kNs, test::config_map("c")).ok());
  REQUIRE(registry.create("secrets", kNs, {{"metadata", {{"name", "s"}}}}).ok());
  REQUIRE(registry.remove({"pods", kNs, "p"}).ok());
  CHECK(drain(*started.watch) == Events{"+p", "+c", "-p"});
}

TEST_CASE("a watch of one namespace hears nothing of others") {
  Registry registry;
  REQUIRE(registry.create("namespaces", "", {{"metadata", {{"name", "other"}}}}).ok());
  auto options = from(registry, "configmaps");
  options.ns = "other";
  auto started = registry.watch(options);
  REQUIRE(registry.create("configmaps", kNs, test::config_map("a")).ok());
  REQUIRE(registry.create("configmaps", "other", test::config_map("b")).ok());
  CHECK(drain(*started.watch) == Events{"+b"});
}

TEST_CASE("a version that is out of the history ends the watch with Expired") {
  Registry registry({.history_size = 3});
  const auto options = from(registry, "configmaps");
  auto slow = registry.watch(options);
  for (const char* name : {"a", "b", "c", "d"}) {
    REQUIRE(registry.create("configmaps", kNs, test::config_map(name)).ok());
  }
  auto late = registry.watch(options);
  REQUIRE(late.ok());
  for (auto* watch : {slow.watch.get(), late.watch.get()}) {
    const auto event = watch->next(kSoon);
    REQUIRE(event);
    CHECK(event->type == WatchEventType::kError);
    CHECK(at(event->object, "code") == 410);
    CHECK(at(event->object, "reason") == "Expired");
    CHECK(at(event->object, "message").get<std::string>().starts_with("too old resource version:"));
    CHECK(watch->ended());
    CHECK(!watch->next(kSoon));
  }
}

TEST_CASE("compact ends running watches and refuses every version from before") {
  Registry registry;
  const auto options = from(registry, "configmaps");
  auto running = registry.watch(options);
  CHECK(drain(*running.watch).empty());
  registry.compact();
  CHECK(running.watch->next(kSoon)->type == WatchEventType::kError);
  CHECK(registry.watch(options).watch->next(kSoon)->type == WatchEventType::kError);
  CHECK(drain(*registry.watch(from(registry, "configmaps")).watch).empty());
}

TEST_CASE("bad options are refused before anything is watched") {
  Registry registry;
  CHECK(registry.watch({.resources = {"gadgets"}}).code == 404);
  CHECK(registry.watch({.resources = {"pods"}, .resource_version = "x"}).code == 400);
  CHECK(registry.watch({.resources = {"pods"}, .label_selector = "a in"}).code == 400);
  CHECK(registry.watch({.resources = {"pods"}, .field_selector = "spec.foo=1"}).code == 400);
  CHECK(
      registry
          .watch(
              {.resources = {"pods"}, .resource_version = "99999999", .send_initial_events = true})
          .code == 504);
}

TEST_CASE("next wakes up for an event and for stop from another thread") {
  Registry registry;
  auto started = registry.watch(from(registry, "configmaps"));
  {
    std::jthread writer(
        [&] { CHECK(registry.create("configmaps", kNs, test::config_map("a")).ok()); });
    CHECK(started.watch->next(kSoon)->type == kAdded);
  }
  std::jthread stopper([&] { started.watch->stop(); });
  CHECK(!started.watch->next(3600s));
  CHECK(started.watch->ended());

  auto second = registry.watch(from(registry, "configmaps"));
  std::jthread all_stopper([&] { registry.stop_watches(); });
  CHECK(!second.watch->next(60s));
}

TEST_CASE("many writers and watchers agree on one history") {
  Registry registry;
  constexpr int kWriters = 4;
  constexpr int kEach = 100;
  auto first = registry.watch(from(registry, "configmaps"));
  auto second = registry.watch(from(registry, "configmaps"));
  {
    std::vector<std::jthread> writers;
    writers.reserve(kWriters);
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([&registry, w] {
        for (int i = 0; i < kEach; ++i) {
          const std::string name = "w" + std::to_string(w) + "-" + std::to_string(i);
          CHECK(registry.create("configmaps", kNs, test::config_map(name)).ok());
        }
      });
    }
  }
  const auto a = drain(*first.watch);
  CHECK(a.size() == kWriters * kEach);
  CHECK(a == drain(*second.watch));
}

}  // namespace lpp::devcluster::registry_watch
