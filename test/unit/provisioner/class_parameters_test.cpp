// SPDX-License-Identifier: Apache-2.0
// The parameters of a StorageClass that are about sizes, and the choice of a base path.

#include "provisioner/class_parameters.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "fakes/builders.h"
#include "provisioner/base_paths.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"

namespace lpp::provisioner {
namespace {

using operation::Limits;
using testing::storage_class;
using Parameters = std::vector<std::pair<std::string, std::string>>;

k8s::StorageClass class_with(const Parameters& parameters) {
  auto builder = storage_class();
  for (const auto& [name, value] : parameters) builder.parameter(name, value);
  return builder.build();
}

TEST_CASE("what the parameters say") {
  const auto limits = [](const Parameters& parameters) {
    const auto read = limits_of(class_with(parameters));
    REQUIRE(std::holds_alternative<Limits>(read));
    return std::get<Limits>(read);
  };
  CHECK(limits({}) == Limits{});
  CHECK(limits({{"quota", "none"}, {"overcommit", "true"}}) == Limits{});
  CHECK(limits({{"quota", "hard"}}) == Limits{.hard = true});
  CHECK(limits({{"quota", "hard"}, {"quotaInodes", "1000"}}) ==
        Limits{.hard = true, .inodes = 1000});
  CHECK(limits({{"reserve", "10%"}, {"overcommit", "false"}}) ==
        Limits{.reserve = "10%", .overcommit = false});
  CHECK(limits({{"reserve", "1.5Gi"}}) == Limits{.reserve = "1.5Gi"});
}

TEST_CASE("claims of lost nodes are kept unless the class says otherwise, and after five minutes") {
  const auto read = [](const Parameters& parameters) {
    const auto wanted = on_node_lost_of(class_with(parameters));
    REQUIRE(std::holds_alternative<OnNodeLost>(wanted));
    return std::get<OnNodeLost>(wanted);
  };
  CHECK(read({}) == OnNodeLost{.release = false});
  CHECK(read({{"onNodeLost", "keep"}}) == OnNodeLost{.release = false});
  CHECK(read({{"onNodeLost", "release"}}) ==
        OnNodeLost{.release = true, .after = std::chrono::minutes(5)});
  for (const auto& [text, after] :
       std::vector<std::pair<std::string, Duration>>{{"1s", std::chrono::seconds(1)},
                                                     {"90s", std::chrono::seconds(90)},
                                                     {"10m", std::chrono::minutes(10)},
                                                     {"168h", std::chrono::hours(168)},
                                                     {"604800s", std::chrono::hours(168)}}) {
    CHECK(read({{"onNodeLost", "release"}, {"onNodeLostAfter", text}}).after == after);
  }
}

TEST_CASE("what onNodeLost cannot say is refused, with what would do") {
  for (const auto& [parameters, part] : std::vector<std::pair<Parameters, std::string>>{
           {{{"onNodeLost", "Release"}}, "Release cannot be used, it must be \"keep\" or"},
           {{{"onNodeLost", ""}}, "parameter onNodeLost"},
           {{{"onNodeLostAfter", "5m"}}, "needs onNodeLost: release beside it"},
           {{{"onNodeLost", "keep"}, {"onNodeLostAfter", "5m"}}, "needs onNodeLost: release"}}) {
    const auto read = on_node_lost_of(class_with(parameters));
    REQUIRE(std::holds_alternative<Refusal>(read));
    CHECK_MESSAGE(std::get<Refusal>(read).message.find(part) != std::string::npos,
                  std::get<Refusal>(read).message);
  }
  for (const char* text : {"", "5", "m", "0s", "-5m", "1.5h", "5d", "169h", "604801s", "1h30m",
                           " 5m", "5 m", "99999999999999999999h"}) {
    CAPTURE(text);
    const auto read =
        on_node_lost_of(class_with({{"onNodeLost", "release"}, {"onNodeLostAfter", text}}));
    REQUIRE(std::holds_alternative<Refusal>(read));
    CHECK(std::get<Refusal>(read).message.find("parameter onNodeLostAfter") != std::string::npos);
  }
}

TEST_CASE("what they cannot say is refused, with the parameter, the class and what would do") {
  for (const auto& row : std::vector<std::pair<Parameters, std::string>>{
           {{{"quota", "soft"}}, "soft cannot be used, it must be \"hard\" or \"none\""},
           {{{"quota", "Hard"}}, "parameter quota of StorageClass \"local-path\""},
           {{{"quota", ""}}, "parameter quota"},
           {{{"quotaInodes", "10"}}, "needs quota: hard beside it"},
           {{{"quota", "hard"}, {"quotaInodes", "0"}}, "a number from 1 to 4294967295"},
           {{{"quota", "hard"}, {"quotaInodes", "4294967296"}}, "from 1 to 4294967295"},
           {{{"quota", "hard"}, {"quotaInodes", "1k"}}, "parameter quotaInodes"},
           {{{"quota", "hard"}, {"quotaInodes", "99999999999999999999"}}, "quotaInodes"},
           {{{"reserve", "100%"}}, "a share from \"0%\" to \"99%\""},
           {{{"reserve", "-1Gi"}}, "parameter reserve"},
           {{{"reserve", "-0%"}}, "parameter reserve"},
           {{{"reserve", "%"}}, "parameter reserve"},
           {{{"reserve", "10 %"}}, "parameter reserve"},
           {{{"reserve", ""}}, "parameter reserve"},
           {{{"overcommit", "no"}}, "\"true\" or \"false\""}}) {
    CAPTURE(row.second);
    const auto& [parameters, part] = row;
    const auto read = limits_of(class_with(parameters));
    REQUIRE(std::holds_alternative<Refusal>(read));
    CHECK(std::get<Refusal>(read).message.find(part) != std::string::npos);
    CHECK_FALSE(std::get<Refusal>(read).node_is_the_reason);
  }
  CHECK(std::holds_alternative<Refusal>(
      path_selection_of(class_with({{"pathSelection", "most-free"}}))));
}

TEST_CASE("a reserve is a size, or a share that does not overflow") {
  CHECK(reserved_bytes("10%", 1000) == 100);
  CHECK(reserved_bytes("99%", INT64_MAX) == INT64_MAX / 100 * 99 + INT64_MAX % 100 * 99 / 100);
  CHECK(reserved_bytes("0%", 1000) == 0);
  CHECK(reserved_bytes("1Ki", 10) == 1024);
}

/// A claim on n1 with the paths /a, /b and /c.
struct Choice {
  std::vector<std::string> paths{"/a", "/b", "/c"};
  BasePaths known{};

