// SPDX-License-Identifier: Apache-2.0
#include "app/status_page.h"

#include <doctest/doctest.h>

#include "app/html.h"
#include "unit/app/subjects_fixture.h"

using namespace lpp;
using namespace lpp::app;
using namespace lpp::testing;
using namespace std::chrono_literals;
using provisioner::Step;

namespace {

bool has(const std::string& page, const std::string& part) {
  return page.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the status page says what is in flight, what failed and what is in force") {
  SubjectsFixture fixture;
  REQUIRE(fixture.config.start().ok());
  fixture.figures.progressed(operation::Kind::kMake, fixture.operation("pvc-1"), Step::kStart,
                             "helper pod cannot start: ErrImagePull");
  fixture.figures.failed({.kind = operation::Kind::kRemove,
                          .volume = "pvc-2",
                          .claim = {"app", "old"},
                          .node = "n2",
                          .reason = "ScriptFailed",
                          .message = "rm: Permission denied"});
  fixture.clock.advance(65s);
  const Subjects subjects = fixture.subjects();
  const std::string page = status_page(subjects);
  CHECK(has(page, "Alive and ready."));
  CHECK(has(page, "Operations in flight: 2"));
  for (const char* text :
       {"app/data", "pvc-1", "n1", "pod_start for 1 min 5 s", "ErrImagePull", "app/old",
        "ScriptFailed", "rm: Permission denied", "every other node", "/data",
        "does not serve claims yet", "10.0.0.1:443", "rancher.io/local-path", "1 min 5 s ago",
        "persistentvolumes", "Helper pods: none"}) {
    CAPTURE(text);
    CHECK(has(page, text));
  }
  CHECK_FALSE(has(page, "refused"));
  // Nothing from elsewhere.
  CHECK_FALSE(has(page, "http://"));
  CHECK_FALSE(has(page, "https://"));
  CHECK_FALSE(has(page, "<script"));
}

TEST_CASE("what is wrong stands at the top") {
  SubjectsFixture fixture;
  fixture.synced = false;
  const Subjects subjects = fixture.subjects();
  const std::string page = status_page(subjects);
  CHECK_FALSE(has(page, "Alive and ready."));
  CHECK(has(page, "<p class=\"bad\">config: no configuration yet</p>"));
  CHECK(has(page, "<p class=\"bad\">caches: not listed yet: persistentvolumes</p>"));
}

TEST_CASE("nothing from the cluster can become markup") {
  const std::string evil = "\"'><script>alert(1)</script>&\x1b[31m";
  const std::string shown = "&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;?[31m";
  CHECK(html_escaped(evil) == shown);
  SubjectsFixture fixture;
  auto operation = fixture.operation("volume" + evil);
  operation.claim = {"ns" + evil, "claim" + evil};
  operation.node = "node" + evil;
  fixture.figures.progressed(operation::Kind::kTakeBack, operation, Step::kScript,
                             "problem" + evil);
  fixture.figures.failed({.volume = "failed" + evil,
                          .claim = {"fns" + evil, "fclaim" + evil},
                          .node = "fnode" + evil,
                          .reason = "reason" + evil,
                          .message = "message" + evil});
  fixture.options.provisioner_name = "name" + evil;
  fixture.identity = "identity" + evil;
  k8s::Pod pod;
  pod.phase = "phase" + evil;
  fixture.helper_pods.put({"ns", "p"}, std::make_shared<const k8s::Pod>(pod));
  const Subjects subjects = fixture.subjects();
  const std::string page = status_page(subjects);
  CHECK_FALSE(has(page, "<script"));
  CHECK_FALSE(has(page, "\x1b"));
  for (const char* what : {"volume", "ns", "claim", "node", "problem", "failed", "fns", "fclaim",
                           "fnode", "reason", "message", "name", "identity", "phase"}) {
    CAPTURE(what);
    CHECK(has(page, what + shown));
  }
}

TEST_CASE("the page stays small however much there is") {
  SubjectsFixture fixture;
  for (int i = 0; i < 3000; ++i) {
    fixture.figures.progressed(operation::Kind::kMake,
                               fixture.operation("pvc-" + std::to_string(i)), Step::kQueued,
                               std::string(900, 'x'));
  }
  const Subjects subjects = fixture.subjects();
  const std::string page = status_page(subjects);
  CHECK(has(page, "Operations in flight: 3000"));
  CHECK(has(page, "These are the 100 oldest ones."));
  CHECK(page.size() < 200'000);
}

TEST_CASE("durations are written for people") {
  CHECK(human(0ms) == "0 ms");
  CHECK(human(999ms) == "999 ms");
  CHECK(human(59s) == "59 s");
  CHECK(human(200s) == "3 min 20 s");
  CHECK(human(5h + 12min) == "5 h 12 min");
  CHECK(human(76h) == "3 d 4 h");
}
