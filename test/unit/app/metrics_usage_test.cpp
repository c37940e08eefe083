// SPDX-License-Identifier: Apache-2.0
// What metrics tell of each volume that an agent measures.

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "app/measured_volumes.h"
#include "app/metrics.h"
#include "unit/app/metric_series.h"
#include "unit/app/subjects_fixture.h"

using namespace lpp;
using namespace lpp::app;
using namespace lpp::testing;

namespace {

constexpr const char* kPrefix = "local_path_provisioner_volume_stats_";

struct MeasuredFixture : SubjectsFixture {
  MeasuredFixture() {
    agents = [this] {
      ++looks;
      return AgentsSubject{.usage = told};
    };
  }
  void put(const VolumeBuilder& builder) {
    const auto made = builder.shared();
    made_volumes.put(made->meta.key(), made);
  }
  static VolumeBuilder bound(const std::string& name, const std::string& claim_name) {
    VolumeBuilder builder = volume(name);
    builder.local("/data/" + name).node("n1").claim("app", claim_name);
    return builder;
  }
  /// Values by name, and claim or "".
  std::map<std::string, double> values() {
    const Subjects all = subjects();
    std::map<std::string, double> values;
    for (const auto& [series, value] : series_of(usage_metrics(all))) {
      REQUIRE(series.starts_with(kPrefix));
      values[series.substr(std::string(kPrefix).size())] = value;
    }
    return values;
  }

  std::vector<operation::UsageBoard::Entry> told;
  int looks = 0;
};

using Values = std::map<std::string, double>;

}  // namespace

TEST_CASE("a measured volume has the kubelet's metrics, with its claim, node and class") {
  MeasuredFixture fixture;
  fixture.put(MeasuredFixture::bound("pvc-1", "data"));
  fixture.put(MeasuredFixture::bound("pvc-2", "logs"));
  fixture.told = {
      {"n1", "/data/pvc-1", {.bytes = 95, .limit_bytes = 100, .inodes = 3, .limit_inodes = 9}}};
  CHECK(fixture.values() == Values{{"used_bytes app data n1 local-path", 95},
                                   {"capacity_bytes app data n1 local-path", 100},
                                   {"available_bytes app data n1 local-path", 5},
                                   {"inodes_used app data n1 local-path", 3},
                                   {"inodes app data n1 local-path", 9}});
}

TEST_CASE("what is not limited, or not counted, has no metric") {
  MeasuredFixture fixture;
  fixture.put(MeasuredFixture::bound("pvc-1", "data"));
  fixture.told = {{"n1", "/data/pvc-1", {.bytes = 95}}};
  CHECK(fixture.values() == Values{{"used_bytes app data n1 local-path", 95}});
  // More than the limit: it was lowered, or root may.
  fixture.told = {{"n1", "/data/pvc-1", {.bytes = 95, .limit_bytes = 90}}};
  CHECK(fixture.values()["available_bytes app data n1 local-path"] == 0);
}

TEST_CASE("only bound volumes of ours, at their own nodes, are told") {
  MeasuredFixture fixture;
  const auto told = [&](const VolumeBuilder& builder) {
    MeasuredFixture one;
    one.put(builder);
    one.told = {{"n1", "/data/pvc-1", {.bytes = 1}}};
    return !one.values().empty();
  };
  CHECK(told(MeasuredFixture::bound("pvc-1", "data")));
  CHECK_FALSE(told(MeasuredFixture::bound("pvc-1", "data").released()));
  CHECK_FALSE(told(MeasuredFixture::bound("pvc-1", "data").node("n2")));
  CHECK_FALSE(told(MeasuredFixture::bound("pvc-1", "data").local("/data/other")));
  CHECK_FALSE(told(MeasuredFixture::bound("pvc-1", "data")
                       .annotation("pv.kubernetes.io/provisioned-by", "another.io/one")));
  fixture.agents = nullptr;
  fixture.put(MeasuredFixture::bound("pvc-1", "data"));
  CHECK(fixture.values().empty());
}

TEST_CASE("the page of volumes that are measured has their names, not their claims'") {
  MeasuredFixture fixture;
  fixture.put(MeasuredFixture::bound("pvc-1", "data"));
  fixture.put(MeasuredFixture::bound("pvc-2", "logs"));
  fixture.told = {
      {"n1", "/data/pvc-1", {.bytes = 95}},
      {"n1", "/data/pvc-2", {.bytes = 1, .limit_bytes = 100, .inodes = 3, .limit_inodes = 9}}};
  const Subjects all = fixture.subjects();
  const auto page = nlohmann::json::parse(usage_page(all));
  CHECK(fixture.looks == 1);
  REQUIRE(page["volumes"].size() == 2);
  const std::size_t second = page["volumes"][0]["volume"] == "pvc-1" ? 1 : 0;
  CHECK(page["volumes"][1 - second] ==
        nlohmann::json{{"volume", "pvc-1"}, {"node", "n1"}, {"usedBytes", 95}});
  CHECK(page["volumes"][second] == nlohmann::json{{"volume", "pvc-2"},
                                                  {"node", "n1"},
                                                  {"usedBytes", 1},
                                                  {"capacityBytes", 100},
                                                  {"inodesUsed", 3},
                                                  {"inodes", 9}});
}

TEST_CASE("of very many volumes the fullest are told") {
  MeasuredFixture fixture;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "pvc-" + std::to_string(i);
    fixture.put(MeasuredFixture::bound(name, "claim-" + std::to_string(i)));
    fixture.told.push_back({"n1", "/data/" + name, {.bytes = i * 7 % 20, .limit_bytes = 20}});
  }
  const Subjects all = fixture.subjects();
  CHECK(measured_volumes(all, all.agents(), 20).size() == 20);
  const auto fullest = measured_volumes(all, all.agents(), 3);
  REQUIRE(fullest.size() == 3);
  for (const auto& one : fullest) CHECK(one.usage.bytes >= 17);
}

TEST_CASE("what a helper pod has told counts for an hour, and less than what an agent measures") {
  MeasuredFixture fixture;
  fixture.put(MeasuredFixture::bound("pvc-1", "data"));
  fixture.put(MeasuredFixture::bound("pvc-2", "logs"));
  fixture.uses.note("n1", "/data/pvc-1", {.bytes = 7, .limit_bytes = 100});
  fixture.uses.note("n1", "/data/pvc-2", {.bytes = 8, .limit_bytes = 100});
  fixture.told = {{"n1", "/data/pvc-2", {.bytes = 9, .limit_bytes = 100}}};
  auto values = fixture.values();
  CHECK(values["used_bytes app data n1 local-path"] == 7);
  CHECK(values["used_bytes app logs n1 local-path"] == 9);
  CHECK(values.contains("told_timestamp_seconds app data n1 local-path"));
  CHECK_FALSE(values.contains("told_timestamp_seconds app logs n1 local-path"));
  const auto page = nlohmann::json::parse(usage_page(fixture.subjects()))["volumes"];
  REQUIRE(page.size() == 2);
  for (const auto& one : page) CHECK(one.contains("toldAt") == (one["volume"] == "pvc-1"));
  fixture.agents = nullptr;  // a cluster without them
  values = fixture.values();
  CHECK(values["used_bytes app data n1 local-path"] == 7);
  fixture.clock.advance(std::chrono::hours(1));
  CHECK(fixture.values().empty());
}
