// SPDX-License-Identifier: Apache-2.0
#include "cli/node_command.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "cli/node_request.h"
#include "cli_bed.h"
#include "harness/must.h"
#include "unit/node/node_bed.h"

namespace lpp::cli::node_command {

using namespace lpp;
using namespace lpp::testing;

namespace {

nlohmann::json json_of(const CliBed::Outcome& outcome) {
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  return nlohmann::json::parse(outcome.out);
}

/// Asks for the stop after the n-th call.
struct StoppingKernel final : node::Kernel {
  StoppingKernel(int call, std::stop_source& source) : left(call), stop(source) {}
  void after(const char* /*call*/) override {
    if (--left == 0) stop.request_stop();
  }
  int left;
  std::stop_source& stop;
};

}  // namespace

TEST_CASE("node makes, lists, measures and removes a directory") {
  const BaseFolder base;
  CliBed bed;
  const auto made = json_of(bed.run({"node", "make", "--base", base.path(), "--path", "web/data",
                                     "--claim", "web/data", "--perm", "0750", "--json"}));
  CHECK(made["origin"] == "made");
  CHECK(made["id"].get<std::string>().starts_with("path-"));
  CHECK(std::filesystem::status(base.at("web/data")).permissions() == std::filesystem::perms(0750));
  const auto listed = json_of(bed.run({"node", "list", "--base", base.path(), "--json"}));
  REQUIRE(listed["volumes"].size() == 1);
  CHECK(listed["volumes"][0]["claim"] == "web/data");
  CHECK(listed["volumes"][0]["state"] == "present");
  CHECK(bed.run({"node", "list", "--base", base.path()}).out.find("web/data") != std::string::npos);
  const auto usage = json_of(bed.run({"node", "usage", "--base", base.path(), "--json"}));
  CHECK(usage["sizeBytes"].get<std::uint64_t>() > 0);
  CHECK(usage["volumes"].size() == 1);
  CHECK(bed.run({"node", "remove", "-p", base.path() + "/web/data", "--base", base.path()}).out ==
        "removed " + base.path() + "/web/data\n");
  CHECK_FALSE(base.has("web"));
}

TEST_CASE(
    "what takes long tells how far it is every five seconds, and what does not says nothing") {
  /// With each file that goes a while passes.
  struct SlowKernel final : node::Kernel {
    SlowKernel(FakeClock& moved, Duration by) : clock(moved), each(by) {}
    void after(const char* call) override {
      if (std::string_view(call) == "unlinkat") clock.advance(each);
    }
    FakeClock& clock;
    const Duration each;
  };
  constexpr int kFiles = 2000;
  const auto lines_with = [&](Duration each) {
    const BaseFolder base;
    CliBed bed;
    for (int i = 0; i < kFiles; ++i) base.write("old/" + std::to_string(i), "");
    bed.kernel = std::make_shared<SlowKernel>(bed.clock, each);
    const auto removed = bed.run({"node", "remove", "--base", base.path(), "--path", "old"});
    CHECK(removed.code == 0);
    CHECK_FALSE(base.has("old"));
    const std::string words = " files so far\n";
    int lines = 0;
    for (auto at = removed.err.find(words); at != std::string::npos;
         at = removed.err.find(words, at + 1)) {
      ++lines;
    }
    return lines;
  };
  CHECK(lines_with(std::chrono::microseconds(2400)) == 0);
  const int in_22_s = lines_with(std::chrono::milliseconds(11));
  CHECK(in_22_s >= 3);
  CHECK(in_22_s <= 4);
  // Where each file takes long nobody waits for thousands of them.
  CHECK(lines_with(std::chrono::milliseconds(110)) >= 7);
}

TEST_CASE("a removal that a signal stops anywhere leaves in its place what it has not removed") {
  int stopped = 0;
  int broken_off = 0;
  for (int call = 1;; ++call) {
    CAPTURE(call);
    const BaseFolder base;
    CliBed bed;
    REQUIRE(bed.run({"node", "make", "--base", base.path(), "--path", "web/data"}).code == 0);
    std::string deep = "web/data";
    for (int i = 0; i < 34; ++i) deep += "/d";
    for (const std::string& folder : {std::string("web/data"), std::string("web/data/a"), deep}) {
      base.write(folder + "/1");
      base.write(folder + "/2");
    }
    const auto kernel = std::make_shared<StoppingKernel>(call, bed.stop);
    bed.kernel = kernel;
    bed.signals.clear();
    const auto removed = bed.run({"node", "remove", "--base", base.path(), "--path", "web/data"});
    CHECK(bed.signals == std::vector<std::string>{"stop"});
    const auto left = base.content();
    const bool is_gone_left = std::any_of(left.begin(), left.end(), [](const std::string& name) {
      return name.find("/gone.") != std::string::npos;
    });
    if (removed.code == 0) {
      CHECK_FALSE(is_gone_left);
      CHECK_FALSE(base.has("web"));
      if (kernel->left > 0) break;
      continue;
    }
    ++stopped;
    CHECK(removed.code == 1);
    // Only without the directory itself there is nothing that the rest could be put into.
    const std::string where = is_gone_left ? base.at(BaseFolder::record("gone.")) : "its place";
    CHECK(removed.err.find("stopped: what is left is in " + where) != std::string::npos);
    CHECK(base.has("web/data") != is_gone_left);
    if (base.has("web/data") && (!base.has("web/data/1") || !base.has("web/data/2"))) ++broken_off;
    bed.kernel = std::make_shared<node::Kernel>();
    bed.stop = {};
    CHECK(bed.run({"node", "remove", "--base", base.path(), "--path", "web/data"}).code == 0);
    CHECK_FALSE(base.has("web"));
  }
  CHECK(stopped > 50);
  CHECK(broken_off > 5);
}

TEST_CASE("a recovery that a signal stops goes on when it is called again") {
  const BaseFolder base;
  CliBed bed;
  REQUIRE(bed.run({"node", "make", "--base", base.path(), "--path", "data"}).code == 0);
  base.write(BaseFolder::record("gone.pvc-1/volume/file"));
  bed.stop.request_stop();
  const auto stopped = bed.run({"node", "recover", "--base", base.path()});
  CHECK(stopped.code == 1);
  CHECK(stopped.err.find("stopped: the same command goes on") != std::string::npos);
  CHECK(base.has(BaseFolder::record("gone.pvc-1/volume/file")));
  bed.stop = {};
  CHECK(bed.run({"node", "recover", "--base", base.path()}).code == 0);
  CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
}

TEST_CASE("node ends by a signal as any program does where it may end anywhere") {
  const BaseFolder base;
  for (const char* const action : {"make", "resize", "usage", "list"}) {
    CAPTURE(action);
    CliBed bed;
    CHECK(bed.run({"node", action, "-p", base.at("data")}).code == 0);
    CHECK(bed.signals == std::vector<std::string>{"end"});
  }
}

TEST_CASE("node recover ends what was left, and says in JSON what it could not") {
  const BaseFolder base;
  CliBed bed;
  REQUIRE(bed.run({"node", "make", "--base", base.path(), "--path", "data"}).code == 0);
  base.write(BaseFolder::record("gone.pvc-1/volume/file"));
  const std::vector<std::string> recover{"node", "recover", "--base", base.path(), "--json"};
  CHECK(json_of(bed.run(recover)) == nlohmann::json{{"problems", nlohmann::json::array()}});
  CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
  base.write(BaseFolder::record("new.pvc-2/of-somebody"));
  const auto kept = bed.run(recover);
  CHECK(kept.code == 1);
  CHECK(kept.err.empty());
  const auto problems = nlohmann::json::parse(kept.out).at("problems");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].get<std::string>().starts_with("pvc-2: "));
  CHECK(base.has(BaseFolder::record("new.pvc-2/of-somebody")));
}

