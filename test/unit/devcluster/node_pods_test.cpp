#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "devcluster/node/nodes.h"
#include "devcluster/runtime/json_access.h"
#include "node_test_support.h"

using namespace lpp;
using namespace lpp::devcluster;
using namespace lpp::devcluster::fields;
using namespace lpp::devcluster::testing;
using nlohmann::json;

namespace {

/// A registry with one node "n1" that runs pods.
struct Bed {
  explicit Bed(const NodeFaults& faults = {}) {
    auto made =
        Nodes::create(registry, clock,
                      {.folder = folder.path(), .restart_back_off = std::chrono::milliseconds(20)});
    REQUIRE(made.ok());
    nodes = *std::move(made);
    nodes->start();
    REQUIRE(nodes->add_node("n1").ok());
    nodes->set_faults("n1", faults);
  }
  ~Bed() { nodes->stop(); }

  static json pod(const std::string& script) {
    return {
        {"metadata", {{"name", "p"}}},
        {"spec",
         {{"nodeName", "n1"},
          {"restartPolicy", "Never"},
          {"terminationGracePeriodSeconds", 0},
          {"containers",
           json::array(
               {{{"name", "main"}, {"image", "busybox"}, {"command", {"sh", "-c", script}}}})}}}};
  }
  void create(const json& object) {
    const Reply reply = registry.create("pods", "default", object);
    INFO(reply.message());
    REQUIRE(reply.ok());
  }
  bool reaches(const std::string& phase) {
    return wait_for(registry, kPod, [&](const json* pod) {
      return pod != nullptr && text_at(*pod, {"status", "phase"}) == phase;
    });
  }
  bool gone() {
    return wait_for(registry, kPod, [](const json* pod) { return pod == nullptr; });
  }
  json status() const {
    const ObjectPtr pod = registry.find("pods", "default", "p");
    return pod == nullptr ? json::object() : pod->at("status");
  }
  json container() const { return status().at("containerStatuses").at(0); }
  std::string log() const { return nodes->log("default", "p", "main").value_or("no log"); }
  bool has_event(const std::string& reason, const std::string& text = {}) {
    return wait_for(registry, {"events", "default", ""}, [&](const json*) {
      for (const ObjectPtr& event : registry.all("events")) {
        if (text_at(*event, {"reason"}) == reason &&
            text_at(*event, {"message"}).find(text) != std::string_view::npos) {
          return true;
        }
      }
      return false;
    });
  }
  /// Waits for a waiting reason of the container.
  bool waits_for(const std::string& reason) {
    return wait_for(registry, kPod, [&](const json* pod) {
      if (pod == nullptr) return false;
      const json& list = array_at(*pod, {"status", "containerStatuses"});
      return !list.empty() && text_at(list[0], {"state", "waiting", "reason"}) == reason;
    });
  }
  std::string on_disk(const std::string& path) const {
    std::ifstream file(nodes->disk_root("n1") + path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const ObjectRef kPod{"pods", "default", "p"};
  SystemClock clock;
  TemporaryFolder folder;
  Registry registry;
  std::unique_ptr<Nodes> nodes;
};

json host_path(const std::string& path, const std::string& type) {
  return {{"name", "v"}, {"hostPath", {{"path", path}, {"type", type}}}};
}

json mounted(json pod, const json& volume, const std::string& at = "/v") {
  pod["spec"]["volumes"].push_back(volume);
  pod["spec"]["containers"][0]["volumeMounts"].push_back(
      {{"name", volume.at("name")}, {"mountPath", at}});
  return pod;
}

}  // namespace

TEST_CASE("a pod runs to its end and its status tells the story") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = Bed::pod("echo out; echo done > /dev/termination-log");
  pod["spec"]["containers"][0]["env"] = json::array(
      {{{"name", "A"}, {"value", "x"}},
       {{"name", "B"}, {"value", "$(A)-$$(A)"}},
       {{"name", "NODE"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}});
  pod["spec"]["containers"][0]["command"] = {"sh", "-c"};
  pod["spec"]["containers"][0]["args"] = {
      "echo \"$B $NODE $(hostname)\"; echo done > /dev/termination-log"};
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
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = Bed::pod("echo no space; exit 28");
  pod["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError";
  bed.create(pod);
  REQUIRE(bed.reaches("Failed"));
  CHECK(bed.container()["state"]["terminated"]["exitCode"] == 28);
  CHECK(bed.container()["state"]["terminated"]["reason"] == "Error");
  CHECK(bed.container()["state"]["terminated"]["message"] == "no space\n");
}

TEST_CASE("a program that is not there fails the pod with the reason") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = Bed::pod("");
  pod["spec"]["containers"][0]["command"] = {"/no/such"};
  bed.create(pod);
  REQUIRE(bed.reaches("Failed"));
  CHECK(bed.container()["state"]["terminated"]["exitCode"] == 128);
  CHECK(bed.container()["state"]["terminated"]["reason"] == "StartError");
}

TEST_CASE("restart policies decide whether a container runs again") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = mounted(Bed::pod("echo x >> /v/runs; test $(wc -l < /v/runs) -ge 3"),
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
      return !list.empty() && number_at(list[0], {"restartCount"}) >= 4;
    }));
  }
}

