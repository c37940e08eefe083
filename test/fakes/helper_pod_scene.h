#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "fakes/builders.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "helperpod/runner.h"

namespace lpp::testing {

/// One step of an operation that is started if it is not recorded.
inline Result<helperpod::Progress> ensure(helperpod::Executor& executor,
                                          const helperpod::Operation& operation) {
  auto progress = executor.advance(operation, false);
  if (!progress.ok()) return std::move(progress).error();
  return progress->value();
}

/// A runner whose API server takes every helper pod.
struct HelperPodScene {
  HelperPodScene() {
    transport.on("POST", "/pods").always([](const k8s::Request& request) {
      const nlohmann::json pod = with_uid(nlohmann::json::parse(request.body));
      return Result<k8s::Response>(k8s::Response{.status = 201, .body = pod.dump()});
    });
  }

  /// Runs the operation, and the cache shows that its helper pod has done its work.
  void run(const helperpod::Operation& operation) {
    REQUIRE(ensure(runner, operation).ok());
    const auto requests = transport.requests();
    const auto posted = std::find_if(requests.rbegin(), requests.rend(),
                                     [](const auto& request) { return request.method == "POST"; });
    nlohmann::json object = with_uid(nlohmann::json::parse(posted->body));
    object["status"]["phase"] = "Succeeded";
    const auto pod = std::make_shared<const k8s::Pod>(k8s::decode<k8s::Pod>(object).value());
    pods.put(pod->meta.key(), pod);
    runner.observe({nullptr, pod});
  }

  static nlohmann::json with_uid(nlohmann::json pod) {
    pod["metadata"]["uid"] = pod["metadata"]["name"];
    return pod;
  }

  FakeClock clock;
  FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  k8s::StoreWriter<k8s::Pod> pods;
  helperpod::HelperPodRunner runner{
      client, clock, pods, {.provisioner_name = kProvisionerName, .ns = "lps"}, [] {
        const nlohmann::json containers = nlohmann::json::array({nlohmann::json::object()});
        return helperpod::HelperPodRunner::Current{
            .pod_template = std::make_shared<const helperpod::Template>(
                helperpod::Template{.pod = {{"spec", {{"containers", containers}}}}}),
            .cmd_timeout = std::chrono::seconds(120)};
      }};
};

}  // namespace lpp::testing