TEST_CASE("node does what the scripts of a helper pod do, with their options and variables") {
  const BaseFolder base;
  CliBed bed;
  bed.environment = {{"VOL_DIR", "/seen/elsewhere/pvc-1"},
                     {"VOL_SIZE_BYTES", "1024"},
                     {"VOL_MODE", "Filesystem"},
                     {"VOL_USER", ""},
                     {"VOL_GROUP", ""},
                     {"VOL_PERM", "2770"},
                     {"VOL_QUOTA", ""},
                     {"VOL_QUOTA_INODES", ""},
                     {"VOL_BASE_DIR", base.path()},
                     {"VOL_SUB_DIR", "web/data/pvc-1"}};
  const auto run = [&](const std::string& action) {
    return bed.run(
        {"node", "-p", "/seen/elsewhere/pvc-1", "-s", "1024", "-m", "Filesystem", "-a", action});
  };
  CHECK(run("create").out == "made " + base.path() + "/web/data/pvc-1, limit none\n");
  CHECK(run("create").out.starts_with("found "));  // perhaps an earlier claim's
  const auto grown = run("resize");
  CHECK(grown.code == 0);
  CHECK(grown.err.find("has no limit") != std::string::npos);
  const auto only_if_empty = [&] {
    return bed.run({"node", "-p", "/seen/elsewhere/pvc-1", "-s", "1024", "-m", "Filesystem", "-a",
                    "delete", "--if-empty"});
  };
  base.write("web/data/pvc-1/file");
  CHECK(only_if_empty().out.starts_with("kept "));
  CHECK(run("delete").code == 0);
  CHECK_FALSE(base.has("web"));
  CHECK(run("create").code == 0);
  CHECK(only_if_empty().out.starts_with("removed "));
  CHECK_FALSE(base.has("web"));
  CHECK(run("delete").out.starts_with("absent "));
}

