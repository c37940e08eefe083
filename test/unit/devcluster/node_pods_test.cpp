// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "node_pod_bed.h"

using namespace lpp;
using namespace lpp::devcluster;
using namespace lpp::devcluster::testing;

TEST_CASE("a pod runs to its end and its status tells the story") {
  PodBed bed;
  json pod = PodBed::pod("echo out; echo done > /dev/termination-log");
  pod["spec"]["containers"][0]["env"] = json::array(
      {{{"name", "A"}, {"value", "x"}},
       {{"name", "B"}, {"value", "$(A)-$$(A)"}},
       {{"name", "NODE"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}});
  pod["spec"]["containers"][0]["command"] = {"sh", "-c"};
  pod["spec"]["containers"][0]["args"] = {
      "echo \"$B $NODE $HOSTNAME\"; echo done > /dev/termination-log"};
  bed.create(pod);
  REQUIRE(bed.reaches("Succeeded"));
  const json ended = bed.container();
  CHECK(ended["state"]["terminated"]["exitCode"] == 0);
  CHECK(ended["state"]["terminated"]["reason"] == "Completed");
  CHECK(ended["state"]["terminated"]["message"] == "done\n");
  CHECK(bed.status().contains("startTime"));
  CHECK(bed.log() == "x-$(A) n1 p\n");
  CHECK(bed.has_event("Started", "main"));
}

TEST_CASE("a failing container makes the pod Failed with its exit code and the tail of its log") {
  PodBed bed;
  json pod = PodBed::pod("echo no space; exit 28");
  pod["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError";
  bed.create(pod);
  REQUIRE(bed.reaches("Failed"));
  CHECK(bed.container()["state"]["terminated"]["exitCode"] == 28);
  CHECK(bed.container()["state"]["terminated"]["reason"] == "Error");
  CHECK(bed.container()["state"]["terminated"]["message"] == "no space\n");
}

TEST_CASE("a program that is not there fails the pod with the reason") {
  PodBed bed;
  json pod = PodBed::pod("");
  pod["spec"]["containers"][0]["command"] = {"/no/such"};
  bed.create(pod);
  REQUIRE(bed.reaches("Failed"));
  CHECK(bed.container()["state"]["terminated"]["exitCode"] == 128);
  CHECK(bed.container()["state"]["terminated"]["reason"] == "StartError");
}

TEST_CASE("restart policies decide whether a container runs again") {
  PodBed bed;
  json pod = mounted(PodBed::pod("echo x >> /v/runs; test $(wc -l < /v/runs) -ge 3"),
                     host_path("/opt/runs", "DirectoryOrCreate"));
  SUBCASE("OnFailure: until it succeeds") {
    pod["spec"]["restartPolicy"] = "OnFailure";
    bed.create(pod);
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.container()["restartCount"] == 2);
    CHECK(bed.on_disk("/opt/runs/runs") == "x\nx\nx\n");
  }
  SUBCASE("Never: once") {
    bed.create(pod);
    REQUIRE(bed.reaches("Failed"));
    CHECK(bed.on_disk("/opt/runs/runs") == "x\n");
  }
  SUBCASE("Always: after success too") {
    pod["spec"]["restartPolicy"] = "Always";
    bed.create(pod);
    CHECK(wait_for(bed.registry, bed.kPod, [](const json* p) {
      const json& list = array_at(*p, {"status", "containerStatuses"});
      return !list.empty() && number_at(list[0], {"restartCount"}, 0) >= 4;
    }));
  }
}

TEST_CASE("init containers run in order before the main ones") {
  PodBed bed;
  json pod = mounted(PodBed::pod("echo main >> /v/order"), host_path("/o", "DirectoryOrCreate"));
  for (const char* name : {"one", "two"}) {
    pod["spec"]["initContainers"].push_back(
        {{"name", name},
         {"image", "busybox"},
         {"command", {"sh", "-c", std::string("echo ") + name + " >> /v/order"}},
         {"volumeMounts", json::array({{{"name", "v"}, {"mountPath", "/v"}}})}});
  }
  SUBCASE("all well") {
    bed.create(pod);
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.on_disk("/o/order") == "one\ntwo\nmain\n");
  }
  SUBCASE("a failing one ends the pod") {
    pod["spec"]["initContainers"][0]["command"] = {"false"};
    bed.create(pod);
    REQUIRE(bed.reaches("Failed"));
    CHECK(bed.on_disk("/o/order").empty());
  }
}

