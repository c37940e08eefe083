// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "directory_bed.h"
#include "fakes/skipping_clock.h"

using namespace lpp::testing;

namespace {

using nlohmann::json;

struct SweepBed : DirectoryBed {
  SweepBed() { orphans = {orphan()}; }
  Outcome sweep(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"sweep", "--node", "n1", "--path", kOnDisk};
    all.insert(all.end(), more.begin(), more.end());
    return run_command(all);
  }
  Outcome sweep_all(const std::vector<std::string>& more) {
    std::vector<std::string> all{"sweep", "--node", "n1", "--all"};
    all.insert(all.end(), more.begin(), more.end());
    return run_command(all);
  }
  /// "POST PATCH"
  std::string methods() const {
    std::string all;
    for (const auto& one : writes()) all += (all.empty() ? "" : " ") + one.method;
    return all;
  }
};

json with_path(json orphan, const std::string& path, const std::string& volume_name) {
  orphan["path"] = path;
  orphan["volume"] = volume_name;
  orphan["claim"] = "web/" + volume_name;
  orphan["uid"] = "uid-of-" + volume_name;
  return orphan;
}

json using_pod(json volume_source, const std::string& phase = "Running") {
  json object = pod("user").ns("web").node("n1").phase(phase).json();
  volume_source["name"] = "v";
  object["spec"]["volumes"] = json::array({std::move(volume_source)});
  return object;
}
json host_path(const std::string& path) { return {{"hostPath", {{"path", path}}}}; }
json of_claim(const std::string& name) {
  return {{"persistentVolumeClaim", {{"claimName", name}}}};
}

}  // namespace

TEST_CASE("sweep takes the place with a volume that retains it, and condemns that one") {
  SweepBed bed;
  bed.orphans[0]["disk"] = "disk-7";
  const auto outcome = bed.sweep();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("the directory is gone") != std::string::npos);
  CHECK(bed.methods() == "POST PATCH");
  const json made = bed.made().at(0);
  CHECK(made["metadata"]["name"] == "pvc-1");
  CHECK_FALSE(made["metadata"].contains("finalizers"));
  CHECK(made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == kProvisionerName);
  CHECK(made["metadata"]["annotations"]["local.path.provisioner/selected-node"] == "n1");
  CHECK(made["spec"]["persistentVolumeReclaimPolicy"] == "Retain");
  CHECK(made["spec"]["hostPath"]["path"] == kOnDisk);
  CHECK(made["spec"]["storageClassName"] == "");
  const json reference = made["spec"]["claimRef"];
  CHECK(reference["namespace"] == "local-path-storage");
  CHECK(reference["name"] == "swept-pvc-1");
  CHECK(reference["uid"].get<std::string>().starts_with("swept-"));
  CHECK(made["metadata"]["annotations"]["local.path.provisioner/disk"] == "disk-7");
  const auto& terms = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
  CHECK(terms[0]["matchExpressions"][0]["values"] == json{"n1"});
  const json patch = json::parse(bed.writes().at(1).body);
  CHECK(patch["spec"]["persistentVolumeReclaimPolicy"] == "Delete");
  CHECK(patch["metadata"]["uid"] == "uid-made");
}

TEST_CASE("sweep --dry-run only says what would go") {
  SweepBed bed;
  const auto out = json::parse(bed.sweep({"--dry-run", "-o", "json"}).out);
  CHECK(out["dryRun"] == true);
  CHECK(out["items"][0]["action"] == "remove");
  CHECK(out["items"][0]["path"] == kOnDisk);
  CHECK(bed.writes().empty());
}

TEST_CASE("sweep --all leaves out what is of another cluster or not on record") {
  SweepBed bed;
  json gone = with_path(DirectoryBed::orphan(), "/opt/b/pvc-2_web_logs", "pvc-2");
  json elsewhere = with_path(DirectoryBed::orphan(), "/opt/c/pvc-5_web_logs", "pvc-5");
  elsewhere["node"] = "n2";
  bed.orphans = {DirectoryBed::orphan(),
                 gone,
                 elsewhere,
                 with_path(DirectoryBed::orphan("OtherCluster"), "/opt/a/pvc-3_web_logs", "pvc-3"),
                 with_path(DirectoryBed::orphan("NoRecord"), "/opt/a/stuff", ""),
                 with_path(DirectoryBed::orphan("Unfinished"), "/opt/a/pvc-4_web_logs", "pvc-4")};
  const auto refused = bed.sweep_all({});
  CHECK(refused.code == 2);
  CHECK(refused.err.find("--yes") != std::string::npos);
  CHECK(bed.transport->requests().empty());
  const auto outcome = bed.sweep_all({"--yes", "-o", "json"});
  CHECK(outcome.code == 0);
  std::map<std::string, std::string> actions;
  const json out = json::parse(outcome.out);
  for (const auto& item : out["items"]) actions[item["path"]] = item["action"];
  CHECK(actions.size() == 5);
  CHECK(actions[kOnDisk] == "removed");
  CHECK(actions["/opt/b/pvc-2_web_logs"] == "removed");
  CHECK(actions["/opt/a/pvc-3_web_logs"] == "passed over");
  CHECK(actions["/opt/a/pvc-4_web_logs"] == "passed over");
  CHECK(actions["/opt/a/stuff"] == "passed over");
  CHECK(bed.methods() == "POST POST PATCH PATCH");
}

