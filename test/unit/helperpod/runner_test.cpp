#include "helperpod/runner.h"

#include <doctest/doctest.h>

#include "fakes/builders.h"
#include "fakes/captured_log.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "fakes/helper_pod_scene.h"

using namespace lpp;             // NOLINT(google-build-using-namespace): a test file
using namespace lpp::helperpod;  // NOLINT(google-build-using-namespace)
using namespace lpp::testing;    // NOLINT(google-build-using-namespace)
using nlohmann::json;

namespace {

constexpr const char* kVolume = "pvc-1";
constexpr const char* kPodName = "helper-pod-create-pvc-1";

Operation create_operation() {
  Operation operation;
  operation.volume_name = kVolume;
  operation.claim = {"default", "a"};
  operation.owner_uid = "1";
  operation.node = "n1";
  operation.base_path = "/data";
  operation.path = "/data/pvc-1_default_a";
  operation.size_bytes = 1024;
  return operation;
}

/// A runner whose API server is scripted; pods reach the store as an informer would bring them.
struct RunnerScene {
  FakeClock clock;
  FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  k8s::StoreWriter<k8s::Pod> pods;
  std::shared_ptr<const Template> pod_template = std::make_shared<const Template>(Template{
      .pod = json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"helper-pod"},
                             "spec":{"containers":[{"name":"helper-pod","image":"busybox"}]}})")});
  HelperPodRunner runner{client,
                         clock,
                         pods,
                         {.provisioner_name = kProvisionerName,
                          .ns = "lps",
                          .service_account = "sa",
                          .config_map = "cm",
                          .helper_image = "busybox"},
                         [this] {
                           return HelperPodRunner::Current{
                               .pod_template = pod_template,
                               .cmd_timeout = std::chrono::seconds(120)};
                         }};

  /// The pod that was posted first, as the API server would show it.
  json posted(const std::string& uid = "pod-uid") {
    for (const auto& request : transport.requests()) {
      if (request.method != "POST") continue;
      json pod = json::parse(request.body);
      pod["metadata"]["uid"] = uid;
      pod["metadata"]["resourceVersion"] = "1";
      pod["status"]["phase"] = "Pending";
      return pod;
    }
    return nullptr;
  }
  /// Answers a POST as the API server does.
  void accept_posts(const std::string& uid = "pod-uid") {
    transport.on("POST", "/pods")
        .always([uid, posts = std::make_shared<int>(0)](const k8s::Request& request) {
          json pod = json::parse(request.body);
          pod["metadata"]["uid"] = ++*posts == 1 ? uid : uid + "-" + std::to_string(*posts);
          return Result<k8s::Response>(k8s::Response{.status = 201, .body = pod.dump()});
        });
  }
  void show(const json& object) {
    auto pod = std::make_shared<const k8s::Pod>(k8s::decode<k8s::Pod>(object).value());
    const auto before = pods.put(pod->meta.key(), pod);
    runner.observe({before, pod});
  }
  void hide(const std::string& name) {
    const auto before = pods.erase({"lps", name});
    runner.observe({before, nullptr});
  }
  Result<bool> clean_up() {
    return runner.clean_up(HelperAction::kCreate, kVolume, Executor::When::kNow);
  }
  json with_state(json pod, const std::string& phase, const json& state) {
    pod["status"]["phase"] = phase;
    pod["status"]["containerStatuses"] = json::array({{{"name", "helper-pod"}, {"state", state}}});
    return pod;
  }
};

Progress must(const Result<Progress>& progress) {
  REQUIRE_MESSAGE(progress.ok(), (progress.ok() ? "" : progress.error().message));
  return *progress;
}

}  // namespace

