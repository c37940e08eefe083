// SPDX-License-Identifier: Apache-2.0
#include "k8s/informer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fakes/builders.h"
#include "fakes/eventually.h"
#include "fakes/fake_transport.h"

namespace lpp::k8s::informer_cases {

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

std::string list_of(const std::string& version, const std::vector<json>& items,
                    const std::string& next = "") {
  json list = {{"metadata", {{"resourceVersion", version}}}, {"items", items}};
  if (!next.empty()) list["metadata"]["continue"] = next;
  return list.dump();
}

std::string frame(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump() + "\n";
}

const char* const kGone = R"({"type":"ERROR","object":{"kind":"Status","code":410}})"
                          "\n";

ClaimBuilder versioned(const std::string& name, const std::string& version) {
  return claim(name).resource_version(version);
}

/// An informer of claims over a scripted server. Every script ends in a silent watch.
struct Fixture {
  using Claims = Informer<PersistentVolumeClaim>;

  explicit Fixture(Claims::Trim trim = {})
      : informer("pvc", client, clock, {.resource = kPersistentVolumeClaims}, std::move(trim)) {
    informer.add_handler([this](const Change<PersistentVolumeClaim>& change) {
      const auto stored = informer.store().get(change.object().meta.key());
      MutexLock lock(mutex);
      if (stored != change.after) ++not_in_store;
      changes.push_back(describe(change));
    });
  }

  /// "+a@1" added, "a@1>2" changed, "-a@2" deleted; with UIDs when they differ.
  static std::string describe(const Change<PersistentVolumeClaim>& change) {
    const auto& meta = change.object().meta;
    if (!change.before) return "+" + meta.name + "@" + meta.resource_version;
    if (!change.after) return "-" + meta.name + "@" + meta.resource_version;
    const auto& before = change.before->meta;
    std::string text = meta.name + "@" + before.resource_version + ">" + meta.resource_version;
    if (before.uid != meta.uid) text += " " + before.uid + ">" + meta.uid;
    return text;
  }

  std::vector<std::string> seen() {
    MutexLock lock(mutex);
    return changes;
  }
  bool wait_for(std::vector<std::string> expected, bool in_order = true) {
    const auto normal = [in_order](std::vector<std::string> texts) {
      if (!in_order) std::sort(texts.begin(), texts.end());
      return texts;
    };
    expected = normal(std::move(expected));
    return eventually([&] { return normal(seen()) == expected; });
  }
  void clear() {
    MutexLock lock(mutex);
    changes.clear();
  }
  std::shared_ptr<const PersistentVolumeClaim> get(const std::string& name) const {
    return informer.store().get({"default", name});
  }
  FakeTransport::Script& lists() { return transport.on("GET", "/persistentvolumeclaims"); }

  SystemClock clock;
  FakeTransport transport;
  FakeTransport::Script& watches = transport.on("GET", "watch=true");
  ApiClient client{transport, clock, {}};
  Mutex mutex;
  std::vector<std::string> changes;
  int not_in_store = 0;
  Claims informer;
};

}  // namespace

TEST_CASE("an informer fills its store, calls handlers after it, and follows the watch") {
  Fixture f;
  f.lists().reply(200, list_of("10", {versioned("a", "1").json(), versioned("b", "2").json()}));
  f.watches.stream_and_hang({frame("ADDED", versioned("c", "11").json()),
                             frame("MODIFIED", versioned("a", "12").node("n1").json()),
                             frame("DELETED", versioned("b", "13").json())});
  CHECK_FALSE(f.informer.has_synced());
  f.informer.start();
  REQUIRE(eventually([&] { return f.seen().size() == 5; }));
  CHECK(f.informer.has_synced());
  auto changes = f.seen();
  std::sort(changes.begin(), changes.begin() + 2);
  CHECK(changes == std::vector<std::string>{"+a@1", "+b@2", "+c@11", "a@1>12", "-b@13"});
  CHECK(f.not_in_store == 0);
  CHECK(f.informer.store().size() == 2);
  CHECK(*find(f.get("a")->meta.annotations, "volume.kubernetes.io/selected-node") == "n1");
  CHECK(f.get("b") == nullptr);
}

TEST_CASE("an informer has synced only when its first list is complete") {
  Fixture f;
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  f.lists()
      .reply(200, list_of("10", {claim("a").json()}, "t"))
      .run([opened](const auto&, const auto*, const auto&) -> Result<Response> {
        opened.wait();
        return Response{.status = 200, .body = list_of("10", {claim("b").json()})};
      });
  f.watches.hang();
  f.informer.start();
  REQUIRE(f.transport.wait_for_requests(2));
  CHECK_FALSE(f.informer.has_synced());
  CHECK(f.informer.store().size() == 0);
  CHECK(f.seen().empty());
  gate.set_value();
  CHECK(eventually([&] { return f.informer.has_synced(); }));
  CHECK(f.informer.store().size() == 2);
}