TEST_CASE("sweep refuses a directory that is called by the names of a claim that is there") {
  SweepBed bed;
  // The record tells of an earlier claim of that name.
  bed.orphans = {with_path(DirectoryBed::orphan(), "/opt/a/web/data", "pvc-1")};
  bed.orphans[0]["claim"] = "web/data";
  bed.claims.push_back(claim("data").ns("web").uid("uid-of-now").json());
  const auto outcome = bed.sweep_all({"--yes"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("may have its data in a directory of that name") != std::string::npos);
  CHECK(bed.writes().empty());
}

TEST_CASE("sweep --all says that there is more than is listed, and is not done") {
  SweepBed bed;
  bed.left_out = {{"n1", 3}};
  const auto outcome = bed.sweep_all({"--yes"});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.find("there is more on node n1") != std::string::npos);
  CHECK(bed.methods() == "POST PATCH");
}

TEST_CASE("a directory of another cluster goes when it is named") {
  SweepBed bed;
  bed.orphans = {DirectoryBed::orphan("OtherCluster")};
  CHECK(bed.sweep().code == 0);
  CHECK(bed.methods() == "POST PATCH");
}

namespace {

struct Doubt {
  const char* why;
  std::function<void(SweepBed&)> arrange;
};

/// What speaks against it, whenever it comes up.
const std::vector<Doubt>& doubts() {
  static const std::vector<Doubt> all{
      {"overlaps the directory /opt/a/pvc-1_web_data of volume pv-x",
       [](SweepBed& bed) {
         bed.volumes.push_back(volume("pv-x").host_path(kOnDisk).node("n1").json());
       }},
      {"overlaps the directory /opt/a/pvc-1_web_data/in of volume pv-x",
       [](SweepBed& bed) {
         bed.volumes.push_back(volume("pv-x")
                                   .local(std::string(kOnDisk) + "/in")
                                   .node("n1")
                                   .annotation("pv.kubernetes.io/provisioned-by", "example.com/x")
                                   .json());
       }},
      {"volume pv-y is of the claim that it was made for",
       [](SweepBed& bed) {
         bed.volumes.push_back(volume("pv-y").claim("web", "data", "1").node("n2").json());
       }},
      {"claim web/again, which it was made for, is there",
       [](SweepBed& bed) { bed.claims.push_back(claim("again").ns("web").uid("1").json()); }},
      {"is there: adopt it for that claim",
       [](SweepBed& bed) { bed.claims.push_back(claim("again").ns("web").uid("1").json()); }},
      {"is there, and its volume pvc-new has directory /opt/b/new on node n2: look which",
       [](SweepBed& bed) {
         bed.nodes.push_back(node("n2").json());
         bed.claims.push_back(claim("again").ns("web").uid("1").volume("pvc-new").json());
         bed.volumes.push_back(
             volume("pvc-new").claim("web", "again").host_path("/opt/b/new").node("n2").json());
       }},
      {"claim web/data belongs to volume pvc-1",
       [](SweepBed& bed) {
         bed.claims.push_back(claim("data").ns("web").volume("pvc-1").phase("Lost").json());
       }},
      {"pod web/user on node n1 may be using it",
       [](SweepBed& bed) { bed.pods.push_back(using_pod(host_path(kOnDisk))); }},
      {"pod web/user on node n1 may be using it",
       [](SweepBed& bed) {
         bed.pods.push_back(using_pod(host_path(std::string(kOnDisk) + "//in/")));
       }},
      {"pod web/user on node n1 may be using it",
       [](SweepBed& bed) { bed.pods.push_back(using_pod(of_claim("data"), "Pending")); }},
      {"pod web/user on node n1 may be using it",  // it began before the claim that is there now
       [](SweepBed& bed) {
         bed.claims.push_back(claim("data").ns("web").volume("pvc-new").json());
         bed.volumes.push_back(
             volume("pvc-new").claim("web", "data").host_path("/opt/b/new").node("n1").json());
         json old = using_pod(of_claim("data"));
         old["status"]["startTime"] = "2026-05-28T20:26:39Z";
         bed.pods.push_back(old);
       }},
      {"pod web/user on node n1 may be using it",  // of a claim that is not there any more
       [](SweepBed& bed) { bed.pods.push_back(using_pod(of_claim("other"))); }},
      {"pod web/user on node n1 may be using it",  // of a volume that is not there any more
       [](SweepBed& bed) {
         bed.claims.push_back(claim("other").ns("web").volume("pvc-lost").json());
         json lost = using_pod(of_claim("other"));
         lost["status"]["startTime"] = "2026-05-28T20:26:41Z";
         bed.pods.push_back(lost);
       }},
      {"pod web/user on node n1 may be using it",  // a claim that was made for the pod alone
       [](SweepBed& bed) {
         bed.pods.push_back(using_pod({{"ephemeral", json::object()}}));
       }},
      {"is not registered", [](SweepBed& bed) { bed.nodes = {node("n2").json()}; }},
      {"lies below no base path",
       [](SweepBed& bed) {
         bed.config = R"({"nodePathMap": [{"node": "n1", "paths": ["/x/y"]}]})";
       }},
      {"all nodes share it",
       [](SweepBed& bed) { bed.config = R"({"sharedFileSystemPath": "/opt/a"})"; }},
  };
  return all;
}

}  // namespace

