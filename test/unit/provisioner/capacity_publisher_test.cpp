// SPDX-License-Identifier: Apache-2.0
// How the objects get into the API server and stay as they should be. The real servers' part is in
// test/integration/story_capacity_test.cpp and test/e2e.

#include "provisioner/capacity_publisher.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fakes/captured_log.h"
#include "fakes/skipping_clock.h"
#include "scene.h"

namespace lpp::provisioner {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::kProvisionerName;
using testing::NodeBuilder;
using testing::StorageClassBuilder;
using testing::VolumeBuilder;

constexpr const char* kServed = "local-path.example.org";
constexpr const char* kJsonType = "application/json";

/// Nodes n1 and n2 with /data, a class of the name; the server keeps what it is given.
struct PublisherBed : testing::Scene {
  testing::SkippingClock skipping;
  k8s::ApiClient server{transport, skipping, {}};
  World of_both{ServedNames(kProvisionerName, kServed),
                server,
                skipping,
                events,
                executor,
                ledger,
                config,
                claims,
                volumes,
                classes,
                nodes,
                figures,
                binding,
                space,
                uses};
  CapacityPublisher publisher{of_both, "storage"};
  std::map<std::string, json> objects;  // by name
  std::optional<json> driver;
  std::vector<std::string> writes;  // since the last look
  /// Answers of a method that go before the true ones.
  std::map<std::string, testing::FakeTransport::Script*> first;

  PublisherBed() {
    config::Config paths;
    paths.paths.node_path_map[std::string(config::kDefaultNode)] = {"/data"};
    use(std::move(paths));
    nodes.erase({"", "empty"});
    put(StorageClassBuilder("fast").provisioner(kServed));
    tell("n1", 600);
    tell("n2", 300);
    for (const char* method : {"GET", "POST", "PATCH", "DELETE"}) {
      first[method] = &transport.on(method, "/csi");
    }
    transport.on("", "/csistoragecapacities").always([this](const auto& request) {
      return capacities(request);
    });
    transport.on("", "/csidrivers").always([this](const auto& request) {
      return drivers(request);
    });
    publisher.begin({});
  }
  void tell(const std::string& node, std::int64_t free) {
    space.note(node, "/data", {.size = 1000, .free = free});
  }
  /// What it writes when it looks once more, a period later.
  std::string look() {
    skipping.advance(CapacityPublisher::kPeriod);
    writes.clear();
    publisher.look({});
    std::sort(writes.begin(), writes.end());
    std::string text;
    for (const auto& write : writes) text += (text.empty() ? "" : ", ") + write;
    return text;
  }

 private:
  static k8s::Response answer(int status, const json& body) {
    return {.status = status, .body = body.dump(), .content_type = kJsonType};
  }
  static k8s::Response not_found() {
    return answer(404, {{"kind", "Status"}, {"reason", "NotFound"}, {"code", 404}});
  }
  static std::string say(const json& object) {
    return object["nodeTopology"]["matchLabels"].value("kubernetes.io/hostname", "") + "=" +
           object["capacity"].get<std::string>();
  }

  Result<k8s::Response> capacities(const k8s::Request& request) {
    if (request.method == "GET") {
      json items = json::array();
      for (const auto& [name, object] : objects) items.push_back(object);
      return answer(200, {{"metadata", json::object()}, {"items", items}});
    }
    if (request.method == "POST") {
      const json object = json::parse(request.body);
      const std::string name = object["metadata"]["name"];
      if (objects.contains(name)) {
        return k8s::Response{
            .status = 409, .body = testing::kAlreadyExists, .content_type = kJsonType};
      }
      objects[name] = object;
      writes.push_back("create " + say(object));
      return answer(201, object);
    }
    const std::string target = request.target.substr(0, request.target.find('?'));
    const auto it = objects.find(target.substr(target.rfind('/') + 1));
    if (it == objects.end()) return not_found();
    if (request.method == "DELETE") {
      writes.push_back("delete " + say(it->second));
      objects.erase(it);
      return answer(200, json::object());
    }
    it->second.merge_patch(json::parse(request.body));
    writes.push_back("change " + say(it->second));
    return answer(200, it->second);
  }

