// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/metrics_own_agent.h"
#include "fakes/skipping_clock.h"
#include "unit/agent/agent_bed.h"
#include "unit/agent/scripted_way.h"

namespace lpp::testing {

/// An agent to whom everything has happened once, so that every metric has a series.
class OwnAgentFixture {
 public:
  OwnAgentFixture() {
    const auto welcome = [&](const std::string& session) {
      return encode(agent::Welcome{.session = session, .base_paths = {base.path(), "/nowhere"}});
    };
    agent::Order make = start(operation_of(base, operation::Kind::kMake));
    make.number = 1;
    const auto on = [&](std::string_view target) -> auto& {
      return controller_.on("POST", std::string(target));
    };
    on(agent::kHelloTarget)
        .fail(ErrorCode::kTimeout)
        .reply(200, welcome("s-1"))
        .reply(200, welcome("s-2"));
    on(agent::kPollTarget).reply(200, encode(agent::Orders{.orders = {make}})).reply(410).hang();
    on(agent::kTellTarget).always([](const auto&) {
      return k8s::Response{.status = 200, .body = "{}"};
    });
    agent_.start();
    thread_ = std::jthread([this](const std::stop_token& stop) { client_.run(stop); });
    REQUIRE(eventually([&] {
      return client_.stats().begun == 2 && client_.connected() && has_worked() &&
             agent_.view().bases.size() == 2;
    }));
  }
  std::string text() { return app::own_agent_metrics(agent_, client_); }

  BaseFolder base;

 private:
  /// How long it took is counted before it runs no more.
  bool has_worked() const {
    if (agent_.stats().durations.entries().empty()) return false;
    return agent_.stats().running.entries().front()->second == 0;
  }

  node::Kernel kernel_;
  FakeClock agent_clock_;
  SkippingClock clock_;
  FakeTransport controller_;
  agent::Agent agent_{kernel_, agent_clock_, {}};
  agent::AgentClient client_{agent_,
                             clock_,
                             {.find =
                                  [this](const std::stop_token&) {
                                    std::vector<agent::Way> ways;
                                    ways.push_back(way_to("controller", controller_));
                                    return Result<std::vector<agent::Way>>(std::move(ways));
                                  },
                              .program = "test"}};
  std::jthread thread_;
};

}  // namespace lpp::testing