TEST_CASE("sweep refuses what may still be needed, and makes nothing") {
  for (const Doubt& doubt : doubts()) {
    CAPTURE(doubt.why);
    SweepBed bed;
    doubt.arrange(bed);
    const auto outcome = bed.sweep();
    CAPTURE(outcome.out);
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find(doubt.why) != std::string::npos);
    CHECK(bed.writes().empty());
  }
}

TEST_CASE("what comes up while the volume is made takes that back, and the directory stays") {
  for (const Doubt& doubt : doubts()) {
    CAPTURE(doubt.why);
    SweepBed bed;
    bed.after_create = [&](const json& made) {
      bed.volumes.push_back(made);
      doubt.arrange(bed);
    };
    const auto outcome = bed.sweep();
    CAPTURE(outcome.out);
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find(doubt.why) != std::string::npos);
    CHECK(bed.methods() == "POST DELETE");
    CHECK(json::parse(bed.writes().at(1).body)["preconditions"]["uid"] == "uid-made");
  }
}

TEST_CASE("sweep refuses what records do not tell clearly") {
  struct Case {
    const char* why;
    std::function<void(json&)> change;
  };
  for (const Case& one : std::vector<Case>{
           {"adopt it first, or remove it on the node", [](json& o) { o["why"] = "NoRecord"; }},
           {"the provisioner's agent ends itself", [](json& o) { o["why"] = "Unfinished"; }},
           {"not known what it is", [](json& o) { o["why"] = "SomethingNew"; }},
           {"does not tell which volume", [](json& o) { o["volume"] = ""; }},
           {"does not tell which volume", [](json& o) { o["volume"] = "../x"; }}}) {
    CAPTURE(one.why);
    SweepBed bed;
    one.change(bed.orphans[0]);
    const auto outcome = bed.sweep();
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find(one.why) != std::string::npos);
    CHECK(bed.writes().empty());
  }
  for (const char* other : {"/opt/a/pvc-1_web_data/in", "/opt/a/pvc-1_web_data/in/it"}) {
    SweepBed bed;
    bed.orphans.push_back(with_path(DirectoryBed::orphan("NoRecord"), other, ""));
    const auto outcome = bed.sweep();
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find(std::string("it overlaps ") + other) != std::string::npos);
  }
}

TEST_CASE("sweep knows a path that is not listed on that node not to be its business") {
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{
           {"--path", "/opt/a/other"}, {"--path", "/opt/a"}, {"--node", "n2"}}) {
    SweepBed bed;
    const auto outcome = bed.sweep({flag, value});
    CHECK(outcome.code == 1);
    CHECK(outcome.err.find("not among the directories that nobody needs") != std::string::npos);
    CHECK(bed.writes().empty());
  }
  SweepBed silent;
  silent.orphans_status = 403;
  CHECK(silent.sweep().code == 1);
  CHECK(silent.writes().empty());
}

