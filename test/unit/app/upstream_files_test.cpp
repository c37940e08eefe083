// SPDX-License-Identifier: Apache-2.0
// The published configurations, templates, classes and scripts of clusters that switch to us: they
// load without a word and do here what they did there. See test/data/upstream/README.md.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/strings.h"
#include "config/config_parser.h"
#include "fakes/builders.h"
#include "fakes/needs.h"
#include "harness/file_text.h"
#include "harness/temp_dir.h"
#include "helperpod/manifest.h"
#include "places/places.h"
#include "provisioner/claim_shape.h"
#include "provisioner/plan.h"
#include "script_run.h"
#include "text/yaml_to_json.h"

namespace lpp::app::upstream_files {

using namespace lpp;
using namespace lpp::testing;
using lpp::testing::node;  // not the namespace
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

struct UpstreamFile {
  std::string name{};
  json data = json::object();  // of the ConfigMap
  std::vector<json> classes{};

  std::optional<std::string> text(const char* key) const {
    if (!data.contains(key)) return std::nullopt;
    return data[key].get<std::string>();
  }
};

UpstreamFile read_file(const fs::path& path) {
  UpstreamFile read{.name = path.filename()};
  std::string rest = text_of(path);
  while (!rest.empty()) {
    const auto end = rest.find("\n---\n");
    auto document = text::yaml_to_json(rest.substr(0, end));
    REQUIRE_MESSAGE(document.ok(), read.name << ": " << document.error().message);
    if (document->value["kind"] == "ConfigMap") read.data = document->value["data"];
    if (document->value["kind"] == "StorageClass") read.classes.push_back(document->value);
    rest = end == std::string::npos ? "" : rest.substr(end + 5);
  }
  return read;
}

std::vector<UpstreamFile> upstream_files() {
  const fs::path folder = repository("test/data/upstream");
  std::vector<UpstreamFile> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(read_file(entry.path()));
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  REQUIRE(files.size() >= 15);
  return files;
}

/// These give the helper pod rights over the host, which needs
/// --allow-unsafe-helper-pod-template there as here.
bool is_unsafe(const std::string& name) {
  return name == "example-quota.yaml" || name == "example-quota-debug.yaml" ||
         name == "example-quota-manifest.yaml";
}

config::Config config_of(const UpstreamFile& file) {
  const auto parsed =
      config::parse_config(file.text("config.json")
                               .value_or(
                                   R"({"nodePathMap":[{"node":"DEFAULT_PATH_FOR_NON_LISTED_NODES",
                              "paths":["/opt/local-path-provisioner"]}]})"),
                           "config.json");
  REQUIRE(parsed.ok());
  return parsed->config;
}

}  // namespace

TEST_CASE("published configurations and helper pod templates load without error or warning") {
  int configurations = 0;
  int templates = 0;
  for (const UpstreamFile& file : upstream_files()) {
    CAPTURE(file.name);
    if (const auto text = file.text("config.json")) {
      ++configurations;
      const auto parsed = config::parse_config(*text, "config.json");
      REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
      for (const auto& warning : parsed->warnings) FAIL_CHECK(warning);
    }
    if (const auto text = file.text("helperPod.yaml")) {
      ++templates;
      const auto parsed = helperpod::parse_template(*text, "helperPod.yaml", is_unsafe(file.name));
      REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
      for (const auto& warning : parsed->warnings) FAIL_CHECK(warning);
      if (is_unsafe(file.name)) {
        CHECK_FALSE(helperpod::parse_template(*text, "helperPod.yaml", false).ok());
      }
    }
  }
  CHECK(configurations >= 12);
  CHECK(templates >= 7);
}