TEST_CASE("init containers run in order before the main ones") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = mounted(Bed::pod("echo main >> /v/order"), host_path("/o", "DirectoryOrCreate"));
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
  LPP_NEEDS_SANDBOX();
  Bed bed;
  namespace fs = std::filesystem;
  const std::string root = bed.nodes->disk_root("n1");
  SUBCASE("a missing Directory keeps the pod waiting until it is there") {
    bed.create(mounted(Bed::pod("ls /v > /v/list"), host_path("/data/x", "Directory")));
    CHECK(bed.waits_for("ContainerCreating"));
    CHECK(bed.has_event("FailedMount", "hostPath type check failed: /data/x is not a directory"));
    fs::create_directories(root + "/data/x");
    CHECK(bed.reaches("Succeeded"));
  }
  SUBCASE("DirectoryOrCreate makes it with mode 0755") {
    bed.create(
        mounted(Bed::pod("stat -c '%a %u' /v"), host_path("/data/x/y/", "DirectoryOrCreate")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "755 0\n");
    CHECK(fs::is_directory(root + "/data/x/y"));
  }
  SUBCASE("a file is no directory") {
    std::ofstream(root + "/file") << "content";
    bed.create(mounted(Bed::pod("true"), host_path("/file", "DirectoryOrCreate")));
    CHECK(bed.has_event("FailedMount", "/file is not a directory"));
  }
  SUBCASE("File mounts the file") {
    std::ofstream(root + "/file") << "content";
    bed.create(mounted(Bed::pod("cat /v"), host_path("/file", "File")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "content");
  }
  SUBCASE("FileOrCreate makes the file, not its folder") {
    bed.create(mounted(Bed::pod("cat /v"), host_path("/new-file", "FileOrCreate")));
    CHECK(bed.reaches("Succeeded"));
    CHECK(fs::is_regular_file(root + "/new-file"));
  }
  SUBCASE("an absolute link stays on the node's disk") {
    fs::create_directories(root + "/real");
    fs::create_directory_symlink("/real", root + "/link");
    bed.create(mounted(Bed::pod("echo x > /v/f"), host_path("/link", "Directory")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.on_disk("/real/f") == "x\n");
  }
  SUBCASE("a link cannot lead out of the node's disk") {
    fs::create_directory_symlink("../../../../../../..", root + "/up");
    bed.create(mounted(Bed::pod("ls -a /v"), host_path("/up", "Directory")));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == ".\n..\nup\n");
  }
}

TEST_CASE("ConfigMap volumes are files with the chosen names and modes") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  const json map{{"metadata", {{"name", "scripts"}}},
                 {"data", {{"setup", "echo made\n"}, {"other", "x"}}}};
  const auto volume = [](json source) {
    source["name"] = "scripts";
    return json{{"name", "v"}, {"configMap", std::move(source)}};
  };
  SUBCASE("all keys") {
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    bed.create(mounted(Bed::pod("cd /v; for f in *; do stat -L -c '%n %a' $f; done; sh /v/setup"),
                       volume(json::object())));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "other 644\nsetup 644\nmade\n");
  }
  SUBCASE("items") {
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    bed.create(mounted(
        Bed::pod("ls /v; stat -L -c %a /v/bin/run; /v/bin/run"),
        volume(
            {{"items", json::array({{{"key", "setup"}, {"path", "bin/run"}, {"mode", 0755}}})}})));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.log() == "bin\n755\nmade\n");
  }
  SUBCASE("a missing map is waited for") {
    bed.create(mounted(Bed::pod("sh /v/setup"), volume(json::object())));
    CHECK(bed.has_event("FailedMount", "configmap \"scripts\" not found"));
    CHECK(bed.waits_for("ContainerCreating"));
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    CHECK(bed.reaches("Succeeded"));
  }
  SUBCASE("a missing key is named") {
    REQUIRE(bed.registry.create("configmaps", "default", map).ok());
    bed.create(mounted(Bed::pod("true"),
                       volume({{"items", json::array({{{"key", "nope"}, {"path", "x"}}})}})));
    CHECK(bed.has_event("FailedMount", "references non-existent config key: nope"));
  }
  SUBCASE("an optional one may be missing") {
    bed.create(mounted(Bed::pod("ls /v"), volume({{"optional", true}})));
    CHECK(bed.reaches("Succeeded"));
  }
}

