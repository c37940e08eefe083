// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "fakes/eventually.h"
#include "node_pod_bed.h"

using namespace lpp;
using namespace lpp::devcluster;
using namespace lpp::devcluster::testing;

TEST_CASE("an image that is not busybox shows as a pull error") {
  PodBed bed;
  json pod = PodBed::pod("true");
  pod["spec"]["containers"][0]["image"] = "example.com/other:1";
  bed.create(pod);
  CHECK(bed.waits_for("ErrImagePull"));
  CHECK(bed.waits_for("ImagePullBackOff"));
  CHECK(bed.has_event("Failed", "example.com/other:1"));
  CHECK(bed.status()["phase"] == "Pending");
}

TEST_CASE("a pod that is too late is killed and Failed as DeadlineExceeded") {
  PodBed bed;
  json pod = PodBed::pod("sleep 100");
  pod["spec"]["activeDeadlineSeconds"] = 1;
  SUBCASE("while it runs") {}
  SUBCASE("while it cannot start") {
    pod["spec"]["containers"][0]["image"] = "example.com/other:1";
  }
  bed.create(pod);
  REQUIRE(bed.reaches("Failed"));
  CHECK(bed.status()["reason"] == "DeadlineExceeded");
}

TEST_CASE("a deleted pod gets SIGTERM, then SIGKILL after its grace period") {
  PodBed bed;
  SUBCASE("it ends by itself") {
    json pod = mounted(PodBed::pod("trap 'echo bye > /v/f; exit 0' TERM; touch /v/up; "
                                   "while true; do sleep 0.05; done"),
                       host_path("/t", "DirectoryOrCreate"));
    pod["spec"]["terminationGracePeriodSeconds"] = 100;
    bed.create(pod);
    REQUIRE(bed.reaches("Running"));
    // The trap is set once the file is there; nothing announces that but the disk.
    REQUIRE(lpp::testing::eventually(
        [&] { return std::filesystem::exists(bed.nodes->disk_root("n1") + "/t/up"); }));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    REQUIRE(bed.gone());
    CHECK(bed.on_disk("/t/f") == "bye\n");
  }
  SUBCASE("it ignores the signal") {
    json pod = PodBed::pod("trap '' TERM; while true; do sleep 1; done");
    pod["spec"]["terminationGracePeriodSeconds"] = 1;
    bed.create(pod);
    REQUIRE(bed.reaches("Running"));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    CHECK(bed.gone());
  }
  SUBCASE("it never started") {
    bed.create(mounted(PodBed::pod("true"), host_path("/none", "Directory")));
    CHECK(bed.waits_for("ContainerCreating"));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    CHECK(bed.gone());
  }
  SUBCASE("it has finished") {
    bed.create(PodBed::pod("true"));
    REQUIRE(bed.reaches("Succeeded"));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    CHECK(bed.gone());
  }
  SUBCASE("a finalizer keeps the object but not the process") {
    json pod = PodBed::pod("sleep 100");
    pod["metadata"]["finalizers"] = {"example.com/hold"};
    bed.create(pod);
    REQUIRE(bed.reaches("Running"));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    CHECK(wait_for(bed.registry, bed.kPod, [](const json* p) {
      return p != nullptr &&
             array_at(*p, {"status", "containerStatuses"}).at(0).at("state").contains("terminated");
    }));
  }
}

TEST_CASE("a pod that comes back under the same name starts anew") {
  PodBed bed;
  bed.create(PodBed::pod("sleep 100"));
  REQUIRE(bed.reaches("Running"));
  REQUIRE(bed.registry.remove(bed.kPod, {.grace_period = std::chrono::seconds(0)}).ok());
  bed.create(PodBed::pod("echo second"));
  REQUIRE(bed.reaches("Succeeded"));
  CHECK(bed.log() == "second\n");
}