TEST_CASE("a relist tells what changed meanwhile, and only that") {
  Fixture f;
  auto& lists = f.lists();
  lists.reply(200, list_of("10", {versioned("same", "1").json(), versioned("changed", "2").json(),
                                  versioned("gone", "3").json(),
                                  versioned("again", "4").uid("first").json()}));
  f.watches.run([&](const auto&, const ChunkSink* sink, const auto&) -> Result<Response> {
    // Let the test look at the first state before the second one comes.
    eventually([&] { return f.seen().empty(); });
    (*sink)(kGone);
    return Response{.status = 200};
  });
  lists.reply(200, list_of("50", {versioned("same", "1").json(), versioned("changed", "40").json(),
                                  versioned("again", "41").uid("second").json(),
                                  versioned("new", "42").json()}));
  f.watches.hang();
  f.informer.start();
  REQUIRE(f.wait_for({"+same@1", "+changed@2", "+gone@3", "+again@4"}, false));
  const auto same = f.get("same");
  f.clear();
  REQUIRE(f.wait_for({"changed@2>40", "-gone@3", "again@4>41 first>second", "+new@42"}, false));
  CHECK(f.not_in_store == 0);
  CHECK(f.informer.store().size() == 4);
  CHECK(f.get("same") == same);  // not a second copy of it
  CHECK(f.get("gone") == nullptr);
}

TEST_CASE("a list that broke off leaves no trace") {
  Fixture f;
  auto& lists = f.lists();
  lists.reply(200, list_of("10", {versioned("phantom", "1").json()}, "t")).reply(410);
  lists.reply(200, list_of("20", {versioned("real", "2").json()}));
  f.watches.hang();
  f.informer.start();
  REQUIRE(eventually([&] { return f.informer.has_synced(); }));
  CHECK(f.seen() == std::vector<std::string>{"+real@2"});
  CHECK(f.informer.store().size() == 1);
}

TEST_CASE("a replayed event is no change") {
  Fixture f;
  f.lists().reply(200, list_of("10", {versioned("a", "1").json()}));
  f.watches.stream_and_hang({frame("ADDED", versioned("a", "1").json()),
                             frame("DELETED", versioned("never-seen", "2").json()),
                             frame("MODIFIED", versioned("a", "3").json())});
  f.informer.start();
  REQUIRE(f.wait_for({"+a@1", "a@1>3"}));
}

TEST_CASE("a deletion carries the object's last state") {
  Fixture f;
  f.lists().reply(200, list_of("10", {versioned("a", "1").phase("Pending").json()}));
  f.watches.stream_and_hang({frame("DELETED", versioned("a", "5").phase("Bound").json())});
  std::string phase;
  f.informer.add_handler([&](const Change<PersistentVolumeClaim>& change) {
    if (!change.after) phase = change.before->phase;
  });
  f.informer.start();
  REQUIRE(f.wait_for({"+a@1", "-a@5"}));
  f.informer.request_stop();
  f.informer.join();
  CHECK(phase == "Bound");
}

TEST_CASE("objects that cannot be decoded are skipped and keep their last good state") {
  Fixture f;
  json nameless = claim("x").json();
  nameless["metadata"].erase("name");
  const auto broken = [](const std::string& name, const std::string& version) {
    return versioned(name, version).set("/spec/accessModes", "no list").json();
  };
  auto& lists = f.lists();
  lists.reply(200, list_of("10", {versioned("a", "1").json(), broken("b", "2"), nameless}));
  f.watches.stream({frame("MODIFIED", broken("a", "11")), frame("ADDED", nameless),
                    frame("ADDED", versioned("c", "12").json()), kGone});
  lists.reply(200,
              list_of("20", {broken("a", "11"), broken("b", "2"), versioned("c", "12").json()}));
  f.watches.stream_and_hang({frame("MODIFIED", versioned("b", "21").json()),
                             frame("MODIFIED", versioned("a", "22").json()),
                             frame("DELETED", broken("c", "23"))});
  f.informer.start();
  REQUIRE(f.wait_for({"+a@1", "+c@12", "+b@21", "a@1>22", "-c@12"}));
  CHECK(f.informer.store().size() == 2);
}

TEST_CASE("null and foreign items in a list are skipped") {
  Fixture f;
  f.lists().reply(200, list_of("10", {nullptr, 7, "text", json::array(), json::object(),
                                      versioned("a", "1").json()}));
  f.watches.hang();
  f.informer.start();
  REQUIRE(f.wait_for({"+a@1"}));
}