TEST_CASE("what is nobody's business does not keep sweep from its work") {
  SweepBed bed;
  bed.claims = {claim("data").ns("web").volume("pvc-new").json()};
  bed.volumes = {volume("pvc-new").claim("web", "data").host_path("/opt/b/new").node("n1").json(),
                 volume("twin").claim("web", "twin").host_path(kOnDisk).node("n2").json()};
  json todays = using_pod(of_claim("data"));
  todays["status"]["startTime"] = "2026-05-28T20:26:41Z";
  json waits = using_pod(of_claim("waits"), "Pending");
  waits["status"]["startTime"] = "2026-05-28T20:26:41Z";
  bed.claims.push_back(claim("waits").ns("web").json());
  bed.pods = {todays,
              waits,
              using_pod(host_path("/opt/a")),
              using_pod(host_path("/")),
              using_pod(host_path("/opt/a/pvc-1_web_data2")),
              using_pod(host_path(kOnDisk), "Succeeded")};
  const auto outcome = bed.sweep();
  CAPTURE(outcome.out);
  CHECK(outcome.code == 0);
  CHECK(bed.methods() == "POST PATCH");
}

TEST_CASE("sweep does nothing without all that it needs to know, be it later") {
  for (const char* part : {"/nodes?", "/persistentvolumes?", "/persistentvolumeclaims?",
                           "labelSelector", "spec.nodeName", "/configmaps/"}) {
    CAPTURE(part);
    SweepBed blind;
    blind.transport->on("GET", part).always([](const auto&) {
      return DirectoryBed::failure(403, "Forbidden");
    });
    CHECK(blind.sweep().code == 1);
    CHECK(blind.writes().empty());
  }
  SweepBed later;
  later.after_create = [&](const json&) {
    later.volumes.push_back({{"metadata", {{"name", "odd"}}}, {"spec", 7}});
  };
  const auto outcome = later.sweep();
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("volume odd cannot be read") != std::string::npos);
  CHECK(later.methods() == "POST DELETE");
}

TEST_CASE("a policy that cannot be changed gives the place back, unless it may have been") {
  SweepBed bed;
  std::string methods = "POST PATCH DELETE";
  SUBCASE("refused") {
    bed.transport->on("PATCH", "/persistentvolumes/").always([](const auto&) {
      return DirectoryBed::failure(403, "Forbidden");
    });
  }
  SUBCASE("the answer is lost") {
    bed.transport->on("PATCH", "/persistentvolumes/").fail(lpp::ErrorCode::kUnavailable);
    methods = "POST PATCH";
  }
  const auto outcome = bed.sweep();
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("failed") != std::string::npos);
  CHECK(bed.methods() == methods);
}

TEST_CASE(
    "sweep waits for the end, at most as long as it was told, and says why it takes so long") {
  SweepBed bed;
  SkippingClock clock;
  bed.other_clock = &clock;
  json there = volume("pvc-1").uid("uid-made").reclaim_policy("Delete").json();
  SUBCASE("until it is gone") {
    bed.transport->on("GET", "/persistentvolumes/pvc-1")
        .reply(200, there.dump())
        .reply(200, there.dump());
    const auto outcome = bed.sweep();
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find("removed") != std::string::npos);
  }
  SUBCASE("not for ever") {
    bed.transport->on("GET", "/persistentvolumes/pvc-1").always([&](const auto&) {
      return DirectoryBed::answer(200, there);
    });
    const json event{{"reason", "VolumeFailedDelete"},
                     {"message", "no agent is there"},
                     {"involvedObject", {{"kind", "PersistentVolume"}, {"uid", "uid-made"}}}};
    bed.serve("/events?", {event});
    const auto began = clock.now();
    const auto outcome = bed.sweep({"--timeout", "1m"});
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find("being removed") != std::string::npos);
    CHECK(outcome.out.find("no agent is there") != std::string::npos);
    CHECK(clock.now() - began >= std::chrono::minutes(1));
    CHECK(clock.now() - began < std::chrono::minutes(2));
  }
  SUBCASE("called off by somebody") {
    there["spec"]["persistentVolumeReclaimPolicy"] = "Retain";
    bed.transport->on("GET", "/persistentvolumes/pvc-1").always([&](const auto&) {
      return DirectoryBed::answer(200, there);
    });
    const auto outcome = bed.sweep();
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find("the directory stays") != std::string::npos);
  }
}

TEST_CASE("sweep says which flags it needs") {
  for (const auto& [flags, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--path", "/opt/a/x"}, "--node NAME"},
           {{"--node", "n1"}, "--path DIR, or --all"},
           {{"--node", "n1", "--path", "/opt/a/x", "--all"}, "--path DIR, or --all"},
           {{"--node", "n1", "--all"}, "--dry-run, or --yes"}}) {
    SweepBed bed;
    std::vector<std::string> all{"sweep"};
    all.insert(all.end(), flags.begin(), flags.end());
    const auto outcome = bed.run_command(all);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find(why) != std::string::npos);
    CHECK(bed.transport->requests().empty());
  }
}
