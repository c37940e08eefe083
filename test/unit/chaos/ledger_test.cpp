// SPDX-License-Identifier: Apache-2.0
#include "chaos/ledger.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "harness/temp_dir.h"

namespace lpp::testing {
namespace {

/// A directory with a file in it, and volumes that may be made of it.
class Disk {
 public:
  Disk() {
    std::filesystem::create_directory(directory());
    REQUIRE(ledger.write(directory(), "file", "text"));
  }

  std::string directory() const { return folder_.path("volume"); }
  LedgerVolume volume(const std::string& name, bool deletes) const {
    return {.pv = name,
            .directory = directory(),
            .machine = "m",
            .claim_uid = "claim-of-" + name,
            .deletes = deletes};
  }
  void make(const std::string& name, bool deletes) {
    ledger.may_exist(volume(name, deletes));
    ledger.made(volume(name, deletes));
  }
  bool lost_after_removal() {
    std::filesystem::remove_all(directory());
    return !ledger.lost().empty();
  }

  Ledger ledger;

 private:
  TempDir folder_;
};

TEST_CASE("a file may go when its volume is released with policy Delete, and not before") {
  Disk disk;
  disk.make("a", true);
  SUBCASE("released") {
    disk.ledger.claim_goes("claim-of-a");
    CHECK_FALSE(disk.lost_after_removal());
  }
  SUBCASE("bound") { CHECK(disk.lost_after_removal()); }
}

TEST_CASE("a file is where its disk is, and lost when it is gone there") {
  Disk disk;
  disk.make("a", false);
  const std::string away = disk.directory() + ".away";
  REQUIRE(disk.ledger.move_away(disk.directory(), away));
  CHECK(disk.ledger.lost().empty());
  SUBCASE("back again") {
    REQUIRE(disk.ledger.move_back(disk.directory()));
    CHECK(disk.ledger.lost().empty());
    CHECK(disk.lost_after_removal());
  }
  SUBCASE("removed from the disk that is away") {
    std::filesystem::remove(away + "/file");
    CHECK(disk.ledger.lost().find(away) != std::string::npos);
  }
}

TEST_CASE("a file of a retained volume is lost when it goes, with its object or without") {
  Disk disk;
  disk.make("a", false);
  disk.ledger.claim_goes("claim-of-a");
  SUBCASE("with its object") {}
  SUBCASE("without") { disk.ledger.object_deleted("a"); }
  SUBCASE("while a volume is made there again that never comes to be") {
    disk.ledger.object_deleted("a");
    disk.ledger.claim_goes("claim-of-b");
  }
  CHECK(disk.lost_after_removal());
}

TEST_CASE("a file that has another text is lost whatever its volume is") {
  Disk disk;
  disk.make("a", true);
  disk.ledger.claim_goes("claim-of-a");
  Ledger other;
  REQUIRE(other.write(disk.directory(), "file", "another text"));
  CHECK_FALSE(disk.ledger.lost().empty());
}

TEST_CASE("of two volumes with one directory only the last may remove it") {
  Disk disk;
  disk.make("a", true);
  disk.make("b", false);
  disk.ledger.claim_goes("claim-of-a");
  SUBCASE("the other is bound") { CHECK(disk.lost_after_removal()); }
  SUBCASE("the other is retained") {
    disk.ledger.claim_goes("claim-of-b");
    CHECK(disk.lost_after_removal());
  }
  SUBCASE("the other is released with policy Delete") {
    disk.ledger.will_delete("b");
    disk.ledger.claim_goes("claim-of-b");
    CHECK_FALSE(disk.lost_after_removal());
  }
}

TEST_CASE("a policy that changes while a removal may run excuses it, unless its machine was dead") {
  Disk disk;
  disk.make("a", true);
  SUBCASE("alive") {
    disk.ledger.claim_goes("claim-of-a");
    disk.ledger.keeps("a");
    CHECK_FALSE(disk.lost_after_removal());
  }
  SUBCASE("dead all along") {
    disk.ledger.machine_died("m");
    disk.ledger.claim_goes("claim-of-a");
    disk.ledger.keeps("a");
    CHECK(disk.ledger.saved_on("m").contains("a"));
    SUBCASE("and still") { CHECK(disk.lost_after_removal()); }
    SUBCASE("and back in order") {
      disk.ledger.machine_revived_in_order("m");
      CHECK(disk.lost_after_removal());
    }
    SUBCASE("and back before anybody could look") {
      disk.ledger.machine_revived("m");
      CHECK_FALSE(disk.lost_after_removal());
    }
  }
  SUBCASE("dead only later") {
    disk.ledger.claim_goes("claim-of-a");
    disk.ledger.machine_died("m");
    disk.ledger.keeps("a");
    CHECK_FALSE(disk.lost_after_removal());
  }
  SUBCASE("before it is released") {
    disk.ledger.keeps("a");
    disk.ledger.claim_goes("claim-of-a");
    CHECK(disk.lost_after_removal());
  }
}

TEST_CASE("what happened before a quiet point excuses nothing after it") {
  Disk disk;
  disk.make("a", true);
  disk.ledger.claim_goes("claim-of-a");
  disk.ledger.keeps("a");
  disk.ledger.settle({"a"});
  CHECK(disk.lost_after_removal());
}

TEST_CASE("a volume that is made again in its directory is not the one that was released there") {
  Disk disk;
  disk.make("a", true);
  disk.ledger.claim_goes("claim-of-a");
  disk.make("b", true);
  CHECK(disk.lost_after_removal());
}

}  // namespace
}  // namespace lpp::testing