TEST_CASE("claims are mounted from their bound volume") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
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
  const json pod = mounted(Bed::pod("echo data > /v/f"),
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
  LPP_NEEDS_SANDBOX();
  Bed bed;
  REQUIRE(bed.registry
              .create("secrets", "default",
                      {{"metadata", {{"name", "s"}}}, {"data", {{"word", "aGVsbG8="}}}})
              .ok());
  json pod = mounted(Bed::pod("echo x > /e/f; cat /s/word; ls /whole"),
                     {{"name", "e"}, {"emptyDir", json::object()}}, "/e");
  pod = mounted(std::move(pod), {{"name", "s"}, {"secret", {{"secretName", "s"}}}}, "/s");
  auto& mounts = pod["spec"]["containers"][0]["volumeMounts"];
  mounts[0]["subPath"] = "deep/below";
  mounts.push_back({{"name", "e"}, {"mountPath", "/whole"}});
  bed.create(pod);
  REQUIRE(bed.reaches("Succeeded"));
  CHECK(bed.log() == "hellodeep\n");
}

TEST_CASE("an image that is not busybox shows as a pull error") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = Bed::pod("true");
  pod["spec"]["containers"][0]["image"] = "example.com/other:1";
  bed.create(pod);
  CHECK(bed.waits_for("ErrImagePull"));
  CHECK(bed.waits_for("ImagePullBackOff"));
  CHECK(bed.has_event("Failed", "example.com/other:1"));
  CHECK(bed.status()["phase"] == "Pending");
}

