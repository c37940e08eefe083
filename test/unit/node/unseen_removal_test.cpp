// SPDX-License-Identifier: Apache-2.0
// What an interrupted removal has left beside the records is not taken for nothing when it cannot
// be looked at.

#include <doctest/doctest.h>

#include <array>
#include <cerrno>

#include "everywhere.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace unseen_removal {
namespace {

const std::string kLeft = BaseFolder::record("gone.data/volume/file");
constexpr std::array kErrors = {EIO, ENOMEM, EMFILE};
const std::string kRecord = BaseFolder::record("volume.data.json");

void interrupt_removal(const BaseFolder& base) {
  Kernel kernel;
  REQUIRE(base.volumes(kernel).make({.id = "data", .path = "web/data", .uid = "u1"}).ok());
  base.write(kLeft);
  std::filesystem::remove_all(base.at("web"));
}

TEST_CASE("an interrupted removal that is repeated leaves no data without its record") {
  for (const Removal removal : {Removal::kReleased, Removal::kTakeBack, Removal::kIfEmpty}) {
    CAPTURE(static_cast<int>(removal));
    bool is_done = false;
    const auto remove = [&](const Volumes& volumes) {
      const auto removed =
          volumes.remove({.id = "data", .path = "web/data", .uid = "u1", .removal = removal});
      is_done = removed.ok() && *removed != Removed::kKept;
      return removed.ok();
    };
    const auto check = [&](const BaseFolder& base, const Volumes& volumes) {
      const bool is_left = base.has(BaseFolder::record("gone.data")) || base.has("web/data");
      CHECK_FALSE((is_done && is_left));
      if (is_left) {
        CHECK(base.has(kRecord));
        CHECK(volumes.inventory(*volumes.usage(), 10)->leftovers.size() ==
              (base.has("web/data") ? 0 : 1));
      }
      if (removal != Removal::kReleased) CHECK(base.has(kLeft));
      is_done = false;
    };
    for (const int error : kErrors) {
      CHECK(fail_everywhere(interrupt_removal, remove, error, check) > 10);
    }
  }
}

TEST_CASE("nothing is made where a removal may not have ended") {
  for (const int error : kErrors) {
    bool is_made = false;
    const auto make = [&](const Volumes& volumes) {
      is_made = volumes.make({.id = "data", .path = "web/data", .uid = "u1"}).ok();
      return is_made;
    };
    const auto check = [&](const BaseFolder& base, const Volumes& /*volumes*/) {
      CHECK_FALSE(is_made);
      CHECK(base.has(kLeft));
      CHECK(base.has(kRecord));
      CHECK_FALSE(base.has("web/data"));
    };
    CHECK(fail_everywhere(interrupt_removal, make, error, check) > 10);
  }
}

TEST_CASE("nothing is adopted where a removal may not have ended") {
  const auto prepare = [](const BaseFolder& base) {
    interrupt_removal(base);
    base.write("web/data/of somebody else");
  };
  std::string why;
  const auto adopt = [&](const Volumes& volumes) {
    const auto adopted =
        volumes.adopt({.id = "data", .path = "web/data", .limits = {.bytes = kMiB}});
    why = adopted.ok() ? "adopted" : adopted.error().message;
    return adopted.ok();
  };
  const auto check = [&](const BaseFolder& base, const Volumes& /*volumes*/) {
    CAPTURE(why);
    // It has not come as far as to its limits.
    CHECK(why != "adopted");
    CHECK(why.find("quota") == std::string::npos);
    CHECK(base.has(kLeft));
  };
  CHECK(fail_everywhere(prepare, adopt, EIO, check) > 10);
}

TEST_CASE("a leftover whose time cannot be read is listed all the same") {
  const BaseFolder base;
  interrupt_removal(base);
  base.write("by hand/file");
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto usage = volumes.usage();
  int listed = 0;
  for (int at = 0;; ++at) {
    FaultyKernel failing(at, EIO);
    const auto opened = Volumes::open(failing, base.path(), {});
    if (!opened.ok()) continue;
    const auto inventory = opened->inventory(*usage, 10);
    CAPTURE(at);
    if (inventory.ok()) {
      ++listed;
      REQUIRE(inventory->leftovers.size() == 1);
      CHECK(inventory->leftovers[0].has_data);
      CHECK(inventory->bare.size() == 1);
    }
    if (failing.places() <= at) break;
  }
  CHECK(listed > 3);
}

}  // namespace
}  // namespace unseen_removal
