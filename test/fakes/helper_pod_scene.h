// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "fakes/builders.h"
#include "fakes/empty_cluster.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "helperpod/runner.h"

namespace lpp::testing {

/// A runner over a scripted API server; pods reach the store as an informer would bring them.
struct HelperPodScene {
  using Json = nlohmann::json;
  using State = operation::Progress::State;

  explicit HelperPodScene(std::size_t most_per_node = 0) : most(most_per_node) {}

  /// The API server takes every helper pod; the UID is the name.
  void accept_posts() {
    transport.on("POST", "/pods").always([](const k8s::Request& request) {
      const Json pod = with_uid(Json::parse(request.body));
      return Result<k8s::Response>(k8s::Response{.status = 201, .body = pod.dump()});
    });
  }
  static Json with_uid(Json pod) {
    pod["metadata"]["uid"] = pod["metadata"]["name"];
    return pod;
  }

  /// The pod that was posted last, as the API server would show it.
  Json posted() const {
    const auto requests = transport.requests();
    const auto post = std::find_if(requests.rbegin(), requests.rend(),
                                   [](const auto& request) { return request.method == "POST"; });
    REQUIRE(post != requests.rend());
    Json pod = with_uid(Json::parse(post->body));
    pod["metadata"]["resourceVersion"] = "1";
    pod["status"]["phase"] = "Pending";
    return pod;
  }
  static Json with_state(Json pod, const std::string& phase, const Json& state) {
    pod["status"]["phase"] = phase;
    pod["status"]["containerStatuses"] = Json::array({{{"name", "helper-pod"}, {"state", state}}});
    return pod;
  }
  static Json running(const Json& pod) {
    return with_state(pod, "Running", {{"running", Json::object()}});
  }
  static Json ended(const Json& pod, int exit_code, const std::string& message = {}) {
    Json terminated = {{"exitCode", exit_code}, {"reason", exit_code == 0 ? "Completed" : "Error"}};
    if (!message.empty()) terminated["message"] = message;
    return with_state(pod, exit_code == 0 ? "Succeeded" : "Failed", {{"terminated", terminated}});
  }
  static Json leaving(Json pod) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    return pod;
  }

  void show(const Json& object) {
    const auto pod = std::make_shared<const k8s::Pod>(k8s::decode<k8s::Pod>(object).value());
    const auto before = pods.put(pod->meta.key(), pod);
    runner.observe({before, pod});
  }
  void hide(const std::string& name) {
    const auto before = pods.erase({"lps", name});
    runner.observe({before, nullptr});
  }

  operation::Executor::Start start(const operation::Operation& operation) {
    const auto started = runner.start(operation);
    REQUIRE_MESSAGE(started.ok(), (started.ok() ? "" : started.error().message));
    return *started;
  }
  /// Starts the operation, and the cache shows that its helper pod has done its work.
  void run(const operation::Operation& operation) {
    CHECK(start(operation) == operation::Executor::Start::kRecorded);
    show(ended(posted(), 0));
  }
  /// The only thing recorded for the volume.
  operation::Recorded only(const std::string& volume) {
    auto all = runner.recorded(volume);
    REQUIRE(all.size() == 1);
    return all.front();
  }
  State state_of(const std::string& volume) { return only(volume).progress.state; }
  Json last_body() const { return Json::parse(transport.requests().back().body); }

  /// Wakes are noted from now on; the sweeper finds no quiet moment.
  void begin() {
    runner.begin({.wake =
                      [this](const operation::Operation& operation) {
                        MutexLock lock(mutex);
                        woken.push_back(operation.volume_name);
                      },
                  .is_quiet = [] { return false; }});
  }
  std::vector<std::string> take_woken() {
    MutexLock lock(mutex);
    return std::exchange(woken, {});
  }

  const std::size_t most;
  FakeClock clock;
  FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  k8s::StoreWriter<k8s::Pod> pods;
  EmptyCluster cluster;
  operation::PathLedger ledger{cluster};
  Mutex mutex;
  std::vector<std::string> woken;
  std::string teardown_command;
  std::shared_ptr<const helperpod::Template> pod_template =
      std::make_shared<const helperpod::Template>(helperpod::Template{
          .pod = {
              {"spec",
               {{"containers", Json::array({{{"name", "helper-pod"}, {"image", "busybox"}}})}}}}});
  helperpod::HelperPodRunner runner{client,
                                    clock,
                                    pods,
                                    ledger,
                                    {.provisioner_name = kProvisionerName,
                                     .ns = "lps",
                                     .service_account = "sa",
                                     .config_map = "cm",
                                     .helper_image = "busybox",
                                     .most_per_node = most},
                                    [this] {
                                      return helperpod::HelperPodRunner::Current{
                                          .pod_template = pod_template,
                                          .cmd_timeout = std::chrono::seconds(120),
                                          .teardown_command = teardown_command};
                                    }};
};

}  // namespace lpp::testing