  std::variant<std::string, Refusal> of(const Parameters& parameters,
                                        const std::string& volume = "pvc-1") const {
    return choose_base_path(&paths, class_with(parameters), "n1", volume, known);
  }
  std::string most_free(Parameters parameters = {}) const {
    parameters.emplace_back("pathSelection", "mostFree");
    return std::get<std::string>(of(parameters));
  }
  void room(const std::string& path, std::int64_t size, std::int64_t free, std::int64_t promised) {
    known.room[path] = {.promised = promised,
                        .space = operation::Space{.size = size, .free = free}};
  }
  void tells(const std::string& path, operation::Promises promises) {
    known.room[path].promises = promises;
  }
};

TEST_CASE("mostFree: what is promised and not used yet is taken off") {
  Choice choice;
  choice.room("/a", 100, 90, 95);  // empty, and nearly all of it promised
  choice.room("/b", 100, 40, 10);  // used by others
  choice.room("/c", 100, 50, 70);
  CHECK(choice.most_free() == "/b");
  SUBCASE("where the node tells it, what others use is not taken for use of the volumes") {
    choice.tells("/a", {.unused = 85});              // 5 are left
    choice.tells("/b", {.unused = 10});              // 30
    choice.tells("/c", {.unused = 15, .used = 50});  // 35: no byte counts twice
    CHECK(choice.most_free() == "/c");
    choice.tells("/c", {.unused = 45, .used = 25});  // 5, of 70 promised: 25 are others'
    CHECK(choice.most_free() == "/b");
    choice.tells("/b", {.unused = 36});  // 4
    choice.room("/a", 100, 90, 5000);    // who tells nothing is not asked for it
    choice.tells("/a", {});
    CHECK(choice.most_free() == "/a");
    SUBCASE("a reserve is kept beside it") {
      choice.room("/a", 1000, 90, 0);
      choice.tells("/a", {});
      choice.tells("/b", {});
      CHECK(choice.most_free({{"reserve", "5%"}}) == "/a");  // 40, 35, 0
      CHECK(choice.most_free({{"reserve", "7%"}}) == "/b");  // 20, 33, -2
    }
  }
  SUBCASE("a share that is kept differs with the size") {
    choice.room("/a", 1000, 45, 0);
    CHECK(choice.most_free() == "/a");
    CHECK(choice.most_free({{"reserve", "5%"}}) == "/b");
  }
  SUBCASE("of paths that nobody has told of, the one with least promised comes first") {
    choice.known.room["/a"] = {.promised = 7, .space = {}};
    choice.known.room["/c"] = {.promised = 5, .space = {}};
    CHECK(choice.most_free() == "/c");
  }
  SUBCASE("one that nobody has told of is tried for one claim, and for others comes last") {
    choice.known.room["/c"] = {.promised = 99, .space = {}};
    CHECK(choice.most_free() == "/c");
    choice.known.room["/c"].tried = true;
    CHECK(choice.most_free() == "/b");
    choice.known.unfit["/a"] = choice.known.unfit["/b"] = "no quota";
    CHECK(choice.most_free() == "/c");
  }
  SUBCASE("a reserve that no disk has does not wrap around") {
    choice.room("/a", 100, 90, std::int64_t{1} << 62U);
    CHECK(choice.most_free({{"reserve", "9223372036854775807"}}) == "/b");
  }
  SUBCASE("the class's own path goes before") {
    CHECK(choice.most_free({{"nodePath", "/a"}}) == "/a");
  }
  SUBCASE("what cannot serve the claim is left out") {
    choice.known.unfit["/b"] = "no quota";
    CHECK(choice.most_free() == "/c");
  }
}

TEST_CASE("equal paths are all used") {
  Choice choice;
  std::set<std::string> used;
  for (int i = 0; i < 40; ++i) {
    used.insert(std::get<std::string>(
        choice.of({{"pathSelection", "mostFree"}}, "pvc-" + std::to_string(i))));
  }
  CHECK(used.size() == 3);
}

TEST_CASE("a path that cannot serve the claim gives way to another, and the last one to a node") {
  Choice choice;
  const std::string first = std::get<std::string>(choice.of({}));
  choice.known.unfit[first] = "no quota";
  const std::string second = std::get<std::string>(choice.of({}));
  CHECK(second != first);
  for (const auto& path : choice.paths) choice.known.unfit[path] = "no quota";
  const auto none = choice.of({});
  REQUIRE(std::holds_alternative<Refusal>(none));
  CHECK(std::get<Refusal>(none).node_is_the_reason);
  CHECK(std::get<Refusal>(none).message ==
        "no path of node n1 can serve the claim: /a: no quota; /b: no quota; /c: no quota");
  CHECK(std::get<Refusal>(choice.of({{"nodePath", "/b"}})).message ==
        "no path of node n1 can serve the claim: /b: no quota");
}

TEST_CASE(
    "a volume with a limit is local unless somebody says otherwise, and says that it has one") {
  config::Config config;
  config.paths.node_path_map["n1"] = {"/data"};
  const auto node = testing::node("n1").shared();
  const auto made = [&](const testing::ClaimBuilder& claim, const Parameters& parameters) {
    auto planned = make_operation(claim.build(), class_with(parameters), node.get(), config);
    REQUIRE(std::holds_alternative<operation::Operation>(planned));
    return make_volume(std::get<operation::Operation>(planned), claim.build(), "p");
  };
  const auto claim = testing::claim("a").node("n1");
  const auto limited = made(claim, {{"quota", "hard"}});
  CHECK(limited["spec"].contains("local"));
  CHECK(limited["metadata"]["annotations"]["local.path.provisioner/quota"] == "hard");
  CHECK(made(claim, {{"quota", "hard"}, {"volumeType", "hostPath"}})["spec"].contains("hostPath"));
  const auto plain = made(claim, {{"reserve", "1Gi"}});
  CHECK(plain["spec"].contains("hostPath"));
  CHECK_FALSE(plain["metadata"]["annotations"].contains("local.path.provisioner/quota"));
}

TEST_CASE("a shared filesystem has no limits to give") {
  config::Config config;
  config.paths.shared_file_system_path = "/shared";
  const auto planned =
      make_operation(testing::claim("a").build(), class_with({{"quota", "hard"}}), nullptr, config);
  REQUIRE(std::holds_alternative<Refusal>(planned));
  CHECK(std::get<Refusal>(planned).message.find("sharedFileSystemPath") != std::string::npos);
}

}  // namespace
}  // namespace lpp::provisioner