TEST_CASE("node resize lowers what it is told to by hand, and nothing in a helper pod") {
  const BaseFolder base;
  CliBed bed;
  node::Kernel kernel;
  const auto resize = [&](std::initializer_list<std::string> words, const std::string& size) {
    std::vector<std::string> all{"node"};
    all.insert(all.end(), words);
    all.insert(all.end(), {"-p", base.at("v"), "-s", size});
    REQUIRE(bed.run(all).code == 0);
    return base.volumes(kernel).list()->volumes.at(0).size;
  };
  REQUIRE(bed.run({"node", "make", "-p", base.at("v"), "-s", "1000"}).code == 0);
  CHECK(resize({"resize"}, "3000") == 3000);
  CHECK(resize({"-a", "resize"}, "2000") == 3000);
  CHECK(resize({"-a", "resize"}, "4000") == 4000);
  CHECK(resize({"resize"}, "2000") == 2000);
  bed.environment["VOL_DIR"] = base.at("v");  // by a script of a helper pod
  CHECK(resize({"resize"}, "1000") == 2000);
}

TEST_CASE("node make refuses what another cluster has on record, as a helper pod is told") {
  const BaseFolder base;
  CliBed bed;
  node::Kernel kernel;
  bed.environment = {{"VOL_DIR", base.at("v")}, {"VOL_CLAIM_UID", "u1"}, {"VOL_CLUSTER", "c-1"}};
  const auto make = [&] { return bed.run({"node", "-p", base.at("v"), "-a", "create"}); };
  CHECK(make().code == 0);
  REQUIRE(base.volumes(kernel).identities("c-1").ok());
  bed.environment["VOL_CLAIM_UID"] = "u2";
  for (const char* const cluster : {"c-2", ""}) {
    bed.environment["VOL_CLUSTER"] = cluster;
    CHECK(make().code != 0);
    CHECK(make().err.find("by its record the directory of claim") != std::string::npos);
  }
  bed.environment["VOL_CLUSTER"] = "c-1";
  CHECK(make().code == 0);
  // Where there are no agents nothing is compared.
  bed.environment["VOL_CLAIM_UID"] = "u3";
  bed.environment.erase("VOL_CLUSTER");
  CHECK(make().code == 0);
}

