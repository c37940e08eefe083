// SPDX-License-Identifier: Apache-2.0
// Our own program at work on the node: in helper pods of its own image, as deploy/quota sets it up,
// with no shell, no scripts, and no more capabilities than the template says, or as an agent.

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fakes/builders.h"
#include "harness/command_run.h"
#include "harness/paths_below.h"
#include "harness/yaml_objects.h"
#include "helperpod/manifest.h"
#include "places/places.h"
#include "support/daemon_program.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::string kOverlay = repository("test/chart/kustomize/hard-quota.yaml");

json overlay_object(const std::string& kind) {
  for (const json& object : LPP_MUST(read_yaml_objects(kOverlay))) {
    if (object["kind"] == kind) return object;
  }
  FAIL("no " << kind << " in " << kOverlay);
  return {};
}

/// What the Deployment's environment says, as flags.
std::vector<std::string> overlay_flags() {
  const json container = overlay_object("Deployment")["spec"]["template"]["spec"]["containers"][0];
  std::vector<std::string> flags;
  for (const json& variable : container["env"]) {
    const std::string name = variable["name"];
    const std::string value = variable.value("value", "");
    if (name == "HELPER_IMAGE") flags.push_back("--helper-image=" + value);
    if (name == "ALLOW_UNSAFE_HELPER_POD_TEMPLATE") {
      flags.push_back("--allow-unsafe-helper-pod-template=" + value);
    }
  }
  return flags;
}

/// The file system of the image, made as the Dockerfile makes it, with the daemon of this build.
struct OwnImage {
  OwnImage() {
    const auto collected =
        LPP_MUST(run_command({.program = repository("scripts/collect-runtime.sh"),
                              .args = {built("src/local-path-provisioner"), root()}},
                             std::chrono::minutes(1)));
    REQUIRE_MESSAGE(collected.code == 0, collected.text);
  }
  std::string root() const { return folder.path() + "/image"; }

  TempDir folder;
};

struct OwnProgramStory {
  explicit OwnProgramStory(By by)
      : story(overlay_flags(),
              {.manifest = kOverlay, .images = {{"local-path-provisioner", image.root()}}}, by) {
    json config = json::parse(
        overlay_object("ConfigMap")["data"]["config.json"].get_ref<const std::string&>());
    config["nodePathMap"] = story.installation->default_config()["nodePathMap"];
    LPP_MUST(story.installation->write_config(config));
    story.start();
    LPP_MUST(story.admin().apply(namespace_object("app")));
  }
  /// The records beside the volume's directory.
  static bool is_recorded(const VolumeFacts& volume) {
    const fs::path records = fs::path(volume.disk).parent_path() / ".local-path-provisioner";
    REQUIRE(fs::is_directory(records));
    const auto paths = paths_below(records);
    return std::any_of(paths.begin(), paths.end(), [&](const fs::path& path) {
      return path.string().find(volume.pv) != std::string::npos;
    });
  }

  const OwnImage image;
  StoryBed story;
};

TEST_CASE("our own image serves as that of helper pods, with no shell and few capabilities") {
  OwnProgramStory own(By::kHelperPods);
  StoryBed& story = own.story;
  CHECK_FALSE(fs::exists(own.image.root() + "/bin/sh"));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  CHECK(fs::status(volume.disk).permissions() == fs::perms::all);
  CHECK(OwnProgramStory::is_recorded(volume));

  // Taken away with what other users left in it.
  fs::create_directories(volume.disk + "/closed/inside");
  fs::permissions(volume.disk + "/closed", fs::perms::none);
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  CHECK_FALSE(OwnProgramStory::is_recorded(volume));
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim of the class with quota learns why the node's disk holds no limits") {
  OwnProgramStory own(by);
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(own.story.admin().create(claim_object({.key = claim,
                                                  .storage_class = "local-path-quota",
                                                  .size = "1Gi",
                                                  .selected_node = "node-1"})));
  wait_for_event(own.story, claim, "ProvisioningFailed", "no limits on ");
  LPP_MUST(own.story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(own.story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE("room that is kept free or promised to others is not given away") {
  OwnProgramStory own(by);
  StoryBed& story = own.story;
  LPP_MUST(story.admin().create(class_object(
      {.name = "careful", .parameters = {{"reserve", "1%"}, {"overcommit", "false"}}})));
  const k8s::ObjectKey small{"app", "small"};
  const k8s::ObjectKey huge{"app", "huge"};
  LPP_MUST(story.admin().create(claim_object(
      {.key = small, .storage_class = "careful", .size = "1Mi", .selected_node = "node-1"})));
  LPP_MUST(story.audit.wait_bound(small));
  LPP_MUST(story.admin().create(claim_object(
      {.key = huge, .storage_class = "careful", .size = "1Pi", .selected_node = "node-1"})));
  wait_for_event(story, huge, "ProvisioningFailed", "no room for 1Pi");
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, huge));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, small));
  LPP_MUST(story.audit.wait_clean());
}

