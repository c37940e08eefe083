// SPDX-License-Identifier: Apache-2.0
#include "cli/history.h"

#include <doctest/doctest.h>

#include "base/parse_time.h"
#include "cli_bed.h"
#include "fakes/builders.h"

using namespace lpp::cli;
using namespace lpp::testing;
using namespace std::chrono_literals;

namespace {

const WallTime kNow = *lpp::parse_rfc3339("2026-11-20T12:00:00Z");

/// An Event of half an hour ago, and a volume of another claim.
HistorySources event_and_volume() {
  HistorySources sources;
  sources.provisioner_name = kProvisionerName;
  sources.events = {{.type = "Warning",
                     .reason = "ProvisioningFailed",
                     .message = "no",
                     .component = std::string(kProvisionerName) + "_host_1",
                     .kind = "PersistentVolumeClaim",
                     .about = {"web", "data"},
                     .time = kNow - 30min}};
  sources.volumes = {volume("pvc-1").created("2026-11-20T11:00:00Z").claim("web", "x").build()};
  return sources;
}

}  // namespace

TEST_CASE("lines of the log are read as text and as JSON; anything else is left out") {
  const auto text = log_entry("2026-11-20T09:15:16.123Z warning claim=a/b volume=pvc-1: no disk\n");
  REQUIRE(text.has_value());
  CHECK(text->level == "warning");
  CHECK(text->message == "claim=a/b volume=pvc-1: no disk");
  CHECK(lpp::format_rfc3339(text->time) == "2026-11-20T09:15:16Z");
  const auto json = log_entry(
      R"({"time":"2026-11-20T09:15:16.123Z","level":"warn","msg":"no disk","volume":"pvc-1"})");
  REQUIRE(json.has_value());
  CHECK(json->level == "warning");
  CHECK(json->message == "no disk volume=pvc-1");
  for (const char* line : {"", "panic", "2026 info x", "{", "{}", "a b c", "[1]"}) {
    CAPTURE(line);
    CHECK_FALSE(log_entry(line).has_value());
  }
}

TEST_CASE("what is told are volumes that come and go, and everything that went wrong") {
  const auto told = [](const std::string& rest) {
    return worth_telling(*log_entry("2026-11-20T09:15:16.123Z " + rest));
  };
  CHECK(told("info volume provisioned volume=pvc-1 claim=a/b"));
  CHECK(told("info volume deleted volume=pvc-1"));
  CHECK(told("warning lease is lost"));
  CHECK(told("error step failed"));
  CHECK_FALSE(told("info helper pod created pod=x volume=pvc-1"));
  CHECK_FALSE(told("info caches have synced"));
  CHECK_FALSE(told("debug step volume=pvc-1"));
}

TEST_CASE("the log goes before an Event that tells the same, and both before a volume") {
  HistorySources sources;
  sources.provisioner_name = kProvisionerName;
  sources.log = {*log_entry("2026-11-20T11:00:00.000Z info started volume=pvc-0"),
                 *log_entry("2026-11-20T11:10:00.000Z info volume provisioned volume=pvc-4"),
                 *log_entry("2026-11-20T11:20:00.000Z warning claim=web/data volume=pvc-5: no"),
                 *log_entry("2026-11-20T11:30:00.000Z warning volume=pvc-3: busy")};
  const auto event = [](WallTime time, const std::string& reason, const std::string& component) {
    return EventNote{.type = "Warning",
                     .reason = reason,
                     .message = "no",
                     .component = component,
                     .kind = "PersistentVolumeClaim",
                     .about = {"web", "data"},
                     .time = time,
                     .count = 2};
  };
  const std::string ours = std::string(kProvisionerName) + "_host_1";
  sources.events = {event(kNow - 90min, "ProvisioningFailed", ours),
                    event(kNow - 91min, "Provisioning", ours),
                    event(kNow - 92min, "FailedMount", "kubelet"),
                    event(kNow - 40min, "ProvisioningFailed", ours)};  // the log has it
  sources.volumes = {volume("pvc-1").created("2026-11-20T10:00:00Z").claim("web", "data").build(),
                     volume("pvc-2").created("2026-11-19T10:00:00Z").build(),   // too long ago
                     volume("pvc-4").created("2026-11-20T11:10:00Z").build()};  // the log has it
  std::vector<std::string> told;
  for (const auto& entry : history(sources, kNow - 12h)) {
    told.push_back(lpp::format_rfc3339(entry.time).substr(11, 5) + " " + entry.source + " " +
                   entry.message);
  }
  CHECK(told == std::vector<std::string>{
                    "10:00 volume volume provisioned volume=pvc-1 claim=web/data "
                    "path=/opt/local-path-provisioner/pvc-1",
                    "10:30 event ProvisioningFailed: no (2 times) claim=web/data",
                    "11:00 log started volume=pvc-0", "11:10 log volume provisioned volume=pvc-4",
                    "11:20 log claim=web/data volume=pvc-5: no", "11:30 log volume=pvc-3: busy"});
}

TEST_CASE("what a replica did whose log is gone is told from Events and volumes") {
  HistorySources sources = event_and_volume();
  // The standby's log reaches far back and tells nothing of what the leader did.
  sources.log = {*log_entry("2026-11-20T09:00:00.000Z info standing by"),
                 *log_entry("2026-11-20T11:59:00.000Z info volume deleted volume=pvc-9")};
  const auto told = history(sources, kNow - 12h);
  REQUIRE(told.size() == 3);
  CHECK(told[0].source == "volume");
  CHECK(told[1].source == "event");
  CHECK(told[2].source == "log");
}