TEST_CASE(
    "an operation gets one pod, however often it is asked for and however late the cache is") {
  RunnerScene scene;
  scene.accept_posts();
  CHECK(must(ensure(scene.runner, create_operation())).state == Progress::State::kRunning);
  CHECK(must(ensure(scene.runner, create_operation())).started);  // it may have, for all we know
  CHECK(scene.transport.count("POST", "/pods") == 1);
  CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value() == create_operation());

  const json pod = scene.posted();
  scene.show(pod);
  CHECK(must(ensure(scene.runner, create_operation())).started);  // any moment now
  scene.clock.advance(std::chrono::seconds(6));
  CHECK_FALSE(must(ensure(scene.runner, create_operation())).started);
  scene.show(scene.with_state(pod, "Pending", {{"waiting", {{"reason", "ContainerCreating"}}}}));
  CHECK(must(ensure(scene.runner, create_operation())).started);
  scene.show(scene.with_state(pod, "Pending", {{"waiting", {{"reason", "ErrImagePull"}}}}));
  CHECK_FALSE(must(ensure(scene.runner, create_operation())).started);
  scene.show(scene.with_state(pod, "Running", {{"running", json::object()}}));
  CHECK(must(ensure(scene.runner, create_operation())).started);
  scene.show(scene.with_state(pod, "Succeeded", {{"terminated", {{"exitCode", 0}}}}));
  CHECK(must(ensure(scene.runner, create_operation())).state == Progress::State::kSucceeded);
  CHECK(scene.transport.requests().size() == 1);

  scene.transport.on("DELETE", kPodName).reply(200);
  CHECK_FALSE(scene.clean_up().value());
  CHECK_FALSE(scene.clean_up().value());
  CHECK(scene.transport.count("DELETE", "") == 1);
  const auto options = json::parse(scene.transport.requests().back().body);
  CHECK(options["preconditions"]["uid"] == "pod-uid");
  scene.hide(kPodName);
  CHECK(scene.clean_up().value());
  CHECK(scene.runner.size() == 0);
}

TEST_CASE("after a restart the pods that are there say what was under way") {
  RunnerScene first;
  first.accept_posts();
  (void)ensure(first.runner, create_operation());
  RunnerScene restarted;
  restarted.show(
      first.with_state(first.posted(), "Succeeded", {{"terminated", {{"exitCode", 0}}}}));
  CHECK(restarted.runner.recorded(HelperAction::kCreate, kVolume).value() == create_operation());
  CHECK(must(ensure(restarted.runner, create_operation())).state == Progress::State::kSucceeded);
  CHECK(restarted.transport.requests().empty());
}

TEST_CASE("a pod of the same name that the cache does not show is recognised or removed") {
  RunnerScene scene;
  RunnerScene other;
  other.accept_posts("other-uid");
  scene.transport.on("POST", "/pods")
      .reply(409, R"({"kind":"Status","reason":"AlreadyExists","code":409})");
  auto& reads = scene.transport.on("GET", kPodName);
  SUBCASE("ours, for this operation") {
    (void)ensure(other.runner, create_operation());
    reads.reply(200, other.posted("other-uid").dump());
    CHECK(must(ensure(scene.runner, create_operation())).state == Progress::State::kRunning);
    CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value() == create_operation());
    CHECK(scene.transport.count("DELETE", "") == 0);
  }
  SUBCASE("ours, for the same claim in another place: that may have been made") {
    Operation begun = create_operation();
    begun.path = "/elsewhere/pvc-1_default_a";
    (void)ensure(other.runner, begun);
    reads.reply(200, other.posted("other-uid").dump());
    CHECK_FALSE(must(ensure(scene.runner, create_operation())).started);
    CHECK(scene.transport.count("DELETE", "") == 0);
    CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value() == begun);
  }
  SUBCASE("ours, for another owner") {
    Operation stale = create_operation();
    stale.owner_uid = "another";
    (void)ensure(other.runner, stale);
    reads.reply(200, other.posted("other-uid").dump());
    scene.transport.on("DELETE", kPodName).reply(200);
    CHECK_FALSE(must(ensure(scene.runner, create_operation())).started);
    CHECK(scene.transport.count("DELETE", "") == 1);
  }
  SUBCASE("not ours") {
    reads.reply(200, pod(kPodName).ns("lps").json().dump());
    const auto progress = ensure(scene.runner, create_operation());
    REQUIRE_FALSE(progress.ok());
    CHECK(progress.error().is(ErrorCode::kConflict));
    CHECK(progress.error().message.find("was not made by this provisioner") != std::string::npos);
    CHECK(scene.transport.count("DELETE", "") == 0);
  }
  SUBCASE("left by the program before us") {
    nlohmann::json left = pod(kPodName).ns("lps").json();
    left["spec"]["volumes"] =
        nlohmann::json::array({{{"name", "data"}, {"hostPath", {{"path", "/elsewhere/"}}}}});
    left["spec"]["containers"] = nlohmann::json::array(
        {{{"name", "helper-pod"}, {"args", {"-p", "/elsewhere/pvc-1_default_a", "-s", "1"}}}});
    bool deleting = false;
    SUBCASE("still there") {}
    SUBCASE("going already") {
      left["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
      deleting = true;
    }
    reads.reply(200, left.dump());
    scene.transport.on("DELETE", kPodName).reply(200);
    const auto progress = ensure(scene.runner, create_operation());
    REQUIRE_FALSE(progress.ok());
    CHECK(progress.error().is(ErrorCode::kUnavailable));
    CHECK(scene.transport.count("DELETE", "") == (deleting ? 0 : 1));
  }
  SUBCASE("gone again") {
    reads.reply(404);
    CHECK_FALSE(must(ensure(scene.runner, create_operation())).started);
  }
}

