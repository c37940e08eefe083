// SPDX-License-Identifier: Apache-2.0
#include "app/disk_news.h"

#include <doctest/doctest.h>

#include "fakes/builders.h"
#include "fakes/captured_log.h"
#include "unit/provisioner/scene.h"

using namespace lpp;
using namespace lpp::testing;

TEST_CASE("that a base path's disk is missing, and that it is back, is told once on the node") {
  CapturedLog log;
  RecordedEvents events;
  k8s::StoreWriter<k8s::Node> nodes;
  nodes.put({"", "n1"}, node("n1").shared());
  app::DiskNews news(events, nodes);
  news.look("n1", "/data", "");
  CHECK(events.lines.empty());
  news.look("n1", "/data", "/data on node n1 is not on its disk");
  news.look("n1", "/data", "/data on node n1 is not on its disk, in other words");
  news.look("n1", "/fast", "");
  CHECK(events.lines == std::vector<std::string>{
                            "Node/n1 Warning DiskMissing: /data on node n1 is not on its disk"});
  news.look("n1", "/data", "");
  news.look("n1", "/data", "");
  CHECK(events.lines.size() == 2);
  CHECK(events.lines.back() ==
        "Node/n1 Normal DiskBack: /data on node n1 has its disk again: what waited for it goes on");
}

TEST_CASE("what becomes of a disk while its Node is not known yet is told when it is") {
  CapturedLog log;
  RecordedEvents events;
  k8s::StoreWriter<k8s::Node> nodes;
  app::DiskNews news(events, nodes);
  const auto look = [&](const std::string& why) { news.look("n2", "/data", why); };
  look("its disk is missing");
  look("its disk is missing");
  CHECK(events.lines.empty());
  // At least the log tells, once.
  CHECK(log.take() == std::vector<std::string>{"warning its disk is missing"});
  SUBCASE("that it is missing") {
    nodes.put({"", "n2"}, node("n2").shared());
    look("its disk is missing");
    look("its disk is missing");
    CHECK(events.lines ==
          std::vector<std::string>{"Node/n2 Warning DiskMissing: its disk is missing"});
    CHECK(log.take().empty());
    SUBCASE("and that it is back") {
      nodes.erase({"", "n2"});
      look("");
      CHECK(events.lines.size() == 1);
      nodes.put({"", "n2"}, node("n2").shared());
      look("");
      look("");
      REQUIRE(events.lines.size() == 2);
      CHECK(events.lines.back().starts_with("Node/n2 Normal DiskBack: "));
      CHECK(log.take().size() == 1);
    }
  }
  SUBCASE("but not that it was, when it is back") {
    look("");
    nodes.put({"", "n2"}, node("n2").shared());
    look("");
    CHECK(events.lines.empty());
    CHECK(log.take().size() == 1);
  }
}