TEST_CASE("objects are trimmed before they are stored") {
  Fixture f([](PersistentVolumeClaim& c) {
    c.meta.annotations.clear();
    return true;
  });
  f.lists().reply(200, list_of("10", {claim("a").json()}));
  f.watches.stream_and_hang({frame("ADDED", claim("b").json())});
  f.informer.start();
  REQUIRE(eventually([&] { return f.informer.store().size() == 2; }));
  CHECK(f.get("a")->meta.annotations.empty());
  CHECK(f.get("b")->meta.annotations.empty());
  CHECK(f.get("b")->storage_request == "1Gi");
}

TEST_CASE("an object of no interest is as one that does not exist, and may become of interest") {
  Fixture f([](PersistentVolumeClaim& c) { return c.storage_request == "1Gi"; });
  const auto big = [](const char* name, const char* version) {
    json object = versioned(name, version).json();
    object["spec"]["resources"]["requests"]["storage"] = "2Gi";
    return object;
  };
  f.lists().reply(200, list_of("10", {versioned("a", "1").json(), big("b", "2")}));
  f.watches.stream_and_hang({frame("ADDED", big("c", "11")), frame("DELETED", big("c", "12")),
                             frame("MODIFIED", big("a", "13")),
                             frame("MODIFIED", versioned("b", "14").json())});
  f.informer.start();
  REQUIRE(f.wait_for({"+a@1", "-a@1", "+b@14"}));
  CHECK(f.informer.store().size() == 1);
  CHECK(f.not_in_store == 0);
}

TEST_CASE("an informer stops quickly, from every state, started or not") {
  Fixture f;
  bool started = true;
  std::size_t requests = 1;
  SUBCASE("not started") { started = false; }
  SUBCASE("while listing") { f.lists().hang(); }
  SUBCASE("while watching") {
    f.lists().reply(200, list_of("1", {}));
    f.watches.hang();
    requests = 2;
  }
  SUBCASE("while backing off") { f.lists().reply_retry_after(401, 60s); }
  if (started) {
    f.informer.start();
    REQUIRE(f.transport.wait_for_requests(requests));
  }
  const auto asked = std::chrono::steady_clock::now();
  f.informer.request_stop();
  f.informer.request_stop();
  f.informer.join();
  f.informer.join();
  // A hang does not end at all, nor the back-off so early.
  CHECK(std::chrono::steady_clock::now() - asked < 40s);
}

TEST_CASE("the process's own stop ends an informer's list too") {
  SystemClock clock;
  FakeTransport transport;
  std::stop_source process;
  ApiClient client(transport, clock, {.stop = process.get_token()});
  Informer<Node> informer("node", client, clock, {.resource = kNodes, .metadata_only = true});
  transport.on("GET", "/nodes").hang();
  informer.start();
  REQUIRE(transport.wait_for_requests(1));
  process.request_stop();
  informer.join();  // without a stop of its own
  CHECK_FALSE(informer.has_synced());
  CHECK(transport.requests().size() == 1);
}

TEST_CASE("every kind we read can be informed of") {
  SystemClock clock;
  FakeTransport transport;
  ApiClient client(transport, clock, {});
  transport.on("GET", "watch=true").hang().hang().hang().hang().hang();
  transport.on("GET", "/persistentvolumes").reply(200, list_of("1", {volume("v").json()}));
  transport.on("GET", "/storageclasses").reply(200, list_of("1", {storage_class().json()}));
  transport.on("GET", "/nodes").reply(200, list_of("1", {node("n").json()}));
  transport.on("GET", "/pods").reply(200, list_of("1", {pod("p").json()}));
  transport.on("GET", "/configmaps").reply(200, list_of("1", {config_map("c").json()}));
  Informer<PersistentVolume> volumes("pv", client, clock, {.resource = kPersistentVolumes});
  Informer<StorageClass> classes("sc", client, clock, {.resource = kStorageClasses});
  Informer<Node> nodes("node", client, clock, {.resource = kNodes, .metadata_only = true});
  Informer<Pod> pods("pod", client, clock, {.resource = kPods, .ns = "default"});
  Informer<ConfigMap> maps("cm", client, clock, {.resource = kConfigMaps, .ns = "default"});
  volumes.start();
  classes.start();
  nodes.start();
  pods.start();
  maps.start();
  CHECK(eventually([&] {
    return volumes.store().size() == 1 && classes.store().size() == 1 &&
           nodes.store().size() == 1 && pods.store().size() == 1 && maps.store().size() == 1;
  }));
}

}  // namespace lpp::k8s::informer_cases