TEST_CASE(
    "what stands for another attempt, node, path or owner is removed before a new pod is made") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  scene.show(scene.posted());
  Operation next = create_operation();
  SUBCASE("attempt") { next.attempt = 2; }
  SUBCASE("node") { next.node = "n2"; }
  SUBCASE("path") { next.path = "/data/other"; }
  SUBCASE("owner") { next.owner_uid = "2"; }
  scene.transport.on("DELETE", kPodName).reply(200);
  CHECK_FALSE(must(ensure(scene.runner, next)).started);
  CHECK_FALSE(must(ensure(scene.runner, next)).started);
  CHECK(scene.transport.count("DELETE", "") == 1);
  CHECK(scene.transport.count("POST", "") == 1);
  scene.hide(kPodName);
  (void)ensure(scene.runner, next);
  CHECK(scene.transport.count("POST", "") == 2);
}

TEST_CASE("a failed attempt stays recorded until the next one is") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  scene.show(scene.with_state(
      scene.posted(), "Failed",
      {{"terminated", {{"exitCode", 1}, {"message", "no space"}, {"reason", "Error"}}}}));
  Operation next = create_operation();
  next.attempt = 2;
  auto& removes = scene.transport.on("DELETE", kPodName);
  SUBCASE("the next one cannot be made: nothing is removed") {
    RunnerScene refused;
    refused.show(scene.with_state(scene.posted(), "Failed", {{"terminated", {{"exitCode", 1}}}}));
    refused.transport.on("POST", "/pods").fail(ErrorCode::kUnavailable);
    CHECK_FALSE(ensure(refused.runner, next).ok());
    CHECK(refused.transport.count("DELETE", "") == 0);
    CHECK(refused.runner.recorded(HelperAction::kCreate, kVolume).value() == create_operation());
  }
  SUBCASE("made first, then the old one goes") {
    removes.reply(200);
    (void)ensure(scene.runner, next);
    const auto lines = scene.transport.lines();
    REQUIRE(lines.size() == 3);
    CHECK(lines[1].starts_with("POST"));
    CHECK(lines[2].starts_with("DELETE"));
    CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value() == next);
  }
}

TEST_CASE("a failed pod is reported with the tail of its log, which is fetched once") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  scene.show(scene.with_state(scene.posted(), "Failed",
                              {{"terminated", {{"exitCode", 3}, {"reason", "Error"}}}}));
  auto& logs = scene.transport.on("GET", "/log");
  SUBCASE("with a log") {
    logs.reply(200, "mkdir: no space left", "text/plain");
    const auto progress = must(ensure(scene.runner, create_operation()));
    CHECK(progress.state == Progress::State::kFailed);
    CHECK(progress.message.find("exit code 3") != std::string::npos);
    CHECK(progress.message.find("mkdir: no space left") != std::string::npos);
    CHECK(must(ensure(scene.runner, create_operation())).message == progress.message);
    CHECK(scene.transport.count("GET", "/log") == 1);
  }
  SUBCASE("the log cannot be had") {
    logs.reply(500);
    CHECK(must(ensure(scene.runner, create_operation())).state == Progress::State::kFailed);
  }
}

