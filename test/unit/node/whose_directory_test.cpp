// SPDX-License-Identifier: Apache-2.0
// Directories that are somebody else's by now, or were used, go with nobody's volume.

#include <doctest/doctest.h>

#include "node/volumes.h"
#include "node_bed.h"

using namespace lpp;           // NOLINT(google-build-using-namespace): a test file
using namespace lpp::node;     // NOLINT(google-build-using-namespace): a test file
using namespace lpp::testing;  // NOLINT(google-build-using-namespace): a test file

TEST_CASE("a take-back keeps a directory that stands where the made one was") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "data")).ok());
  std::filesystem::rename(base.at("data"), base.at("moved"));
  base.write("data/other");
  CHECK(*volumes.remove({.id = "pvc-1", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(base.has("data/other"));
  CHECK(base.has("moved"));

  REQUIRE(volumes.make(make_request("pvc-2", "two")).ok());
  base.write("two/used");
  CHECK(*volumes.remove({.id = "pvc-2", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(base.has("two/used"));
  std::filesystem::remove(base.at("two/used"));
  CHECK(*volumes.remove({.id = "pvc-2", .removal = Removal::kTakeBack}) == Removed::kRemoved);
  CHECK_FALSE(base.has("two"));
}

TEST_CASE("a directory that is another claim's by its record goes with nobody else's volume") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto make = [&](const std::string& uid) {
    return volumes.make({.id = "data", .path = "web/data", .claim = "web/data", .uid = uid});
  };
  const auto remove = [&](const std::string& uid) {
    return volumes.remove({.id = "data", .path = "web/data", .uid = uid});
  };
  REQUIRE(make("u1").ok());
  CHECK(*remove("u1") == Removed::kRemoved);
  // The claim was made again. A backup from before is restored, with the volume of the first one.
  REQUIRE(make("u2").ok());
  base.write("web/data/file");
  const auto refused = remove("u1");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("claim web/data, UID u2") != std::string::npos);
  CHECK(base.has("web/data/file"));
  CHECK(*remove("u2") == Removed::kRemoved);
  CHECK(base.content().empty());
  // Who does not say for which claim has to be sure of it.
  REQUIRE(make("u2").ok());
  CHECK(*remove("") == Removed::kRemoved);
}

TEST_CASE("a take-back leaves what is another claim's by its record, empty or not") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "data", .path = "web/data", .uid = "u1"}).ok());
  const auto before = base.content();
  for (const Removal removal : {Removal::kTakeBack, Removal::kIfEmpty}) {
    CHECK(*volumes.remove({.id = "data", .path = "web/data", .uid = "u2", .removal = removal}) ==
          Removed::kKept);
    CHECK(base.content() == before);
  }
  CHECK(*volumes.remove({.id = "data", .uid = "u1", .removal = Removal::kIfEmpty}) ==
        Removed::kRemoved);
}

TEST_CASE("a removal by another path than that on record takes nothing away") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "one")).ok());
  base.write("one/file");
  base.write("two/file");
  const auto before = base.content();
  for (const Removal removal : {Removal::kReleased, Removal::kTakeBack, Removal::kIfEmpty}) {
    const auto refused = volumes.remove({.id = "pvc-1", .path = "two", .removal = removal});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().is(ErrorCode::kInvalid));
    CHECK(base.content() == before);
  }
}
