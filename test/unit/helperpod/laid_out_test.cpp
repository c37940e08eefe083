// SPDX-License-Identifier: Apache-2.0
// Records that somebody has rewritten by hand are read by our scripts as by the program.

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "beside_records_scene.h"

namespace lpp::helperpod {
namespace laid_out {
namespace {

using namespace beside_records;

constexpr std::array kTheDisk{
    R"({"disk":"d-1","version":1})",
    R"({ "disk" : "d-1" })",
    "{\n  \"cluster\": \"c-1\",\n  \"disk\":\n\t\"d-1\"\r\n}\n",
    R"({"version": 1, "note": "the \"disk\":\"d-2\" of \\", "disk": "d-1"})",
    R"({"former":{"disk":"d-2"},"all":[{"disk":"d-2"},["disk"]],"disk":"d-1"})",
    R"({"disk":"d-2","disk":"d-1"})",
    R"({"disk":"d-1","of":"disk","list":["disk",":","d-2"],"more":{},"":"*"})",
};
constexpr std::array kAnother{
    R"({"disk":"d-2"})",
    R"({"disk":"d-10"})",
    R"({"disk": "xd-1"})",
    R"({"disk":"d-1 d-2"})",
    R"({"disk":"d-2 d-1"})",
    R"({"disk":" d-1"})",
    R"({"di sk":"d-1"})",
    R"({"adisk":"d-1"})",
    R"({"former":{"disk":"d-1"},"disk":"d-2"})",
    R"({"former":{"disk":"d-1"}})",
    R"([{"disk":"d-1"}])",
    R"(["disk","d-1"])",
    R"({"note":"\"disk\":\"d-1\"","disk":"d-2"})",
    R"({"note":"disk:d-1","of":"disk","and":"d-1"})",
    R"({"disk":"d-1","disk":"d-2"})",
    R"({"disk":"d-1","disk":null})",
    R"({"disk":"d-1","disk":["d-1"]})",
    R"({"disk":{"d-1":"d-1"}})",
    R"({"disk":"d-1")",
    R"({"disk":"d-1)",
    R"({"disk":"d-1"} {"disk":"d-2"})",
    R"("disk":"d-1")",
    "",
};

TEST_CASE("a disk is known however its identity is laid out, and no other is taken for it") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    Operation undo = scene.removal("v");
    undo.kind = operation::Kind::kTakeBack;
    undo.only_if_empty = true;
    undo.disk = "d-1";
    const auto is_it = [&](const char* text) {
      fs::remove_all(scene.base() / "v");
      fs::create_directory(scene.base() / "v");
      std::ofstream(scene.identity_file()) << text;
      (void)scene.take_back(undo);
      return !fs::exists(scene.base() / "v");
    };
    for (const char* const text : kTheDisk) {
      CAPTURE(text);
      CHECK(is_it(text));
      CHECK(LPP_MUST(scene.volumes().identity()) == "d-1");
    }
    for (const char* const text : kAnother) {
      CAPTURE(text);
      CHECK_FALSE(is_it(text));
      const auto known = scene.volumes().identity();
      CHECK((!known.ok() || *known != "d-1"));
    }
  }
}

TEST_CASE("another cluster's is known however its identity is laid out") {
  FOR_EACH_BASE(scene) {
    scene.make("v", "uid-2");
    Operation make = scene.making("v", "uid-1");
    make.disk.clear();
    scene.own_setup("true");
    const auto is_refused = [&](const char* identity) {
      std::ofstream(scene.identity_file()) << identity;
      const auto said = scene.base().parent_path() / "said";
      return scene.set_up(make, "c-1", said).output.find("adopt it") != std::string::npos;
    };
    for (const char* const text : {
             R"({"disk": "d-1", "cluster": "c-2"})",
             "{\"cluster\"\n:\"c-2\",\"disk\":\"d-1\"}",
             R"({"disk": "d-1", "cluster": "c-12"})",
             R"({"disk": "d-1", "cluster": ""})",
             R"({"disk": "d-1", "cluster": "c-1")",
         }) {
      CAPTURE(text);
      CHECK(is_refused(text));
    }
    for (const char* const text : {
             R"({"disk": "d-1", "cluster": "c-1"})",
             R"({"cluster" :"c-1" , "former": {"cluster":"c-2"}})",
             R"({"disk": "d-1", "note": "cluster: c-2"})",
         }) {
      CAPTURE(text);
      CHECK_FALSE(is_refused(text));
    }
  }
}

TEST_CASE("whose a directory is is known however its record is laid out") {
  FOR_EACH_BASE(scene) {
    for (const std::string uid : {"uid-1", "uid-2"}) {
      CAPTURE(uid);
      scene.make("v", uid);
      const auto record = nlohmann::json::parse(testing::text_of(scene.record("v")));
      std::ofstream(scene.record("v")) << record.dump(2);
      const Run run = scene.helper_pod(scene.removal("v"));
      const bool is_its_own = uid == "uid-1";
      CHECK((run.exit_code == 0) == is_its_own);
      CHECK(fs::exists(scene.base() / "v") != is_its_own);
      CHECK(fs::exists(scene.record("v")) != is_its_own);
      fs::remove_all(scene.base() / "v");
      fs::remove(scene.record("v"));
    }
  }
}

}  // namespace
}  // namespace laid_out
}  // namespace lpp::helperpod
