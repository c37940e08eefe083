// SPDX-License-Identifier: Apache-2.0
#include "app/orphans.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "app/metrics.h"
#include "unit/app/metric_series.h"
#include "unit/app/subjects_fixture.h"

namespace lpp::testing {
namespace {

using agent::Listed;
using app::Orphan;
using nlohmann::json;
using ListedState = Listed::State;

/// A cluster of two nodes.
struct OrphanFixture : SubjectsFixture {
  OrphanFixture() {
    for (const char* const name : {"n1", "n2"}) put(known_nodes, testing::node(name));
  }
  template <typename Store, typename Builder>
  static void put(Store& store, const Builder& builder) {
    const auto made = builder.shared();
    store.put(made->meta.key(), made);
  }
  /// Whether it is nobody's.
  bool lost(const Listed& listed, const std::string& on = "n1") {
    const app::OrphanScene scene{made_volumes, known_claims, known_nodes, &ledger};
    return !app::nobodys(scene, {{on, listed}}).empty();
  }
  void put_volume(const std::string& name, const std::string& path, bool by_hand = false,
                  const std::string& on = "n1") {
    VolumeBuilder builder = testing::volume(name);
    builder.local(path).node(on);
    if (by_hand) builder.no_annotation("pv.kubernetes.io/provisioned-by");
    put(made_volumes, builder);
  }

