// SPDX-License-Identifier: Apache-2.0
// Helper pods that refuse to make a directory where they are.

#include <doctest/doctest.h>

#include <string>

#include "fakes/helper_pod_scene.h"
#include "helperpod/manifest.h"

namespace lpp::helperpod {

using testing::HelperPodScene;

TEST_CASE("a make that was refused for its disk may be served elsewhere, and says why") {
  HelperPodScene scene;
  scene.accept_posts();
  scene.begin();
  operation::Operation make{.volume_name = "pvc-1",
                            .owner_uid = "1",
                            .node = "n1",
                            .base_path = "/data",
                            .path = "/data/pvc-1",
                            .disk = "disk-1"};
  std::string said = "volumes are on disk disk-1\ndirectory: absent\n";
  int code = kUnfitExitCode;
  bool refused = true;
  SUBCASE("our script looked, and another one was there") {}
  SUBCASE("a script ended so for reasons of its own") {
    said = "no such tool\n";
    refused = false;
  }
  SUBCASE("it failed otherwise") {
    code = 1;
    refused = false;
  }
  SUBCASE("no disk was asked for") {
    make.disk.clear();
    refused = false;
  }
  scene.start(make);
  scene.show(HelperPodScene::ended(scene.posted(), code, said));
  const auto progress = scene.only("pvc-1").progress;
  CHECK(progress.state == operation::Progress::State::kFailed);
  CHECK(progress.unfit == refused);
  CHECK((progress.reason == "OtherDisk") == refused);
}

}  // namespace lpp::helperpod
