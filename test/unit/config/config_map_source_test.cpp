// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "config/text_source.h"
#include "fakes/builders.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "unit/config/observed_texts.h"

namespace lpp::config {
namespace {

using testing::FakeTransport;
using Texts = std::vector<std::string>;

const k8s::ObjectKey kKey{"local-path-storage", "local-path-config"};
constexpr const char* kName = "ConfigMap local-path-storage/local-path-config, key config.json";

nlohmann::json config_map(const std::string& version, const std::string& text) {
  return {
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata",
       {{"name", kKey.name}, {"namespace", kKey.ns}, {"uid", "u"}, {"resourceVersion", version}}},
      {"data", {{"config.json", text}, {"helperPod.yaml", "template " + version}}}};
}

std::string list(const std::vector<nlohmann::json>& items) {
  return nlohmann::json{
      {"kind", "ConfigMapList"}, {"metadata", {{"resourceVersion", "100"}}}, {"items", items}}
      .dump();
}

std::string event(const char* type, const nlohmann::json& object) {
  return nlohmann::json{{"type", type}, {"object", object}}.dump() + "\n";
}

/// Lets a test write into a watch that is open.
class OpenWatch {
 public:
  FakeTransport::Act act() {
    return [this](const auto&, const k8s::ChunkSink* sink,
                  const std::stop_token& stop) -> Result<k8s::Response> {
      std::stop_callback wake(stop, [this] {
        MutexLock lock(mutex_);
        changed_.notify_all();
      });
      MutexLock lock(mutex_);
      while (!stop.stop_requested()) {
        if (chunks_.empty()) {
          changed_.wait(mutex_);
          continue;
        }
        const std::string chunk = chunks_.front();
        chunks_.pop_front();
        lock.unlock();
        (*sink)(chunk);
        lock.lock();
      }
      return cancelled();
    };
  }
  void send(const std::string& chunk) {
    MutexLock lock(mutex_);
    chunks_.push_back(chunk);
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> chunks_ LPP_GUARDED_BY(mutex_);
};

/// An informer on scripted answers; the last member, so that it ends first.
struct Cluster {
  SystemClock clock;
  FakeTransport transport;
  OpenWatch watch;
  k8s::ApiClient client{transport, clock, {}};
  k8s::Informer<k8s::ConfigMap> informer{
      "cm", client, clock, {.resource = k8s::kConfigMaps, .ns = kKey.ns}};