TEST_CASE("a name that is a part of another one is not taken for it") {
  HistorySources sources = event_and_volume();
  sources.log = {*log_entry("2026-11-20T11:30:00.000Z warning claim=web/data-2 volume=pvc-10: no"),
                 *log_entry("2026-11-20T11:30:00.000Z warning claim=my-web/data volume=pvc-11: x")};
  CHECK(history(sources, kNow - 12h).size() == 4);
}

TEST_CASE("history of one namespace tells of its claims and their volumes only") {
  HistorySources sources;
  sources.provisioner_name = kProvisionerName;
  sources.ns = "web";
  sources.volumes = {volume("pvc-1").created("2026-11-20T09:00:00Z").claim("web", "x").build(),
                     volume("pvc-2").created("2026-11-20T09:00:00Z").claim("db", "x").build()};
  sources.log = {*log_entry("2026-11-20T10:00:00.000Z warning lease is lost"),
                 *log_entry("2026-11-20T10:01:00.000Z info volume provisioned volume=pvc-1"),
                 *log_entry("2026-11-20T10:02:00.000Z info volume provisioned volume=pvc-2"),
                 *log_entry("2026-11-20T10:03:00.000Z warning claim=web/y volume=pvc-3: no"),
                 *log_entry("2026-11-20T10:04:00.000Z warning claim=web-2/y volume=pvc-4: no")};
  const auto told = history(sources, kNow - 12h);
  REQUIRE(told.size() == 2);
  CHECK(told[0].message == "volume provisioned volume=pvc-1");
  CHECK(told[1].message == "claim=web/y volume=pvc-3: no");
}

TEST_CASE("permissions in one namespace suffice for its history") {
  CliBed bed;
  const std::string time = lpp::format_rfc3339(bed.clock.wall_now() - 10min);
  bed.serve("/namespaces/web/events?",
            {{{"type", "Warning"},
              {"reason", "ProvisioningFailed"},
              {"message", "no space"},
              {"source", {{"component", std::string(kProvisionerName) + "_host_1"}}},
              {"lastTimestamp", time},
              {"involvedObject",
               {{"kind", "PersistentVolumeClaim"}, {"namespace", "web"}, {"name", "data"}}}}});
  bed.transport->on("GET", "").always([](const auto&) {
    return lpp::k8s::Response{403, "{}", "application/json"};
  });
  const auto outcome = bed.run({"history", "-n", "web"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("ProvisioningFailed: no space claim=web/data") != std::string::npos);
  CHECK(outcome.err.find("note: list persistentvolumes: ") != std::string::npos);
  CHECK(bed.run({"history"}).code == 1);
}

TEST_CASE("of a log that is too long the newest lines are read, and that is said") {
  CliBed bed;
  const std::string stamp = lpp::format_rfc3339(bed.clock.wall_now() - 10min).substr(0, 19);
  std::string few;
  for (int i = 0; i < 5000; ++i) few += stamp + ".000Z info ready\n";
  bed.transport->on("GET", "tailLines=20000").reply(200, std::string(8UL * 1024 * 1024, 'x'));
  bed.transport->on("GET", "tailLines=5000")
      .reply(200, few + stamp + ".000Z info volume deleted volume=pvc-1\n");
  bed.serve("/local-path-storage/pods?",
            {pod("daemon")
                 .set("/spec/containers",
                      {{{"name", "c"}, {"command", {"local-path-provisioner", "start"}}}})
                 .json()});
  bed.serve_nothing_else();
  const auto outcome = bed.run({"history", "--since", "1h"});
  CHECK(outcome.out.find("volume deleted volume=pvc-1") != std::string::npos);
  CHECK(outcome.err.find("only the newest lines") != std::string::npos);
}

TEST_CASE("history reads the logs of the provisioner's pods, also from before a restart") {
  CliBed bed;
  const std::string now = lpp::format_rfc3339(bed.clock.wall_now() - 10min);
  const std::string stamp = now.substr(0, 19) + ".000Z ";
  bed.transport->on("GET", "previous=true").reply(200, stamp + "warning lease is lost\n");
  bed.transport->on("GET", "/pods/daemon/log?container=c&sinceSeconds=3600")
      .reply(200, stamp + "info volume deleted volume=pvc-1\n" + stamp + "info ready\n");
  bed.serve("/local-path-storage/pods?",
            {pod("daemon")
                 .set("/spec/containers",
                      {{{"name", "c"}, {"command", {"local-path-provisioner", "start"}}}})
                 .set("/status/containerStatuses", {{{"name", "c"}, {"restartCount", 1}}})
                 .json(),
             pod("helper").set("/spec/containers", {{{"name", "h"}, {"image", "x"}}}).json()});
  bed.serve_nothing_else();
  const auto outcome = bed.run({"history", "--since", "1h"});
  CHECK(outcome.err.empty());
  CHECK(outcome.code == 0);
  CHECK(outcome.out == "TIME                   LEVEL     WHAT\n" + now +
                           "   warning   lease is lost\n" + now +
                           "   info      volume deleted volume=pvc-1\n");
  CHECK(bed.run({"history", "--since", "-1h"}).code == 2);
  CHECK(bed.run({"history", "--since", "soon"}).code == 2);
}

TEST_CASE("without a pod of the provisioner, history says what it is made from") {
  CliBed bed;
  bed.serve_nothing_else();
  const auto outcome = bed.run({"history"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find("only Events (kept for an hour by default)") != std::string::npos);
  CHECK(outcome.err.find("Nothing in the last 24h.") != std::string::npos);
}