/// A removal as the first process of its own PID namespace, as in a container, which has got
/// SIGTERM before it has even begun. The exit code, or the signal's number + 128.
int remove_told_to_stop(const std::string& program, const std::string& directory) {
  std::vector<const char*> arguments{program.c_str(),   "node", "remove", "-p",
                                     directory.c_str(), nullptr};
  const auto code_of = [](pid_t child) {
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return 97;
    return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) + 128;
  };
  const pid_t child = ::fork();
  if (child != 0) return code_of(child);
  const int own_users = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
  if (::unshare(CLONE_NEWPID | own_users) != 0) ::_exit(98);
  const pid_t first = ::fork();
  if (first != 0) ::_exit(code_of(first));
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::kill(::getpid(), SIGTERM);
  ::execv(program.c_str(), const_cast<char**>(arguments.data()));  // it changes nothing
  ::_exit(99);
}

TEST_CASE("a removal that is told to stop in a container puts back what it has not removed") {
  const std::string program = daemon_program();
  // It may be quicker than the signal: then it had too little to do.
  for (int files = 4000;; files *= 4) {
    REQUIRE(files < 10'000'000);
    const TempDir base;
    const std::string directory = base.path() + "/pvc-1";
    const auto made = LPP_MUST(run_command(
        {.program = program, .args = {"node", "make", "-p", directory}}, std::chrono::minutes(1)));
    REQUIRE_MESSAGE(made.code == 0, made.text);
    for (int i = 0; i < files; ++i) std::ofstream(directory + "/" + std::to_string(i));
    const int code = remove_told_to_stop(program, directory);
    if (code == 0) {
      CHECK_FALSE(fs::exists(directory));
      continue;
    }
    CHECK(code == 1);
    CHECK(fs::exists(directory));
    for (const auto& entry : fs::directory_iterator(base.path() + "/.local-path-provisioner")) {
      CHECK_FALSE(entry.path().filename().string().starts_with("gone."));
    }
    return;
  }
}

/// The node's record of the directory is older than the claim, and says that it was made.
LPP_PODS_AND_AGENTS_TEST_CASE(
    "what a retained volume holds is not taken back with the next claim of its name") {
  OwnProgramStory own(by);
  StoryBed& story = own.story;
  const k8s::ObjectKey claim{"app", "data"};
  const auto make_class = [&](const char* name, std::map<std::string, std::string> parameters) {
    parameters["pathPattern"] = "{{.PVC.Namespace}}/{{.PVC.Name}}";
    LPP_MUST(story.admin().create(class_object(
        {.name = name, .reclaim_policy = "Retain", .parameters = std::move(parameters)})));
  };
  const auto make_claim = [&](const char* storage_class) {
    LPP_MUST(story.admin().create(
        claim_object({.key = claim, .storage_class = storage_class, .selected_node = "node-1"})));
  };
  make_class("named", {});
  make_class("limited", {{"quota", "hard"}});
  make_claim("named");
  const auto no_pod_is_left = [&] {
    wait_for(story, "no helper pod is left", [&]() -> std::string {
      const auto pods = story.admin().list(k8s::kPods, kDaemonNamespace,
                                           helperpod::label_selector(kProvisionerName));
      if (!pods.ok()) return pods.error().message;
      return pods->empty() ? "" : json(*pods).dump();
    });
  };
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  std::ofstream(volume.disk + "/kept") << "of the first claim";
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", volume.pv}));
  no_pod_is_left();

  // No volume comes of it: the disk has no limits.
  make_claim("limited");
  wait_for_event(story, claim, "ProvisioningFailed");
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  no_pod_is_left();
  CHECK(text_of(volume.disk + "/kept") == "of the first claim");
}

}  // namespace
}  // namespace lpp::testing