TEST_CASE("hostPath volumes are checked by type as on a real node") {
  PodBed bed;
  namespace fs = std::filesystem;
  const std::string root = bed.nodes->disk_root("n1");
  SUBCASE("a missing Directory keeps the pod waiting until it is there") {
    bed.create(mounted(PodBed::pod("ls /v > /v/list"), host_path("/data/x", "Directory")));
    CHECK(bed.waits_for("ContainerCreating"));
    CHECK(bed.has_event("FailedMount", "hostPath type check failed: /data/x is not a directory"));
    fs::create_directories(root + "/data/x");
    CHECK(bed.reaches("Succeeded"));
  }
  SUBCASE("DirectoryOrCreate makes it with mode 0755") {
    bed.create(
        mounted(PodBed::pod("stat -c '%a %u' /v"), host_path("/data/x/y/", "DirectoryOrCreate")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "755 0\n");
    CHECK(fs::is_directory(root + "/data/x/y"));
  }
  SUBCASE("a file is no directory") {
    std::ofstream(root + "/file") << "content";
    bed.create(mounted(PodBed::pod("true"), host_path("/file", "DirectoryOrCreate")));
    CHECK(bed.has_event("FailedMount", "/file is not a directory"));
  }
  SUBCASE("File mounts the file") {
    std::ofstream(root + "/file") << "content";
    bed.create(mounted(PodBed::pod("cat /v"), host_path("/file", "File")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "content");
  }
  SUBCASE("FileOrCreate makes the file, not its folder") {
    bed.create(mounted(PodBed::pod("cat /v"), host_path("/new-file", "FileOrCreate")));
    CHECK(bed.reaches("Succeeded"));
    CHECK(fs::is_regular_file(root + "/new-file"));
  }
  SUBCASE("an absolute link stays on the node's disk") {
    fs::create_directories(root + "/real");
    fs::create_directory_symlink("/real", root + "/link");
    bed.create(mounted(PodBed::pod("echo x > /v/f"), host_path("/link", "Directory")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.on_disk("/real/f") == "x\n");
  }
  SUBCASE("a link cannot lead out of the node's disk") {
    fs::create_directory_symlink("../../../../../../..", root + "/up");
    bed.create(mounted(PodBed::pod("ls -a /v"), host_path("/up", "Directory")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == ".\n..\nup\n");
  }
}

TEST_CASE("ConfigMap volumes are files with the chosen names and modes") {
  PodBed bed;
  const json map{{"metadata", {{"name", "scripts"}}},
                 {"data", {{"setup", "echo made\n"}, {"other", "x"}}}};
  const auto volume = [](json source) {
    source["name"] = "scripts";
    return json{{"name", "v"}, {"configMap", std::move(source)}};
  };
  SUBCASE("all keys") {
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    bed.create(
        mounted(PodBed::pod("cd /v; for f in *; do stat -L -c '%n %a' $f; done; sh /v/setup"),
                volume(json::object())));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "other 644\nsetup 644\nmade\n");
  }
  SUBCASE("items") {
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    bed.create(mounted(
        PodBed::pod("ls /v; stat -L -c %a /v/bin/run; /v/bin/run"),
        volume(
            {{"items", json::array({{{"key", "setup"}, {"path", "bin/run"}, {"mode", 0755}}})}})));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "bin\n755\nmade\n");
  }
  SUBCASE("a missing map is waited for") {
    bed.create(mounted(PodBed::pod("sh /v/setup"), volume(json::object())));
    CHECK(bed.has_event("FailedMount", "configmap \"scripts\" not found"));
    CHECK(bed.waits_for("ContainerCreating"));
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    CHECK(bed.reaches("Succeeded"));
  }
  SUBCASE("a missing key is named") {
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    bed.create(mounted(PodBed::pod("true"),
                       volume({{"items", json::array({{{"key", "nope"}, {"path", "x"}}})}})));
    CHECK(bed.has_event("FailedMount", "references non-existent config key: nope"));
  }
  SUBCASE("an optional one may be missing") {
    bed.create(mounted(PodBed::pod("ls /v"), volume({{"optional", true}})));
    CHECK(bed.reaches("Succeeded"));
  }
}

TEST_CASE("claims are mounted from their bound volume") {
  PodBed bed;
  const json claim{{"metadata", {{"name", "c"}}},
                   {"spec",
                    {{"accessModes", {"ReadWriteOnce"}},
                     {"volumeName", "pv"},
                     {"resources", {{"requests", {{"storage", "1Mi"}}}}}}}};
  const Reply created = bed.registry.create("persistentvolumeclaims", "default", claim);
  REQUIRE(created.ok());
  json volume{{"metadata", {{"name", "pv"}}},
              {"spec",
               {{"capacity", {{"storage", "1Mi"}}},
                {"accessModes", {"ReadWriteOnce"}},
                {"claimRef",
                 {{"kind", "PersistentVolumeClaim"},
                  {"namespace", "default"},
                  {"name", "c"},
                  {"uid", uid_of(*created.body)}}}}}};
  const auto bind = [&] {
    const Reply bound =
        bed.registry.patch({"persistentvolumeclaims", "default", "c"}, PatchType::kMerge,
                           {{"status", {{"phase", "Bound"}}}}, {.subresource = "status"});
    REQUIRE(bound.ok());
  };
  const json pod = mounted(PodBed::pod("echo data > /v/f"),
                           {{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "c"}}}});
  const auto affinity = [](const std::string& node) {
    return json{
        {"required",
         {{"nodeSelectorTerms",
           json::array({{{"matchExpressions", json::array({{{"key", "kubernetes.io/hostname"},
                                                            {"operator", "In"},
                                                            {"values", {node}}}})}}})}}}};
  };
  SUBCASE("hostPath") {
    volume["spec"]["hostPath"] = {{"path", "/opt/pv"}, {"type", "DirectoryOrCreate"}};
    REQUIRE(bed.registry.create("persistentvolumes", "", volume).ok());
    bed.create(pod);
    CHECK(bed.has_event("FailedMount", "not bound"));
    bind();
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.on_disk("/opt/pv/f") == "data\n");
  }
  SUBCASE("local needs its directory") {
    volume["spec"]["local"] = {{"path", "/opt/pv"}};
    volume["spec"]["nodeAffinity"] = affinity("n1");
    REQUIRE(bed.registry.create("persistentvolumes", "", volume).ok());
    bind();
    bed.create(pod);
    CHECK(bed.has_event("FailedMount", "path \"/opt/pv\" does not exist"));
    std::filesystem::create_directories(bed.nodes->disk_root("n1") + "/opt/pv");
    CHECK(bed.reaches("Succeeded"));
  }
  SUBCASE("a volume of another node is refused") {
    volume["spec"]["hostPath"] = {{"path", "/opt/pv"}, {"type", "DirectoryOrCreate"}};
    volume["spec"]["nodeAffinity"] = affinity("n2");
    REQUIRE(bed.registry.create("persistentvolumes", "", volume).ok());
    bind();
    bed.create(pod);
    CHECK(bed.has_event("FailedMount", "no matching NodeSelectorTerms"));
  }
}

TEST_CASE("emptyDir, Secret and subPath volumes work") {
  PodBed bed;
  REQUIRE(bed.registry
              .create("secrets", "default",
                      {{"metadata", {{"name", "s"}}}, {"data", {{"word", "aGVsbG8="}}}})
              .ok());
  json pod = mounted(PodBed::pod("echo x > /e/f; cat /s/word; ls /whole"),
                     {{"name", "e"}, {"emptyDir", json::object()}}, "/e");
  pod = mounted(std::move(pod), {{"name", "s"}, {"secret", {{"secretName", "s"}}}}, "/s");
  auto& mounts = pod["spec"]["containers"][0]["volumeMounts"];
  mounts[0]["subPath"] = "deep/below";
  mounts.push_back({{"name", "e"}, {"mountPath", "/whole"}});
  bed.create(pod);
  REQUIRE(bed.reaches("Succeeded"));
  CHECK(bed.log() == "hellodeep\n");
}
