// Operations that are under way at the same time: never on directories that overlap.

#include <doctest/doctest.h>

#include "fakes/helper_pod_scene.h"

using namespace lpp;             // NOLINT(google-build-using-namespace): a test file
using namespace lpp::helperpod;  // NOLINT(google-build-using-namespace)
using namespace lpp::testing;    // NOLINT(google-build-using-namespace)

namespace {

Operation make(const std::string& volume, const std::string& node, const std::string& path) {
  Operation operation;
  operation.volume_name = volume;
  operation.claim = {"default", volume};
  operation.owner_uid = "uid-" + volume;
  operation.node = node;
  operation.base_path = "/data";
  operation.path = path;
  return operation;
}

Operation shared(Operation operation) {
  operation.shared = true;
  return operation;
}

}  // namespace

TEST_CASE("a directory that overlaps one being made or removed waits, on the nodes that see both") {
  struct Row {
    const char* what;
    Operation first;
    Operation second;
    bool waits;
  };
  const auto on = [](const char* node, const char* path) { return make("b", node, path); };
  const Operation first = make("a", "n1", "/data/x/y");
  for (const Row& row : std::vector<Row>{
           {"the same", first, on("n1", "/data/x/y"), true},
           {"inside", first, on("n1", "/data/x/y/z"), true},
           {"around", first, on("n1", "/data/x"), true},
           {"beside", first, on("n1", "/data/x/yz"), false},
           {"on another node", first, on("n2", "/data/x/y"), false},
           {"anywhere", first, on("", "/data/x/y"), true},
           {"shared, on another node", shared(first), shared(on("n2", "/data/x/y")), true},
           {"shared, beside", shared(first), shared(on("n2", "/data/x/z")), false},
       }) {
    CAPTURE(row.what);
    HelperPodScene scene;
    REQUIRE(ensure(scene.runner, row.first).ok());
    const auto second = ensure(scene.runner, row.second);
    CHECK(second.ok() != row.waits);
    CHECK(scene.transport.count("POST", "/pods") == (row.waits ? 1 : 2));
    if (row.waits) {
      CHECK(second.error().is(ErrorCode::kConflict));
      CHECK(second.error().message.find("where volume a is being made or removed") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a removed directory is in nobody's way, even while its helper pod waits to be removed") {
  for (const HelperAction action : {HelperAction::kCreate, HelperAction::kDelete}) {
    CAPTURE(to_string(action));
    HelperPodScene scene;
    Operation first = make("a", "n1", "/data/x");
    first.action = action;
    scene.run(first);
    REQUIRE(scene.runner.clean_up(action, "a", Executor::When::kWhenQuiet).value());
    const auto second = ensure(scene.runner, make("b", "n1", "/data/x"));
    CHECK(second.ok() == (action == HelperAction::kDelete));
  }
}

TEST_CASE("an operation is in the way of others until its helper pod is gone") {
  for (const HelperAction action : {HelperAction::kCreate, HelperAction::kDelete}) {
    for (const bool settled : {false, true}) {
      CAPTURE(to_string(action));
      CAPTURE(settled);
      HelperPodScene scene;
      Operation first = make("a", "n1", "/data/x");
      first.action = action;
      scene.run(first);
      if (settled) {  // but it could not be removed when it was quiet
        REQUIRE(scene.runner.clean_up(action, "a", Executor::When::kWhenQuiet).value());
        scene.transport.on("DELETE", "/pods").reply(500);
        REQUIRE(scene.runner.remove_settled() != nullptr);
      }
      CHECK_FALSE(ensure(scene.runner, make("b", "n1", "/data/x/y")).ok());
      const auto pod = scene.pods.list().front();
      scene.pods.erase(pod->meta.key());
      CHECK(scene.runner.observe({pod, nullptr}) != nullptr);
      CHECK(ensure(scene.runner, make("b", "n1", "/data/x/y")).ok());
    }
  }
}
