// SPDX-License-Identifier: Apache-2.0
// What `check` says of helper pods whose image has no shell for the scripts that they are to run.

#include <doctest/doctest.h>

#include "cli/manifests.h"
#include "cli_bed.h"
#include "harness/rendering.h"
#include "places/places.h"

namespace lpp::testing::check_helper_image {
namespace {

using nlohmann::json;

constexpr const char* kOurs = "local-path-provisioner:v0.1.0";
constexpr const char* kBusybox = "rancher/library-busybox:1.32.1";

/// A directory of examples/ with deploy/quota, as kubectl kustomize prints it.
struct Overlay {
  std::vector<json> objects{};

  explicit Overlay(const std::string& file = "hard-quota.yaml") {
    const auto all =
        cli::read_manifest(rendering(repository("test/chart/kustomize/" + file)).value(), file);
    REQUIRE(all.ok());
    for (const auto& one : *all) objects.push_back(one.object);
  }

  json& of_kind(const char* kind) {
    for (json& one : objects) {
      if (one["kind"] == kind) return one;
    }
    FAIL("no " << kind);
    return objects.front();
  }
  json& daemon() { return of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]; }
  json& data() { return of_kind("ConfigMap")["data"]; }

  /// As with a patch of config.json that has only paths and these.
  void keep(const std::vector<std::string>& commands) {
    const json whole = json::parse(data()["config.json"].get<std::string>());
    json patched{{"nodePathMap", whole["nodePathMap"]}};
    for (const std::string& one : commands) patched[one] = whole[one];
    data()["config.json"] = patched.dump();
  }
  void set_helper_image(const char* image) {
    for (json& one : daemon()["env"]) {
      if (one["name"] == "HELPER_IMAGE") one["value"] = image;
    }
  }
  void set_template_image(const char* image) {
    data()["helperPod.yaml"] = json{{"apiVersion", "v1"},
                                    {"kind", "Pod"},
                                    {"metadata", {{"name", "helper-pod"}}},
                                    {"spec", {{"containers", {{{"name", "a"}, {"image", image}}}}}}}
                                   .dump();
  }
  CliBed::Outcome check() const {
    CliBed bed;
    bed.files["all.json"] = json{{"kind", "List"}, {"items", objects}}.dump();
    return bed.run({"check", "-f", "all.json"});
  }
};

bool is_told(const CliBed::Outcome& outcome) {
  return outcome.out.find("no shell") != std::string::npos;
}

TEST_CASE("a patch of config.json that takes the commands of our own image away is a problem") {
  Overlay overlay;
  CHECK(overlay.check().code == 0);
  CHECK_FALSE(is_told(overlay.check()));
  overlay.keep({});
  const auto outcome = overlay.check();
  CHECK(outcome.code == 1);
  CAPTURE(outcome.out);
  CHECK(outcome.out.find(
            "PROBLEM:   all.json:1: ConfigMap local-path-storage/local-path-config config.json: "
            "setupCommand, teardownCommand, resizeCommand\n"
            "           missing, and the helper pods run the provisioner's own image "
            "local-path-provisioner:v0.1.0, which has no shell for scripts: they cannot start\n"
            "           fix: set to /usr/bin/local-path-node what is missing, which a patch of "
            "config.json repeats (docs/sizes.md), or give the helper pods an image with a shell "
            "(HELPER_IMAGE)\n") != std::string::npos);
}

TEST_CASE("both commands that make and remove are needed, and the one that grows is not") {
  Overlay overlay;
  SUBCASE("teardown") { overlay.keep({"setupCommand", "resizeCommand"}); }
  SUBCASE("setup") { overlay.keep({"teardownCommand", "resizeCommand"}); }
  CHECK(is_told(overlay.check()));
  Overlay growing_never;
  growing_never.keep({"setupCommand", "teardownCommand"});
  CHECK_FALSE(is_told(growing_never.check()));
}

TEST_CASE("beside agents it is a warning: they do the work on their nodes") {
  Overlay overlay("node-agents-with-limits.diff");
  CHECK_FALSE(is_told(overlay.check()));
  overlay.keep({});
  const auto outcome = overlay.check();
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("nodes without an agent get no volumes") != std::string::npos);
}

TEST_CASE("the image that counts is the one that the helper pods run, from whatever registry") {
  Overlay overlay;
  overlay.keep({});
  bool told = false;
  SUBCASE("another one in HELPER_IMAGE") { overlay.set_helper_image(kBusybox); }
  SUBCASE("another one in the template") { overlay.set_template_image(kBusybox); }
  SUBCASE("none in HELPER_IMAGE") { overlay.daemon()["env"] = json::array(); }
  SUBCASE("ours in the template") {
    overlay.daemon()["env"] = json::array();
    overlay.set_template_image(kOurs);
    told = true;
  }
  SUBCASE("ours from another registry") {
    overlay.daemon()["image"] = "registry.example.com:5000/storage/local-path-provisioner:v0.1.0";
    told = true;
  }
  SUBCASE("another one of the same repository") {
    overlay.daemon()["image"] = "registry.example.com/all:provisioner";
    overlay.set_helper_image("registry.example.com/all:busybox");
  }
  CHECK(is_told(overlay.check()) == told);
}

TEST_CASE("the configuration of --config goes before that of the ConfigMap") {
  Overlay overlay;
  CliBed bed;
  bed.files["c.json"] = R"({"nodePathMap": [{"node": "n", "paths": ["/a"]}]})";
  bed.files["all.json"] = json{{"kind", "List"}, {"items", overlay.objects}}.dump();
  const auto outcome = bed.run({"check", "-f", "all.json", "--config", "c.json"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("PROBLEM:   c.json: setupCommand, ") != std::string::npos);
}

}  // namespace
}  // namespace lpp::testing::check_helper_image