TEST_CASE("what a failed script said is in the log once, line by line, marked and bounded") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  std::string said;
  for (int i = 1; i <= 30; ++i) said += "line " + std::to_string(i) + "\n";
  bool in_status = false;
  SUBCASE("in the pod's status") { in_status = true; }
  SUBCASE("in the container's log") {}
  json terminated = {{"exitCode", 3}, {"reason", "Error"}};
  if (in_status) {
    terminated["message"] = said;
  } else {
    scene.transport.on("GET", "/log").reply(200, said + "\x1b[2Jevil", "text/plain");
  }
  scene.show(scene.with_state(scene.posted(), "Failed", {{"terminated", terminated}}));
  CapturedLog captured;
  (void)ensure(scene.runner, create_operation());
  (void)ensure(scene.runner, create_operation());
  std::vector<std::string> lines;
  for (const std::string& line : captured.take()) {
    if (line.starts_with("warning helper pod output | ")) lines.push_back(line);
  }
  REQUIRE(lines.size() == 10);
  CHECK(lines[9].starts_with(in_status ? "warning helper pod output | line 30 pod="
                                       : "warning helper pod output | \\x1b[2Jevil pod="));
  for (const std::string& line : lines) CHECK(line.find(" node=n1") != std::string::npos);
}

TEST_CASE("a pod that never starts, or never ends, is late at some point") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  const json pod = scene.posted();
  SUBCASE("never started") {
    scene.show(pod);
    scene.clock.advance(std::chrono::seconds(119));
    CHECK(must(ensure(scene.runner, create_operation())).state == Progress::State::kRunning);
    scene.clock.advance(std::chrono::seconds(2));
    const auto progress = must(ensure(scene.runner, create_operation()));
    CHECK(progress.state == Progress::State::kFailed);
    CHECK(progress.message ==
          "helper pod helper-pod-create-pvc-1 did not start within 120 s: is node n1 up?");
  }
  SUBCASE("stuck for a reason that is known") {
    scene.show(scene.with_state(
        pod, "Pending", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}));
    auto progress = must(ensure(scene.runner, create_operation()));
    CHECK(progress.state == Progress::State::kRunning);
    CHECK(progress.message.find("ErrImagePull") != std::string::npos);
    scene.clock.advance(std::chrono::seconds(121));
    progress = must(ensure(scene.runner, create_operation()));
    CHECK(progress.state == Progress::State::kFailed);
    CHECK(progress.message.find("no such image") != std::string::npos);
  }
  SUBCASE("never ends") {
    scene.show(scene.with_state(pod, "Running", {{"running", json::object()}}));
    scene.clock.advance(std::chrono::seconds(140));
    CHECK(must(ensure(scene.runner, create_operation())).state == Progress::State::kRunning);
    scene.clock.advance(std::chrono::seconds(20));
    CHECK(must(ensure(scene.runner, create_operation())).state == Progress::State::kFailed);
  }
}

TEST_CASE("a pod that hangs in Terminating keeps its operation waiting, and that is said") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  json pod = scene.posted();
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  scene.show(pod);
  const auto silent = must(ensure(scene.runner, create_operation()));
  CHECK(silent.state == Progress::State::kRunning);
  CHECK(silent.message == "");
  scene.clock.advance(std::chrono::seconds(121));
  const auto told = must(ensure(scene.runner, create_operation()));
  CHECK(told.state == Progress::State::kRunning);
  CHECK(told.message ==
        "helper pod lps/helper-pod-create-pvc-1 was deleted but does not go: is node n1 up, and "
        "has the pod finalizers?");
  CHECK(scene.transport.count("POST", "/pods") == 1);
  scene.hide("helper-pod-create-pvc-1");
  CHECK(must(ensure(scene.runner, create_operation())).message == "");
  CHECK(scene.transport.count("POST", "/pods") == 2);
}

TEST_CASE("a delete gets more time than a create") {
  RunnerScene scene;
  scene.accept_posts();
  Operation remove = create_operation();
  remove.action = HelperAction::kDelete;
  (void)ensure(scene.runner, remove);
  CHECK(scene.posted()["spec"]["activeDeadlineSeconds"] == 3600);
  scene.show(scene.with_state(scene.posted(), "Running", {{"running", json::object()}}));
  scene.clock.advance(std::chrono::minutes(50));
  CHECK(must(ensure(scene.runner, remove)).state == Progress::State::kRunning);
}

