// SPDX-License-Identifier: Apache-2.0
// Disks that come with work of their own, under the id of work that the agent has on record.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "agent/work.h"
#include "agent_bed.h"
#include "fakes/captured_log.h"
#include "harness/must.h"
#include "mount_point.h"

namespace lpp::agent {
namespace {

using namespace lpp::testing;
using operation::Kind;

TEST_CASE("what a disk that comes has on record under an id that is taken waits for that id") {
  for (const char* const place : {"web/other", "web/pvc-1"}) {
    CAPTURE(place);
    const BaseFolder base;
    const MountPoint point(base);
    CapturedLog log;
    node::Kernel kernel;
    RunningAgent running(base, kernel);
    const auto make = operation_of(base, Kind::kMake);
    (void)running.run(make);
    point.unmount("first");
    {
      node::Kernel other;
      RunningAgent former(base, other);
      auto like_it = make;
      like_it.path = base.at(place);
      like_it.perm = "0700";
      (void)former.run(like_it);
    }
    REQUIRE(work_files(base).size() == 1);
    const auto tells = [&](const char* perm) {
      return running.listener.operation(make).perm == perm;
    };
    const std::string second = LPP_MUST(base.volumes(kernel).identity());
    REQUIRE(running.looks([&] { return running.listener.bases().front().identity == second; }));
    CHECK(tells("0750"));
    const auto lines = log.take();
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("waits until that has ended") != std::string::npos;
          }) == 1);
    running.agent.take(forget(make));
    CHECK(running.looks([&] { return tells("0700"); }));
    CHECK(work_files(base).size() == 1);
    running.agent.take(forget(make));
    CHECK(eventually([&] { return work_files(base).empty(); }));
    // The first one's, which nobody could remove without its disk.
    point.unmount("other");
    point.mount("first");
    CHECK(running.looks([&] { return tells("0750"); }));
  }
}

}  // namespace
}  // namespace lpp::agent