  Result<k8s::Response> drivers(const k8s::Request& request) {
    if (request.method == "POST") {
      driver = json::parse(request.body);
      writes.push_back("driver");
    }
    if (request.method == "PATCH") {
      driver->merge_patch(json::parse(request.body));
      writes.push_back("driver changed");
    }
    return driver ? answer(200, *driver) : not_found();
  }
};

TEST_CASE("a node whose disk is missing has no room, until it is back") {
  PublisherBed bed;
  CHECK(bed.look() == "create n1=600, create n2=300, driver");
  bed.executor.unfit["n1:/data"] = "its disk is missing";
  CHECK(bed.look() == "change n1=0");
  bed.executor.unfit.clear();
  CHECK(bed.look() == "change n1=600");
}

TEST_CASE("the objects come first and the CSIDriver after them, once") {
  PublisherBed bed;
  CHECK(bed.look() == "create n1=600, create n2=300, driver");
  const auto lines = bed.transport.lines();
  CHECK(lines.back() == "POST /apis/storage.k8s.io/v1/csidrivers");
  CHECK(lines.front().starts_with("GET /apis/storage.k8s.io/v1/namespaces/storage/"));
  CHECK(lines.front().find("capacity-of%3Dlocal-path.example.org") != std::string::npos);
  CHECK(bed.look().empty());
  CHECK(bed.publisher.stats().objects == 2);
  CHECK(bed.publisher.stats().writes == 3);
  CHECK(bed.publisher.stats().failures == 0);
}

TEST_CASE("without all objects there is no CSIDriver") {
  PublisherBed bed;
  bed.first["POST"]->reply(500);
  CHECK(bed.look().starts_with("create n"));
  CHECK(bed.objects.size() == 1);
  CHECK_FALSE(bed.driver);
  CHECK(bed.look().ends_with(", driver"));
  CHECK(bed.objects.size() == 2);
}

TEST_CASE("only what changed by one percent is written") {
  PublisherBed bed;
  bed.look();
  bed.tell("n1", 599);
  bed.tell("n2", 290);
  CHECK(bed.look() == "change n2=290");
  bed.tell("n1", 594);
  CHECK(bed.look() == "change n1=594");
}

TEST_CASE("what is promised is counted from volumes and from what is being made") {
  PublisherBed bed;
  bed.put(StorageClassBuilder("fast").provisioner(kServed).parameter("overcommit", "false"));
  bed.put(VolumeBuilder("pvc-1").host_path("/data/pvc-1").node("n1").capacity("500"));
  bed.put(VolumeBuilder("pvc-2").host_path("/other/pvc-2").node("n1").capacity("500"));
  operation::Operation make;
  make.volume_name = "pvc-3";
  make.node = "n1";
  make.path = "/data/pvc-3";
  make.size_bytes = 150;
  bed.ledger.take(make);
  SUBCASE("and what the node tells of it goes before, with what is made since") {
    make.volume_name = "pvc-4";
    make.path = "/data/pvc-4";
    make.size_bytes = 30;
    make.limits.hard = true;
    bed.ledger.take(make);
    // Of 400 used 50 are not the volumes' with limits: 100 of the 150 without one are not there.
    bed.space.note(
        "n1", "/data",
        {.size = 1000, .free = 600, .promises = operation::Promises{.unused = 120, .used = 350}});
    CHECK(bed.look() == "create n1=350, create n2=300, driver");
  }
  SUBCASE("by base path") { CHECK(bed.look() == "create n1=350, create n2=300, driver"); }
  SUBCASE("of all base paths of a file system") {
    for (const char* path : {"/data", "/other", "/data/sub"}) {
      bed.space.note("n1", path, {.size = 2000, .free = 1600, .filesystem = "8:17"});
    }
    make.volume_name = "pvc-4";
    make.path = "/data/sub/pvc-4";  // below two of them, and promised once
    make.size_bytes = 50;
    bed.ledger.take(make);
    CHECK(bed.look() == "create n1=800, create n2=300, driver");
  }
}

TEST_CASE("a node that is gone, a class that is gone: so are their objects") {
  PublisherBed bed;
  bed.look();
  bed.nodes.erase({"", "n1"});
  CHECK(bed.look() == "delete n1=600");
  bed.classes.erase({"", "fast"});
  CHECK(bed.look() == "delete n2=300");
  CHECK(bed.publisher.stats().objects == 0);
}

TEST_CASE("what an earlier process published stays for a while where nothing is known") {
  PublisherBed bed;
  bed.look();
  bed.space.forget_all();
  CapacityPublisher next(bed.of_both, "storage");
  next.begin({});
  bed.writes.clear();
  CHECK(next.look({}));
  CHECK(bed.writes.empty());
  SUBCASE("what comes to be known counts at once") {
    bed.tell("n2", 100);
    CHECK(next.look({}));
    CHECK(bed.writes == std::vector<std::string>{"change n2=100"});
  }
  SUBCASE("and after that it is tried") {
    bed.skipping.advance(kToldCounts);
    CHECK(next.look({}));
    REQUIRE(bed.writes.size() == 2);
    std::sort(bed.writes.begin(), bed.writes.end());
    CHECK(bed.writes[0] == "change n1=1Ei");
  }
}

TEST_CASE("a node that was full once is tried again when nobody has told of it for a while") {
  PublisherBed bed;
  bed.tell("n1", 0);
  CHECK(bed.look() == "create n1=0, create n2=300, driver");
  bed.skipping.advance(kToldCounts);
  CHECK(bed.look().starts_with("change n1=1Ei"));
}

TEST_CASE("a node whose claims would wait for its agent has no object, until the agent tells") {
  using Served = CapacityPublisher::Served;
  PublisherBed bed;
  std::map<std::string, Served> nodes;
  std::vector<std::string> asked;
  CapacityPublisher publisher(bed.of_both, "storage", [&](const auto& node, const auto&) {
    asked.push_back(node);
    return nodes[node];
  });
  const auto look = [&] {
    bed.tell("n2", 300);
    bed.skipping.advance(CapacityPublisher::kPeriod);
    bed.writes.clear();
    publisher.look({});
    std::sort(bed.writes.begin(), bed.writes.end());
    std::string all;
    for (const auto& write : bed.writes) all += write + ", ";
    return all;
  };
  publisher.begin({});
  SUBCASE("it was heard") {
    CHECK(look() == "create n1=600, create n2=300, driver, ");
    nodes["n1"] = Served::kNo;
    // It may come back, and what it told counts.
    bed.skipping.advance(kToldCounts - seconds(30));
    CHECK(look().empty());
    CHECK(asked.empty());
    bed.skipping.advance(seconds(30));
    CHECK(look() == "delete n1=600, ");
    CHECK(look().empty());
    SUBCASE("it is back") {
      bed.tell("n1", 500);
      CHECK(look() == "create n1=500, ");
    }
    SUBCASE("it is gone for good, and helper pods serve its node") {
      nodes["n1"] = Served::kYes;
      CHECK(look() == "create n1=1Ei, ");
    }
    CHECK(std::set<std::string>(asked.begin(), asked.end()) == std::set<std::string>{"n1"});
  }
  SUBCASE("it is not known yet whether there is one") {
    bed.space.forget("n1");
    nodes["n1"] = Served::kNotKnownYet;
    CHECK(look() == "create n2=300, ");
    nodes["n1"] = Served::kNo;
    CHECK(look() == "driver, ");
  }
  SUBCASE("an earlier process has published: that counts for a while, as ever") {
    CHECK(bed.look() == "create n1=600, create n2=300, driver");
    bed.space.forget("n1");
    nodes["n1"] = Served::kNo;
    CHECK(look().empty());
    bed.skipping.advance(kToldCounts);
    CHECK(look() == "delete n1=600, ");
  }
}

TEST_CASE("objects that somebody deleted, changed or wrote in our place become as they should be") {
  PublisherBed bed;
  bed.look();
  SUBCASE("deleted: found with the next change") {
    bed.objects.clear();
    bed.tell("n1", 100);
    CHECK(bed.look() == "create n1=100");
  }
  SUBCASE("deleted: found by the next list") {
    bed.objects.clear();
    bed.skipping.advance(CapacityPublisher::kListAgain);
    CHECK(bed.look() == "create n1=600, create n2=300");
  }
  SUBCASE("changed") {
    bed.objects.begin()->second["capacity"] = "5";
    bed.skipping.advance(CapacityPublisher::kListAgain);
    CHECK(bed.look().starts_with("change n"));
  }
  SUBCASE("of another node") {
    auto& topology = bed.objects.begin()->second["nodeTopology"]["matchLabels"];
    topology["kubernetes.io/hostname"] = "n9";
    bed.skipping.advance(CapacityPublisher::kListAgain);
    const std::string writes = bed.look();
    CHECK(writes.find("delete n9=") != std::string::npos);
    CHECK(writes.find("create n") != std::string::npos);
  }
  SUBCASE("one of a name that we would not give") {
    bed.objects["stray"] = bed.objects.begin()->second;
    bed.objects["stray"]["metadata"]["name"] = "stray";
    bed.skipping.advance(CapacityPublisher::kListAgain);
    CHECK(bed.look().starts_with("delete n"));
    CHECK(bed.objects.size() == 2);
  }
  SUBCASE("a driver that does not ask for capacities") {
    (*bed.driver)["spec"]["storageCapacity"] = false;
    bed.skipping.advance(CapacityPublisher::kListAgain);
    CHECK(bed.look() == "driver changed");
  }
}

TEST_CASE("a create whose answer was lost is found again") {
  PublisherBed bed;
  bed.look();
  const auto before = bed.objects;
  bed.publisher.begin({});
  bed.first["GET"]->reply(200, R"({"items":[]})");  // as if the list were older than the create
  CHECK(bed.look().empty());                        // it is there already
  CHECK(bed.look().empty());                        // and known
  CHECK(bed.objects == before);
  CHECK(bed.publisher.stats().objects == 2);
}

TEST_CASE("after any failure the next look makes it good") {
  for (const int status : {400, 404, 409, 410, 422, 429, 500, 503, 504}) {
    for (const std::string method : {"GET", "POST", "PATCH", "DELETE"}) {
      CAPTURE(status);
      CAPTURE(method);
      if (method == "DELETE" && status == 404) continue;  // then it is gone
      PublisherBed bed;
      if (method == "PATCH" || method == "DELETE") bed.look();
      if (method == "PATCH") bed.tell("n1", 5);
      if (method == "DELETE") bed.nodes.erase({"", "n1"});
      bool broken = false;
      bed.first[method]->run(
          [&](const k8s::Request&, const auto*, const auto&) -> Result<k8s::Response> {
            broken = true;
            return k8s::Response{.status = status};
          });
      bed.skipping.advance(CapacityPublisher::kListAgain);
      for (int i = 0; i < 4; ++i) bed.look();
      CHECK(broken);
      CHECK(bed.driver);
      CHECK(bed.objects.size() == (method == "DELETE" ? 1 : 2));
      CHECK(bed.look().empty());
    }
  }
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kTimeout}) {
    PublisherBed bed;
    for (const char* method : {"GET", "POST"}) bed.first[method]->fail(code).fail(code);
    for (int i = 0; i < 8; ++i) bed.look();
    CHECK(bed.driver);
    CHECK(bed.objects.size() == 2);
  }
}