  k8s::StoreWriter<k8s::PersistentVolumeClaim> known_claims;
};

const Listed kRecorded{
    .path = "/data/web/a", .id = "web_a", .claim = "web/a", .uid = "u-1", .size = 7};

}  // namespace

TEST_CASE("a directory with a record is somebody's by its volume or its claim") {
  OrphanFixture cluster;
  CHECK(cluster.lost(kRecorded));
  SUBCASE("a volume is there, whatever it is called") {
    cluster.put_volume("other", "/data/web/a");
    CHECK_FALSE(cluster.lost(kRecorded));
    CHECK(cluster.lost(kRecorded, "n2"));
    CHECK(cluster.lost({.path = "/data/web/ab", .id = "x"}));
  }
  SUBCASE("a volume is inside or around it") {
    cluster.put_volume("inside", "/data/web/a/b", true);
    CHECK_FALSE(cluster.lost(kRecorded));
    cluster.put_volume("around", "/data/db");
    CHECK_FALSE(cluster.lost({.path = "/data/db/1", .id = "x"}));
  }
  SUBCASE("a volume by hand that shows the whole base path is not everybody's") {
    cluster.put_volume("backup", "/data", true);
    CHECK(cluster.lost(kRecorded));
  }
  SUBCASE("a volume has its name, wherever on the node that is") {
    cluster.put_volume("pvc-u-1", "/elsewhere/1");
    CHECK_FALSE(cluster.lost(kRecorded));
  }
  SUBCASE("its claim is there") {
    OrphanFixture::put(cluster.known_claims, claim("a").ns("web").uid("u-1"));
    CHECK_FALSE(cluster.lost(kRecorded));
    Listed nameless = kRecorded;
    nameless.claim.clear();
    CHECK_FALSE(cluster.lost(nameless));
  }
  SUBCASE("a claim of its name is another one") {
    OrphanFixture::put(cluster.known_claims, claim("a").ns("web").uid("u-2"));
    CHECK(cluster.lost(kRecorded));
  }
  SUBCASE("a volume is being made there") {
    operation::Operation make;
    make.kind = operation::Kind::kMake;
    make.volume_name = "pvc-9";
    make.node = "n1";
    make.base_path = "/data";
    make.path = "/data/web/a";
    CHECK_FALSE(cluster.ledger.take(make).has_value());
    CHECK_FALSE(cluster.lost(kRecorded));
    CHECK_FALSE(cluster.lost({.path = "/data/web"}));
    const app::OrphanScene lasting{cluster.made_volumes, cluster.known_claims, cluster.known_nodes};
    CHECK(app::nobodys(lasting, {{"n1", kRecorded}}).size() == 1);
    cluster.ledger.release(make);
    CHECK(cluster.lost(kRecorded));
  }
}

TEST_CASE("what is left of a volume that lives on another node is nobody's") {
  OrphanFixture cluster;
  const auto put_claim = [&](const std::string& volume) {
    OrphanFixture::put(cluster.known_claims, claim("a").ns("web").uid("u-1").volume(volume));
  };
  Listed nameless = kRecorded;
  nameless.claim.clear();
  SUBCASE("its claim's volume is there too, and bound") {
    cluster.put_volume("pvc-u-1", "/data/web/a", false, "n2");
    CHECK(cluster.lost(kRecorded));
    CHECK_FALSE(cluster.lost(kRecorded, "n2"));
    put_claim("pvc-u-1");
    for (const Listed& listed : {kRecorded, nameless}) {
      CHECK(cluster.lost(listed));
      CHECK_FALSE(cluster.lost(listed, "n2"));
    }
  }
  SUBCASE("its claim is bound to whichever volume elsewhere") {
    cluster.put_volume("by-hand", "/data/x", true, "n2");
    put_claim("by-hand");
    CHECK(cluster.lost(kRecorded));
    CHECK(cluster.lost(nameless));
  }
  SUBCASE("nobody knows where the claim's volume is") {
    put_claim("unknown");
    CHECK_FALSE(cluster.lost(kRecorded));
    CHECK_FALSE(cluster.lost(nameless));
  }
  SUBCASE("every node has the volume") {
    OrphanFixture::put(cluster.made_volumes, testing::volume("pvc-u-1").host_path("/shared/a"));
    put_claim("pvc-u-1");
    CHECK_FALSE(cluster.lost(kRecorded));
  }
}

TEST_CASE("what a removal has left without a record is the volume's whose place it names") {
  OrphanFixture cluster;
  const Listed left{.path = "/data/.local-path-provisioner/gone.pvc-1_web_a",
                    .id = "pvc-1_web_a",
                    .state = ListedState::kRemoving};
  CHECK(cluster.lost(left));
  cluster.put_volume("pvc-1", "/data/pvc-1_web_a");
  CHECK_FALSE(cluster.lost(left));
  CHECK(cluster.lost(left, "n2"));
  // One whose name tells its volume's.
  const std::string name = "pvc-01234567-89ab-cdef-0123-456789abcdef";
  const Listed named{.path = "/data/.local-path-provisioner/gone." + name + "_web_a",
                     .id = name + "_web_a",
                     .state = ListedState::kRemoving};
  CHECK(cluster.lost(named));
  cluster.put_volume(name, "/elsewhere/2");
  CHECK_FALSE(cluster.lost(named));
}

TEST_CASE("why a directory is nobody's is one word and a sentence") {
  const auto why = [](const Listed& listed) {
    CHECK_FALSE(app::message_of(listed).empty());
    return std::string(app::why_of(listed));
  };
  CHECK(why(kRecorded) == "NoVolume");
  CHECK(why({.path = "/data/x"}) == "NoRecord");
  CHECK(why({.path = "/data/x", .id = "x", .state = ListedState::kMaking}) == "Unfinished");
  CHECK(why({.path = "/data/x", .id = "x", .state = ListedState::kRemoving}) == "Unfinished");
  CHECK(why({.path = "/data/x", .id = "x", .cluster = "c"}) == "OtherCluster");
  CHECK(why({.path = "/data/x", .state = ListedState::kRemoving, .cluster = "c"}) == "Unfinished");
}

TEST_CASE("the page and the metric tell of each orphan") {
  OrphanFixture fixture;
  app::Subjects none = fixture.subjects();
  CHECK(app::orphans_page(none) == R"({"orphans":[]})");
  Listed used = kRecorded;
  used.used = 3;
  used.since = 1'700'000'000;
  used.limit = 7;
  app::Subjects subjects = fixture.subjects();
  subjects.orphans = [&] {
    return app::OrphansSubject{.orphans = {{"n1", used}, {"n1", {.path = "/data/x"}}},
                               .left_out = {{"n2", 4}}};
  };
  const json page = json::parse(app::orphans_page(subjects));
  REQUIRE(page["orphans"].size() == 2);
  CHECK(page["orphans"][0] == json{{"node", "n1"},
                                   {"path", "/data/web/a"},
                                   {"volume", "pvc-u-1"},
                                   {"claim", "web/a"},
                                   {"uid", "u-1"},
                                   {"size", 7},
                                   {"used", 3},
                                   {"limit", 7},
                                   {"since", 1'700'000'000},
                                   {"why", "NoVolume"},
                                   {"message", app::message_of(used)}});
  CHECK(page["orphans"][1]["volume"] == "");
  CHECK_FALSE(page["orphans"][1].contains("used"));
  CHECK_FALSE(page["orphans"][1].contains("limit"));
  CHECK(page["leftOut"] == json{{"n2", 4}});

  const std::string name = "local_path_provisioner_orphaned_directories";
  const auto series = series_of(app::agent_metrics(subjects));
  CHECK(series.at(name + " n1 NoRecord") == 1);
  CHECK(series.at(name + " n1 NoVolume") == 1);
  CHECK(std::count_if(series.begin(), series.end(),
                      [&](const auto& one) { return one.first.starts_with(name); }) == 2);
}

}  // namespace lpp::testing
