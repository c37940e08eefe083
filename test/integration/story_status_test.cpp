// SPDX-License-Identifier: Apache-2.0
// What the daemon tells about itself while it works: metrics, status page, probes, log.

#include <doctest/doctest.h>

#include <csignal>

#include "harness/http_get.h"
#include "support/story_steps.h"
#include "support/trouble.h"

namespace lpp::testing {
namespace {

void wait_for_line(StoryBed& story, const std::string& line) {
  wait_for(story, "the metrics say " + line, [&]() -> std::string {
    const std::string metrics = page(story, "/metrics");
    return metrics.find("\n" + line + "\n") != std::string::npos ? "" : metrics;
  });
}

TEST_CASE("metrics, status page and log follow a volume that is made, fails and goes") {
  StoryBed story({"--log-format=json"});
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  const auto wait_for_step = [&](const std::string& step) {
    wait_for_line(story,
                  "local_path_provisioner_operation_step_duration_seconds_count{operation="
                  "\"provision\",step=\"" +
                      step + "\"} 1");
  };
  // A step that nobody has seen is none: the script lasts until the daemon knows that it runs.
  Trouble trouble(story);
  trouble.hold(Trouble::Kind::kMake, Trouble::Moment::kAfter);
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  wait_for_step("queued");
  wait_for_step("pod_start");
  trouble.end();
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  wait_for_line(
      story, R"(controller_persistentvolumeclaim_provision_total{class="local-path",source=""} 1)");
  wait_for_step("script");
  wait_for_step("volume");
  wait_for_line(story, "local_path_provisioner_active 1");

  const std::string good = change_script(story, "setup", "echo '<b>bees</b>' >&2; exit 7");
  const k8s::ObjectKey bad{"app", "bad"};
  LPP_MUST(story.admin().create(claim_object({.key = bad, .selected_node = "node-2"})));
  wait_for_event(story, bad, "ProvisioningFailed");
  wait_for_line(story, R"(local_path_provisioner_operations{operation="provision"} 1)");
  const std::string status = page(story, "/statusz");
  CHECK(status.find("app/bad") != std::string::npos);
  CHECK(status.find("&lt;b&gt;bees&lt;/b&gt;") != std::string::npos);
  CHECK(status.find("<b>") == std::string::npos);
  CHECK(page(story, "/metrics")
            .find(R"(failures_total{operation="provision",reason="ScriptFailed"})") !=
        std::string::npos);
  CHECK(page(story, "/livez") == "ok");
  CHECK(page(story, "/readyz?verbose").find("readyz check passed") != std::string::npos);
  wait_for_log(story, "helper pod output | <b>bees</b>");

  restore_script(story, "setup", good);
  const auto second = LPP_MUST(story.audit.wait_bound(bad));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  wait_for_line(story, R"(controller_persistentvolume_delete_total{class="local-path"} 1)");
  wait_for_line(story, R"(local_path_provisioner_operations{operation="provision"} 0)");
  wait_for_line(story, R"(local_path_provisioner_operations{operation="delete"} 0)");
  story.installation->daemon().signal(SIGUSR2);
  wait_for_log(story, "not every step is logged any more");  // it was started with --debug
  story.installation->daemon().signal(SIGUSR2);
  wait_for_log(story, "each step is logged");
  LPP_MUST(story.installation->stop_daemon());

  std::istringstream lines(story.installation->log_text());
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    const auto object = nlohmann::json::parse(line, nullptr, false);
    REQUIRE(object.is_object());
    CHECK(object.contains("time"));
    const std::string message = object.value("msg", "");
    if (message == "volume provisioned" || message == "volume deleted") {
      CHECK(object.value("claim", "").starts_with("app/"));
      CHECK(object.value("node", "").starts_with("node-"));
      CHECK((object.value("volume", "") == volume.pv || object.value("volume", "") == second.pv));
    }
  }
}

TEST_CASE("a lease that cannot be had is said by readyz and once by the log") {
  StoryBed story({"--leader-elect", "--leader-elect-resource-namespace=nowhere"});
  // As for somebody who has the rights there: the namespace itself is missing.
  for (const char* call : {"get leases", "create leases"}) {
    story.bed->cluster().faults().add(devcluster::on(call).reply(404, "NotFound"));
  }
  const auto wait_told = [&](const std::string& advice) {
    wait_for(story, "readyz tells to " + advice, [&]() -> std::string {
      const auto answer = http_get(story.installation->daemon().health_port(), "/readyz");
      if (!answer.ok()) return answer.error().message;
      const bool told =
          answer->status == 500 &&
          answer->body.find("[-]leader-election failed: lease nowhere/") != std::string::npos &&
          answer->body.find(advice) != std::string::npos;
      return told ? "" : answer->body;
    });
  };
  LPP_MUST(story.installation->start_daemon());
  wait_told("create that namespace");
  CHECK(page(story, "/livez") == "ok");
  CHECK(page(story, "/metrics").find("\nlocal_path_provisioner_active 0\n") != std::string::npos);
}

TEST_CASE("a daemon whose health port is taken says so and works all the same") {
  StoryBed story;
  const int taken = story.bed->upstream().port;
  const auto installation = LPP_MUST(
      Installation::create(*story.bed, {.daemon = daemon_program(),
                                        .folder = story.folder.path(),
                                        .extra_args = {"--health-port", std::to_string(taken)}}));
  LPP_MUST(installation->start_daemon());
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  LPP_MUST(story.audit.wait_bound(claim));
  CHECK(installation->log_text().find("health server: ") != std::string::npos);
  LPP_MUST(installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