  explicit Cluster(const std::string& first_list) {
    transport.on("GET", "watch=").run(watch.act());
    transport.on("GET", "/configmaps").reply(200, first_list);
  }
  std::unique_ptr<TextSource> source(const std::string& key = "config.json") {
    return make_config_map_source(informer, kKey, key, clock, std::chrono::seconds(20));
  }
};

TEST_CASE("the text of a ConfigMap is observed at start and after each change of its key") {
  ObservedTexts config;
  ObservedTexts pod;
  Cluster cluster(list({config_map("1", "one")}));
  const auto config_source = cluster.source();
  const auto pod_source = cluster.source("helperPod.yaml");
  CHECK(config_source->name() == kName);
  cluster.informer.start();
  config_source->start(config.observer());
  pod_source->start(pod.observer());
  CHECK(config.all() == Texts{"one"});
  CHECK(pod.all() == Texts{"template 1"});

  cluster.watch.send(event("MODIFIED", config_map("2", "two")));
  CHECK(config.wait_for("two"));
  CHECK(pod.wait_for("template 2"));

  cluster.watch.send(event("MODIFIED", config_map("3", "two")));  // only the other key changed
  CHECK(pod.wait_for("template 3"));
  cluster.watch.send(event("DELETED", config_map("4", "two")));
  CHECK(config.wait_for("error: " + std::string(kName) + ": the ConfigMap does not exist"));
  cluster.watch.send(event("ADDED", config_map("5", "five")));
  CHECK(config.wait_for("five"));
  CHECK(config.all().size() == 4);  // one, two, error, five
}

TEST_CASE("a ConfigMap or a key that is missing is an error until it comes") {
  ObservedTexts seen;
  auto without_key = config_map("1", "x");
  without_key["data"].erase("config.json");
  SUBCASE("no ConfigMap") {
    Cluster cluster(list({}));
    const auto source = cluster.source();
    cluster.informer.start();
    source->start(seen.observer());
    CHECK(seen.all() == Texts{"error: " + std::string(kName) + ": the ConfigMap does not exist"});
    cluster.watch.send(event("ADDED", config_map("2", "there")));
    CHECK(seen.wait_for("there"));
  }
  SUBCASE("no key") {
    Cluster cluster(list({without_key}));
    const auto source = cluster.source();
    cluster.informer.start();
    source->start(seen.observer());
    CHECK(seen.all() == Texts{"error: " + std::string(kName) + ": the ConfigMap has no such key"});
    cluster.watch.send(event("MODIFIED", config_map("2", "there")));
    CHECK(seen.wait_for("there"));
    without_key["metadata"]["resourceVersion"] = "3";
    cluster.watch.send(event("MODIFIED", without_key));
    CHECK(seen.wait_for("error: "));
  }
}

TEST_CASE("other ConfigMaps of the namespace do not matter") {
  ObservedTexts seen;
  auto other = config_map("1", "other");
  other["metadata"]["name"] = "other";
  Cluster cluster(list({config_map("1", "mine"), other}));
  const auto source = cluster.source();
  cluster.informer.start();
  source->start(seen.observer());
  other["metadata"]["resourceVersion"] = "2";
  cluster.watch.send(event("MODIFIED", other));
  cluster.watch.send(event("MODIFIED", config_map("3", "mine too")));
  REQUIRE(seen.wait_for("mine too"));
  CHECK(seen.all() == Texts{"mine", "mine too"});
}

TEST_CASE("an API server that does not answer is an error after the limit, and is waited for") {
  ObservedTexts seen;
  testing::FakeClock fake;
  SystemClock real;
  FakeTransport transport;
  std::promise<void> answer;
  auto gate = answer.get_future().share();
  transport.on("GET", "watch=").hang();
  transport.on("GET", "/configmaps")
      .run([gate](const auto&, const auto*, const auto&) -> Result<k8s::Response> {
        gate.wait();
        return k8s::Response{.status = 200, .body = list({config_map("1", "late")})};
      });
  k8s::ApiClient client{transport, real, {}};
  k8s::Informer<k8s::ConfigMap> informer{
      "cm", client, real, {.resource = k8s::kConfigMaps, .ns = kKey.ns}};
  const auto source =
      make_config_map_source(informer, kKey, "config.json", fake, std::chrono::seconds(5));
  informer.start();
  std::jthread starter([&] { source->start(seen.observer()); });
  while (seen.count() == 0) fake.advance(std::chrono::milliseconds(100));
  starter.join();
  CHECK(seen.all() ==
        Texts{"error: " + std::string(kName) + ": the API server has not answered yet"});
  answer.set_value();
  CHECK(seen.wait_for("late"));
}

TEST_CASE("stop ends a start that waits, and nothing is observed after it") {
  ObservedTexts seen;
  SUBCASE("while it waits for the first list") {
    testing::FakeClock fake;
    FakeTransport transport;
    k8s::ApiClient client{transport, fake, {}};
    k8s::Informer<k8s::ConfigMap> never_started{
        "cm", client, fake, {.resource = k8s::kConfigMaps, .ns = kKey.ns}};
    std::stop_source process;
    const auto source = make_config_map_source(never_started, kKey, "config.json", fake,
                                               std::chrono::seconds(10), process.get_token());
    std::jthread starter([&] { source->start(seen.observer()); });
    SUBCASE("of itself") { source->stop(); }
    SUBCASE("of the process") { process.request_stop(); }
    starter.join();
    CHECK(seen.count() == 0);
  }
  SUBCASE("while the watch goes on") {
    ObservedTexts other;
    Cluster cluster(list({config_map("1", "one")}));
    const auto source = cluster.source();
    const auto witness = cluster.source("helperPod.yaml");
    cluster.informer.start();
    source->start(seen.observer());
    witness->start(other.observer());
    source->stop();
    cluster.watch.send(event("MODIFIED", config_map("2", "two")));
    REQUIRE(other.wait_for("template 2"));
    CHECK(seen.all() == Texts{"one"});
  }
  SUBCASE("and the informer may outlive the source") {
    ObservedTexts other;
    Cluster cluster(list({config_map("1", "one")}));
    auto source = cluster.source();
    const auto witness = cluster.source("helperPod.yaml");
    cluster.informer.start();
    source->start(seen.observer());
    witness->start(other.observer());
    source.reset();
    cluster.watch.send(event("MODIFIED", config_map("2", "two")));
    REQUIRE(other.wait_for("template 2"));
    CHECK(seen.all() == Texts{"one"});
  }
}

TEST_CASE("stop waits for an observer that is running") {
  Cluster cluster(list({config_map("1", "one")}));
  const auto source = cluster.source();
  std::promise<void> entered;
  std::promise<void> release;
  auto released = release.get_future();
  std::atomic<bool> finished = false;
  cluster.informer.start();
  source->start([&](const Result<std::string>& text) {
    if (*text != "two") return;
    entered.set_value();
    released.wait();
    finished = true;
  });
  cluster.watch.send(event("MODIFIED", config_map("2", "two")));
  entered.get_future().wait();
  std::jthread stopper([&] {
    source->stop();
    CHECK(finished);
  });
  release.set_value();
  stopper.join();
}

}  // namespace
}  // namespace lpp::config
