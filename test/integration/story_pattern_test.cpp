// SPDX-License-Identifier: Apache-2.0
// Volumes of classes that name their folder by a pattern.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>

#include "support/story_steps.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;

const char* const kBase = "/opt/local-path-provisioner";

unsigned mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

void make_class(StoryBed& story) {
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const std::string way = "{{.PVC.Namespace}}/{{.PVC.Name}}/{{index .PVC.Annotations \"sub\"}}";
  LPP_MUST(story.admin().create(class_object(
      {.name = "named",
       .parameters = {{"pathPattern", way}, {"permPattern", "0750"}, {"nodePath", kBase}}})));
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "folders of a path pattern are made with the volume and go when they are empty") {
  StoryBed story(by);
  story.start();
  make_class(story);
  const auto claim = [&](const std::string& name) {
    return claim_object({.key = {"app", name},
                         .storage_class = "named",
                         .selected_node = "node-1",
                         .annotations = {{"sub", "deep/er"}}});
  };
  LPP_MUST(story.admin().create(claim("one")));
  const auto one = LPP_MUST(story.audit.wait_bound({"app", "one"}));
  LPP_MUST(story.admin().create(claim("two")));
  const auto two = LPP_MUST(story.audit.wait_bound({"app", "two"}));
  CHECK(one.path == std::string(kBase) + "/app/one/deep/er");
  CHECK(mode_of(one.disk) == 0750);
  const fs::path base = story.bed->on_disk("node-1", kBase);
  CHECK(mode_of(base) == 0700);

  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {"app", "one"}));
  LPP_MUST(story.audit.wait_deleted({"app", "one"}, one));
  CHECK_FALSE(fs::exists(base / "app" / "one"));
  CHECK(fs::is_directory(two.disk));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {"app", "two"}));
  LPP_MUST(story.audit.wait_deleted({"app", "two"}, two));
  CHECK(fs::is_directory(base));
  // An agent keeps its records there.
  const auto left = std::distance(fs::directory_iterator(base), {});
  CHECK(left == (fs::exists(base / ".local-path-provisioner") ? 1 : 0));
  CHECK(fs::exists(base / ".local-path-provisioner") == (by == By::kAgents));
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "two claims whose pattern leads to one directory never have it both, however old the cache") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  LPP_MUST(story.admin().create(class_object(
      {.name = "common",
       .parameters = {
           {"pathPattern", "common"}, {"allowUnsafePathPattern", "true"}, {"nodePath", kBase}}})));
  const auto make_claim = [&](const std::string& name) {
    LPP_MUST(story.admin().create(claim_object(
        {.key = {"app", name}, .storage_class = "common", .selected_node = "node-1"})));
  };
  story.installation->proxy().set_hooks({.frame = [](const ApiRequest& request, std::string_view) {
    return request.resource == "persistentvolumes" ? FrameAction::kDrop : FrameAction::kForward;
  }});
  make_claim("one");
  const auto one = LPP_MUST(story.audit.wait_bound({"app", "one"}));
  LPP_MUST(story.audit.wait_clean());
  make_claim("two");
  wait_for_event(story, {"app", "two"}, "ProvisioningFailed", "of volume " + one.pv);

  story.installation->proxy().set_hooks({});
  story.installation->proxy().cut_connections();
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {"app", "one"}));
  const auto two = LPP_MUST(story.audit.wait_bound({"app", "two"}));
  CHECK(two.path == one.path);
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a link that was left on the way to a volume does not lead it out of the base directory") {
  StoryBed story(by);
  story.start();
  make_class(story);
  const fs::path base = story.bed->on_disk("node-1", kBase);
  const fs::path outside = story.bed->on_disk("node-1", "/precious");
  fs::create_directories(outside);
  fs::permissions(outside, fs::perms(0711));
  fs::create_directories(base / "app" / "data");
  fs::create_directory_symlink("/precious", base / "app" / "data" / "link");
  const k8s::ObjectKey key{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = key,
                                              .storage_class = "named",
                                              .selected_node = "node-1",
                                              .annotations = {{"sub", "link/volume"}}})));
  wait_for_event(story, key, "ProvisioningFailed",
                 by == By::kAgents ? "a symbolic link is in the way" : "a symbolic link stands at");
  CHECK(mode_of(outside) == 0711);
  CHECK_FALSE(fs::exists(outside / "volume"));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, key));
}

}  // namespace
}  // namespace lpp::testing