TEST_CASE("published classes give the paths that they gave") {
  const std::map<std::string, std::string> paths = {
      {"chart/local-path", "/opt/local-path-provisioner/pvc-uid-a_ns_a"},
      {"debug/local-path", "/opt/local-path-provisioner/pvc-uid-a_ns_a"},
      {"deploy/local-path", "/opt/local-path-provisioner/pvc-uid-a_ns_a"},
      {"example-quota-debug/local-path", "/opt/local-path-provisioner/pvc-uid-a_ns_a"},
      {"example-quota-manifest/local-path", "/mnt/disk/pvc-uid-a_ns_a"},
      {"readme/local-path-stable", "/opt/local-path-provisioner/pvc-uid-a_ns_a"},
      {"test-custom-path-pattern/local-path-custom-path-pattern",
       "/opt/local-path-provisioner/ns/a"},
      {"test-multiple-storage-classes/local-path-shared",
       "/opt/local-path-provisioner-shared/pvc-uid-a_ns_a"},
      {"test-pod-with-custom-node-affinity-key/local-path-custom-affinity",
       "/opt/local-path-provisioner/pvc-uid-a_ns_a"},
      {"test-pod-with-default-local-volume/local-path",
       "/opt/local-path-provisioner/pvc-uid-a_ns_a"},
      {"test-pod-with-perm-pattern/local-path-perm-pattern", "/opt/local-path-provisioner/ns/a"},
      {"test-skip-path-pattern-check/local-path-skip-path-pattern-check",
       "/opt/local-path-provisioner/etc"},
      {"test-skip-path-pattern-check-by-annotation/"
       "local-path-skip-path-pattern-check-by-annotation",
       "/opt/local-path-provisioner/etc"},
  };
  std::size_t seen = 0;
  for (const UpstreamFile& file : upstream_files()) {
    const config::Config config = config_of(file);
    for (const json& object : file.classes) {
      const auto storage_class = k8s::decode<k8s::StorageClass>(object);
      REQUIRE_MESSAGE(storage_class.ok(), storage_class.error().message);
      const std::string key = fs::path(file.name).stem().string() + "/" + storage_class->meta.name;
      CAPTURE(key);
      const auto asked =
          claim("a").ns("ns").node("n1").storage_class(storage_class->meta.name).build();
      const auto on = node("n1").build();
      const auto shape = provisioner::make_shape(asked, *storage_class, &on, config);
      const auto made = provisioner::make_operation(asked, *storage_class, &on, config);
      if (const auto expected = paths.find(key); expected != paths.end()) {
        ++seen;
        CHECK(std::holds_alternative<operation::Shape>(shape));
        REQUIRE(std::holds_alternative<operation::Operation>(made));
        CHECK(std::get<operation::Operation>(made).path == expected->second);
      } else {
        // A class for a path that its README's nodes do not have, and an attempt to climb.
        CHECK((key == "readme/ssd-local-path" ||
               key == "test-security-basic-traversal-path/security-test-storage"));
        CHECK(std::holds_alternative<provisioner::Refusal>(made));
      }
    }
  }
  CHECK(seen == paths.size());
}

LPP_ROOT_TEST_CASE("published scripts do their work with what our helper pods tell them") {
  const TempDir folder;
  const std::string base = folder.path() + "/base";
  int ran = 0;
  for (const UpstreamFile& file : upstream_files()) {
    for (const char* leaf : {"pvc-1_ns_data", "ns/data", "ns/data/deep/er"}) {
      CAPTURE(file.name);
      CAPTURE(leaf);
      for (const auto action : {operation::Kind::kMake, operation::Kind::kRemove}) {
        const bool create = action == operation::Kind::kMake;
        const auto script = file.text(create ? "setup" : "teardown");
        if (!script) continue;
        ++ran;
        const operation::Operation operation{.kind = action,
                                             .volume_name = "pvc-1",
                                             .claim = {"ns", "data"},
                                             .owner_uid = "1",
                                             .node = "n1",
                                             .base_path = base,
                                             .path = base + "/" + leaf,
                                             .size_bytes = 1024,
                                             .user = create ? "1000" : "",
                                             .group = create ? "2000" : "",
                                             .perm = create ? "0700" : ""};
        const auto pod_template = helperpod::parse_template(
            file.text("helperPod.yaml").value_or("spec: {containers: [{}]}"), "t", true);
        REQUIRE(pod_template.ok());
        const auto pod = helperpod::make_pod(*pod_template, operation, {.config_map = "c"});
        REQUIRE_MESSAGE(pod.ok(), pod.error().message);
        const json& container = (*pod)["spec"]["containers"][0];
        Environment environment;
        for (const json& variable : container["env"]) {
          environment.emplace_back(variable["name"], variable["value"]);
        }
        // The kubelet makes the folder that it mounts.
        fs::create_directories(fs::path(operation.path).parent_path());
        std::ofstream(folder.path() + "/script") << *script;
        std::vector<std::string> command = {"busybox", "sh", folder.path() + "/script"};
        for (const json& argument : container["args"]) command.push_back(argument);
        const Run result = run(command, environment);
        CHECK_MESSAGE(result.exit_code == 0, result.output);
        CHECK(fs::is_directory(operation.path) == create);
      }
      fs::remove_all(base);
    }
  }
  CHECK(ran >= 30);
}

}  // namespace lpp::app::upstream_files
