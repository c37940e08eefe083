// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "node_bed.h"

// How many entries a directory has is its owner's to say: none is ever in memory as a whole.

namespace lpp::testing {
namespace many_entries {
namespace {

using namespace lpp::node;

constexpr int kMany = 5000;

/// How often names were read with nothing done about them in between.
class ReadingKernel final : public Kernel {
 public:
  int most_in_a_row() const { return most_; }

 protected:
  int before(const char* call) override {
    const std::string_view name(call);
    if (name == "getdents64") most_ = std::max(most_, ++in_a_row_);
    if (name == "renameat2" || name == "unlinkat" || name == "rmdir") in_a_row_ = 0;
    if (name == "openat2") in_a_row_ = 0;
    return 0;
  }

 private:
  int in_a_row_ = 0;
  int most_ = 0;
};

constexpr int kAtMost = 2;  // of a short folder: its names, and that there are no more

/// Of a removal that has moved so much out of great depth.
void interrupt_removal(const BaseFolder& base) {
  Kernel kernel;
  // Without a limit, so that these are as good as pieces of it.
  REQUIRE(base.volumes(kernel).make({.id = "a", .path = "web/a"}).ok());
  base.write("web/a/data");
  for (int i = 0; i < kMany; ++i) {
    std::filesystem::create_directories(
        base.at(BaseFolder::record("gone.a/deep." + std::to_string(i))));
  }
  std::filesystem::rename(base.at("web/a"), base.at(BaseFolder::record("gone.a/volume")));
}

TEST_CASE("whether something is left of a removal is known by its first names") {
  const BaseFolder base;
  interrupt_removal(base);
  ReadingKernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto inventory = volumes.inventory(*volumes.usage(), 10);
  REQUIRE(inventory.ok());
  CHECK(inventory->leftovers.at(0).has_data);
  CHECK_FALSE(*volumes.sweep("a", {}));
  CHECK(*volumes.remove({.id = "a", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(kernel.most_in_a_row() <= kAtMost);
  REQUIRE(volumes.remove({.id = "a"}).ok());
  CHECK(base.content().empty());
}

TEST_CASE("what a removal has moved out of great depth is put back part by part") {
  const BaseFolder base;
  interrupt_removal(base);
  ReadingKernel kernel;
  REQUIRE(*base.volumes(kernel).put_back("a") == PutBack::kInPlace);
  CHECK(kernel.most_in_a_row() <= kAtMost);
  CHECK(base.has("web/a/data"));
  for (int i = 1; i <= kMany; ++i) REQUIRE(base.has("web/a/put-back." + std::to_string(i)));
  CHECK_FALSE(base.has(BaseFolder::record("gone.a")));
}

TEST_CASE("a base folder with much in it is not read as a whole for its first volume") {
  const BaseFolder base;
  make_files(base.path(), kMany);
  ReadingKernel kernel;
  REQUIRE(base.volumes(kernel).make(make_request("a", "web/a")).ok());
  CHECK(kernel.most_in_a_row() <= kAtMost);
  CHECK((std::filesystem::status(base.path()).permissions() & std::filesystem::perms(0777)) ==
        std::filesystem::perms(0755));
}

TEST_CASE("a directory with much in it is refused a limit by its first names" * NeedsProjects()) {
  const BaseFolder base;
  base.make_directory("a");
  make_files(base.at("a"), kMany);
  ReadingKernel kernel;
  const auto made = base.volumes(kernel).make(make_request("a", "a"));
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().is(ErrorCode::kInvalid));
  CHECK(kernel.most_in_a_row() <= kAtMost);
}

}  // namespace
}  // namespace many_entries
}  // namespace lpp::testing