TEST_CASE("a pod that is too late is killed and Failed as DeadlineExceeded") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = Bed::pod("sleep 100");
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
  LPP_NEEDS_SANDBOX();
  Bed bed;
  SUBCASE("it ends by itself") {
    json pod = mounted(Bed::pod("trap 'echo bye > /v/f; exit 0' TERM; touch /v/up; "
                                "while true; do sleep 0.05; done"),
                       host_path("/t", "DirectoryOrCreate"));
    pod["spec"]["terminationGracePeriodSeconds"] = 10;
    bed.create(pod);
    REQUIRE(bed.reaches("Running"));
    const SystemClock clock;
    const TimePoint end = clock.now() + kDeadline;
    // The trap is set once the file is there; nothing announces that but the disk.
    while (!std::filesystem::exists(bed.nodes->disk_root("n1") + "/t/up") && clock.now() < end) {
    }
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    REQUIRE(bed.gone());
    CHECK(bed.on_disk("/t/f") == "bye\n");
  }
  SUBCASE("it ignores the signal") {
    json pod = Bed::pod("trap '' TERM; while true; do sleep 1; done");
    pod["spec"]["terminationGracePeriodSeconds"] = 1;
    bed.create(pod);
    REQUIRE(bed.reaches("Running"));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    CHECK(bed.gone());
  }
  SUBCASE("it never started") {
    bed.create(mounted(Bed::pod("true"), host_path("/none", "Directory")));
    CHECK(bed.waits_for("ContainerCreating"));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    CHECK(bed.gone());
  }
  SUBCASE("it has finished") {
    bed.create(Bed::pod("true"));
    REQUIRE(bed.reaches("Succeeded"));
    REQUIRE(bed.registry.remove(bed.kPod).ok());
    CHECK(bed.gone());
  }
  SUBCASE("a finalizer keeps the object but not the process") {
    json pod = Bed::pod("sleep 100");
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
  LPP_NEEDS_SANDBOX();
  Bed bed;
  bed.create(Bed::pod("sleep 100"));
  REQUIRE(bed.reaches("Running"));
  REQUIRE(bed.registry.remove(bed.kPod, {.grace_period = std::chrono::seconds(0)}).ok());
  bed.create(Bed::pod("echo second"));
  REQUIRE(bed.reaches("Succeeded"));
  CHECK(bed.log() == "second\n");
}

TEST_CASE("a dead node starts nothing until it is back") {
  LPP_NEEDS_SANDBOX();
  Bed bed(NodeFaults{.dead = true});
  bed.create(Bed::pod("true"));
  bed.nodes->set_ready("n1", false);
  CHECK(bed.status()["phase"] == "Pending");
  CHECK_FALSE(bed.status().contains("startTime"));
  bed.nodes->set_faults("n1", {});
  CHECK(bed.reaches("Succeeded"));
}

TEST_CASE("tests can make a node slow, break its pulls, or evict a pod") {
  LPP_NEEDS_SANDBOX();
  using std::chrono::milliseconds;
  SUBCASE("slow") {
    Bed bed(NodeFaults{.start_delay = milliseconds(100), .report_delay = milliseconds(100)});
    const TimePoint begin = bed.clock.now();
    bed.create(Bed::pod("true"));
    REQUIRE(bed.reaches("Succeeded"));
    CHECK(bed.clock.now() - begin >= milliseconds(200));
  }
  SUBCASE("pulls") {
    Bed bed(NodeFaults{.fail_pulls = true});
    bed.create(Bed::pod("true"));
    CHECK(bed.waits_for("ErrImagePull"));
  }
  SUBCASE("evict") {
    Bed bed;
    bed.create(Bed::pod("sleep 100"));
    REQUIRE(bed.reaches("Running"));
    bed.nodes->evict("default", "p");
    REQUIRE(bed.reaches("Failed"));
    CHECK(bed.status()["reason"] == "Evicted");
  }
}

TEST_CASE("two hundred pods at once are quickly done") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  json pod = mounted(Bed::pod("mkdir -p /v/$(hostname)"), host_path("/many", "DirectoryOrCreate"));
  const TimePoint begin = bed.clock.now();
  for (int i = 0; i < 200; ++i) {
    pod["metadata"]["name"] = "p" + std::to_string(i);
    bed.create(pod);
  }
  for (int i = 0; i < 200; ++i) {
    REQUIRE(wait_for(bed.registry, {"pods", "default", "p" + std::to_string(i)}, [](const json* p) {
      return p != nullptr && text_at(*p, {"status", "phase"}) == "Succeeded";
    }));
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(bed.clock.now() - begin);
  MESSAGE("200 pods took ", took.count(), " ms");
  CHECK(took < std::chrono::seconds(15));
}