TEST_CASE("node make says once that a base directory in use stays open to other users") {
  const BaseFolder base;
  CliBed bed;
  base.write("other");
  const auto make = [&](const char* path) {
    return bed.run({"node", "make", "--base", base.path(), "--path", path, "--json"});
  };
  const auto first = make("a");
  CHECK(first.err.find("stays open to other users of the node (mode 0755)") != std::string::npos);
  CHECK(json_of(first)["warnings"].size() == 1);
  const auto second = make("b");
  CHECK(second.err.empty());
  CHECK_FALSE(json_of(second).contains("warnings"));
  const BaseFolder empty;
  const auto closed = bed.run({"node", "make", "--base", empty.path(), "--path", "a", "--json"});
  CHECK(closed.err.empty());
  CHECK_FALSE(json_of(closed).contains("warnings"));
}

TEST_CASE("node makes and removes on the disk that it is told only") {
  const BaseFolder base;
  CliBed bed;
  const auto node = [&](const char* what, const std::string& disk) {
    return bed.run({"node", what, "--base", base.path(), "--path", "a", "--disk", disk});
  };
  CHECK(node("make", "disk-1").code == 4);  // no disk has a name yet
  CHECK(base.content().empty());
  REQUIRE(bed.run({"node", "make", "--base", base.path(), "--path", "b"}).code == 0);
  node::Kernel kernel;
  const std::string there = LPP_MUST(base.volumes(kernel).identity());
  const auto refused = node("make", "disk-1");
  CHECK(refused.code == 4);
  CHECK(refused.err.find("disk " + there + " is at") != std::string::npos);
  CHECK_FALSE(base.has("a"));
  CHECK(node("make", "disk-1 " + there).code == 0);
  CHECK(node("remove", "disk-1").code == 3);
  CHECK(node("remove", "disk-1 " + there).code == 3);  // one, as its volume names it
  CHECK(node("resize", "disk-1").code == 1);           // later, when it is back
  CHECK(node("resize", there).code == 0);
  CHECK(base.has("a"));
  CHECK(node("remove", there).code == 0);
  CHECK_FALSE(base.has("a"));
  // A disk without identity is no such disk, and does not become one by the question.
  std::filesystem::remove(base.at(BaseFolder::record("identity.json")));
  CHECK(node("make", there).code == 4);
  CHECK(node("remove", there).code == 3);
  CHECK_FALSE(base.has(BaseFolder::record("identity.json")));
  base.write(BaseFolder::record("identity.json"), R"({"disk":")" + there + "\"}");
  // Nobody may know on which of several it was made.
  const auto take_back = [&](const std::string& disks) {
    return bed.run(
        {"node", "remove", "--base", base.path(), "--path", "a", "--disk", disks, "--if-empty"});
  };
  REQUIRE(node("make", there).code == 0);
  CHECK(take_back("disk-1 disk-2").code == 3);
  CHECK(base.has("a"));
  CHECK(take_back("disk-1 " + there).code == 0);
  CHECK_FALSE(base.has("a"));
}

TEST_CASE("node usage says that limits on record do not hold where the quota is off by now") {
  const BaseFolder base;
  CliBed bed;
  node::Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "plain", .path = "plain", .size = 1}).ok());
  const auto run = [&] { return bed.run({"node", "usage", "--base", base.path()}); };
  CHECK(run().err.empty());
  // As a disk with limits leaves it, which comes back mounted without them.
  const auto made = volumes.make({.id = "data", .path = "data", .size = kMiB});
  REQUIRE(made.ok());
  node::Volume limited = *made;
  limited.project = 0x40000001;
  limited.limits.bytes = kMiB;
  base.write(BaseFolder::record("volume.data.json"), node::encode_record(limited));
  const auto told = run();
  CHECK(told.code == 0);
  CHECK_MESSAGE(told.err.find("1 of 2 volumes") != std::string::npos, told.err);
  const auto shown = json_of(bed.run({"node", "usage", "--base", base.path(), "--json"}));
  CHECK(shown["limitsNotHeld"] == nlohmann::json::array({"data"}));
}