TEST_CASE("a pod that never started is removed without waiting for its node") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  scene.show(scene.posted());
  auto& removes = scene.transport.on("DELETE", kPodName);
  removes.reply(200);
  (void)scene.clean_up();
  const auto options = json::parse(scene.transport.requests().back().body);
  CHECK(options["gracePeriodSeconds"] == 0);
}

TEST_CASE("a pod that has started since the cache last showed it is not forgotten") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  json pod = scene.posted();
  scene.show(pod);
  auto& removes = scene.transport.on("DELETE", kPodName);
  removes.reply(409, R"({"kind":"Status","reason":"Conflict","code":409})").reply(200);
  CHECK_FALSE(scene.clean_up().value());
  const auto options = json::parse(scene.transport.requests().back().body);
  CHECK(options["preconditions"]["resourceVersion"] == "1");
  CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value() == create_operation());
  pod = scene.with_state(pod, "Running", {{"running", json::object()}});
  scene.show(pod);
  CHECK(must(ensure(scene.runner, create_operation())).started);
}

TEST_CASE("a pod that came and went without being seen is made again") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  auto& reads = scene.transport.on("GET", kPodName);
  scene.clock.advance(std::chrono::seconds(11));
  SUBCASE("it is there, and only the cache is behind") {
    json pod = scene.posted();
    reads.reply(200, pod.dump());
    CHECK(must(ensure(scene.runner, create_operation())).started);
    CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value().has_value());
  }
  SUBCASE("not known") {
    reads.fail(ErrorCode::kTimeout);
    CHECK_FALSE(ensure(scene.runner, create_operation()).ok());
    CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value().has_value());
  }
  SUBCASE("gone") {
    reads.reply(404);
    CHECK_FALSE(must(ensure(scene.runner, create_operation())).started);
    (void)ensure(scene.runner, create_operation());
    CHECK(scene.transport.count("POST", "/pods") == 2);
  }
}

TEST_CASE("removing meets every kind of answer") {
  RunnerScene scene;
  scene.accept_posts();
  (void)ensure(scene.runner, create_operation());
  scene.show(scene.posted());
  auto& removes = scene.transport.on("DELETE", kPodName);
  SUBCASE("already gone") {
    removes.reply(404);
    CHECK(scene.clean_up().value());
  }
  SUBCASE("the name stands for another pod") {
    removes.reply(409, R"({"kind":"Status","reason":"Conflict","code":409})");
    json pod = scene.posted();
    SUBCASE("and ours had started") {
      scene.show(scene.with_state(pod, "Running", {{"running", json::object()}}));
      CHECK(scene.clean_up().value());
    }
    SUBCASE("and ours had not: the cache decides") {
      CHECK_FALSE(scene.clean_up().value());
      scene.hide(pod["metadata"]["name"]);
      CHECK(scene.clean_up().value());
    }
  }
  SUBCASE("no connection: tried again") {
    removes.fail(ErrorCode::kUnavailable).reply(200);
    CHECK_FALSE(scene.clean_up().ok());
    CHECK_FALSE(scene.clean_up().value());
    CHECK(scene.transport.count("DELETE", "") == 2);
  }
}

TEST_CASE("creating meets refusals without keeping a record") {
  RunnerScene scene;
  scene.transport.on("POST", "/pods")
      .reply(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"PodSecurity"})");
  const auto progress = ensure(scene.runner, create_operation());
  REQUIRE_FALSE(progress.ok());
  CHECK(progress.error().is(ErrorCode::kForbidden));
  CHECK(progress.error().message.find("PodSecurity") != std::string::npos);
  CHECK(scene.runner.size() == 0);
}

TEST_CASE("a pod with our label but an unreadable record is left alone") {
  RunnerScene scene;
  scene.show(pod("helper-pod-create-x")
                 .ns("lps")
                 .annotation("local.path.provisioner/operation", "{")
                 .json());
  CHECK(scene.runner.size() == 0);
  CHECK(scene.transport.requests().empty());
}