TEST_CASE("a right that is missing is told once, with the rule that grants it") {
  PublisherBed bed;
  testing::CapturedLog log;
  bed.first["GET"]->reply(403).reply(403);
  bed.look();
  bed.look();
  const auto lines = log.take();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("error free space cannot be published"));
  CHECK(lines[0].find("resources: [csistoragecapacities], verbs: [list, create, patch, delete]") !=
        std::string::npos);
  CHECK(bed.publisher.stats().failures == 2);
}

TEST_CASE("an API server that refuses everything is not asked for each node") {
  PublisherBed bed;
  for (int i = 0; i < 50; ++i) bed.put(NodeBuilder("more-" + std::to_string(i)));
  for (int i = 0; i < 50; ++i) bed.first["POST"]->reply(403);
  bed.look();
  CHECK(bed.transport.count("POST", "") == 3);
}

TEST_CASE("whoever is told to stop ends, and leaves the objects for the next leader") {
  PublisherBed bed;
  std::stop_source stop;
  bed.publisher.begin(stop.get_token());
  stop.request_stop();
  CHECK_FALSE(bed.publisher.look(stop.get_token()));
  CHECK(bed.objects.empty());
  CHECK(bed.publisher.stats().failures == 0);
}

TEST_CASE("without a second name nothing is asked") {
  testing::Scene scene;
  CapacityPublisher publisher(scene.world, "storage");
  publisher.start();
  publisher.stop();
  CHECK(scene.transport.requests().empty());
}

}  // namespace
}  // namespace lpp::provisioner