TEST_CASE(
    "node ends with 3 where trying again does not help, and with 2 where it was called wrong") {
  const BaseFolder base;
  CliBed bed;
  base.write("file");
  const auto code = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "node");
    return bed.run(arguments).code;
  };
  CHECK(code({"make", "-p", base.at("file")}) == 3);
  CHECK(code({"adopt", "-p", base.at("absent"), "-s", "1Gi"}) == 1);
  CHECK(code({"resize", "-p", base.at("absent"), "-s", "1Gi", "--quota", "hard"}) == 1);
  CHECK(code({"make", "-p", base.at("a"), "--require-mount"}) == 4);
  CHECK(code({"list", "--base", base.path(), "--require-mount"}) == 1);
  CHECK(code({"make", "-p", base.at("a"), "-s", "1Ei", "--reserve", "10%"}) == 4);
  CHECK(code({"make", "-p", base.at("a"), "-s", "1Ei", "--overcommit=false"}) == 4);
  CHECK(code({"list", "--base", base.at("absent")}) == 1);
  // A make that was refused leaves its empty folder of records.
  std::filesystem::remove_all(base.at(BaseFolder::record("")));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{},
        {"list"},
        {"mend", "--base", base.path()},
        {"list", "list", "--base", base.path()},
        {"make", "--base", base.path()},
        {"make", "-p", "relative/data"},
        {"make", "-p", "/data"},
        {"make", "-p", base.at("../data")},
        {"make", "-p", base.at("a"), "--perm", "0888"},
        {"make", "-p", base.at("a"), "--perm", "17777"},
        {"make", "-p", base.at("a"), "--user", "nobody-by-that-name"},
        {"make", "-p", base.at("a"), "--user", "4294967295"},
        {"make", "-p", base.at("a"), "--quota", "soft"},
        {"make", "-p", base.at("a"), "--quota", "hard"},
        {"make", "-p", base.at("a"), "-s", "1Q"},
        {"make", "-p", base.at("a"), "-s", "-1"},
        {"adopt", "-p", base.at("a")},
        {"make", "-p", base.at("a"), "-s", "0"},
        {"make", "-p", base.at("a"), "-s", "16Ei"},
        {"make", "-p", base.at("a"), "-s", "9223372036854775807", "--quota", "hard"},
        {"make", "-p", base.at("a"), "-s", "16Ei", "--quota", "hard"},
        {"make", "-p", base.at("a"), "-s", "0", "--quota", "hard", "--quota-inodes", "10"},
        {"make", "-p", base.at("a"), "--quota", "hard", "--quota-inodes", "10"},
        {"make", "-p", base.at("a"), "-s", "1Gi", "--quota", "hard", "--quota-inodes", "0"},
        {"make", "-p", base.at("a"), "-s", "1Gi", "--quota", "hard", "--quota-inodes", "-1"},
        {"make", "-p", base.at("a"), "-s", "1Gi", "--quota-inodes", "10"},
        {"adopt", "-p", base.at("a"), "-s", "16Ei"},
        {"resize", "-p", base.at("a"), "-s", "16Ei"},
        {"resize", "-p", base.at("a"), "-s", "0"},
        {"make", "-p", base.at("a"), "--reserve", "100%"},
        {"make", "-p", base.at("a"), "--reserve", "16Ei"},
        {"make", "-p", base.at("a"), "--reserve", "101%"},
        {"make", "-p", base.at("a"), "--reserve", "-1Gi"},
        {"make", "-p", base.at("a"), "--reserve", "some"},
        {"make", "-p", base.at("a"), "--overcommit=maybe"},
        {"make", "-p", base.at("a"), "--quota-inodes", "many"}}) {
    CAPTURE(wrong.size());
    CHECK(code(wrong) == 2);
  }
  CHECK(base.content() == std::set<std::string>{"file"});
}

}  // namespace lpp::cli::node_command