TEST_CASE("a dead node starts nothing until it is back") {
  PodBed bed(NodeFaults{.dead = true});
  bed.create(PodBed::pod("true"));
  bed.nodes->set_ready("n1", false);
  CHECK(bed.status()["phase"] == "Pending");
  CHECK_FALSE(bed.status().contains("startTime"));
  bed.nodes->set_faults("n1", {});
  CHECK(bed.reaches("Succeeded"));
}

TEST_CASE("tests can make a node slow, break its pulls, or evict a pod") {
  using std::chrono::milliseconds;
  SUBCASE("slow") {
    PodBed bed(NodeFaults{.start_delay = milliseconds(100), .report_delay = milliseconds(100)});
    const TimePoint begin = bed.clock.now();
    bed.create(PodBed::pod("true"));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.clock.now() - begin >= milliseconds(200));
  }
  SUBCASE("late with its word of what has started") {
    PodBed bed(NodeFaults{.report_delay = std::chrono::hours(1)});
    bed.create(
        mounted(PodBed::pod("touch /v/here; sleep 100"), host_path("/late", "DirectoryOrCreate")));
    const std::string file = bed.nodes->disk_root("n1") + "/late/here";
    REQUIRE(lpp::testing::eventually([&] { return std::filesystem::exists(file); }));
    CHECK(bed.waits_for("ContainerCreating"));
    bed.nodes->set_faults("n1", {});
    CHECK(bed.reaches("Running"));
  }
  SUBCASE("silent until what has started is over") {
    PodBed bed(NodeFaults{.report_delay = std::chrono::hours(1), .silent_start = true});
    bed.create(mounted(PodBed::pod("touch /v/here; until [ -e /v/end ]; do sleep 0.05; done"),
                       host_path("/silent", "DirectoryOrCreate")));
    const std::string disk = bed.nodes->disk_root("n1") + "/silent";
    REQUIRE(lpp::testing::eventually([&] { return std::filesystem::exists(disk + "/here"); }));
    CHECK_FALSE(bed.status().contains("containerStatuses"));
    std::ofstream(disk + "/end") << "";
    bed.nodes->set_faults("n1", {});
    CHECK(bed.reaches("Succeeded"));
  }
  SUBCASE("pulls") {
    PodBed bed(NodeFaults{.fail_pulls = true});
    bed.create(PodBed::pod("true"));
    CHECK(bed.waits_for("ErrImagePull"));
  }
  SUBCASE("evict") {
    PodBed bed;
    bed.create(PodBed::pod("sleep 100"));
    REQUIRE(bed.reaches("Running"));
    bed.nodes->evict("default", "p");
    REQUIRE(bed.reaches("Failed"));
    CHECK(bed.status()["reason"] == "Evicted");
  }
}

TEST_CASE("many pods run at once") {
  PodBed bed;
  // proot looks at every system call.
  const int pods = bed.nodes->sandbox() == "bubblewrap" ? 200 : 40;
  // None ends before all of them run.
  json pod = mounted(PodBed::pod("read go </v/go"), host_path("/many", "DirectoryOrCreate"));
  const std::string folder = bed.nodes->disk_root("n1") + "/many";
  std::filesystem::create_directories(folder);
  REQUIRE(::mkfifo((folder + "/go").c_str(), 0600) == 0);
  const UniqueFd open_ended(::open((folder + "/go").c_str(), O_RDWR | O_CLOEXEC));
  for (int i = 0; i < pods; ++i) {
    pod["metadata"]["name"] = "p" + std::to_string(i);
    bed.create(pod);
  }
  const auto all_are = [&](const char* phase) {
    for (int i = 0; i < pods; ++i) {
      REQUIRE(
          wait_for(bed.registry, {"pods", "default", "p" + std::to_string(i)}, [&](const json* p) {
            return p != nullptr && text_at(*p, {"status", "phase"}) == phase;
          }));
    }
  };
  all_are("Running");
  std::ofstream(folder + "/go") << std::string(pods, '\n');  // a line for each
  all_are("Succeeded");
}
