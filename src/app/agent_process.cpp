// SPDX-License-Identifier: Apache-2.0
#include "app/agent_process.h"

#include <memory>
#include <stop_token>
#include <thread>

#include "agent/agent.h"
#include "agent/agent_client.h"
#include "agent/controller_addresses.h"
#include "app/health_server.h"
#include "app/metrics.h"
#include "app/metrics_own_agent.h"
#include "app/signals.h"
#include "app/version.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"

namespace lpp::app {

namespace {

/// Whether there is a session is no reason to restart an agent: it is ready, or it is not.
HealthEndpoints endpoints(agent::Agent& agent, const agent::AgentClient& client) {
  HealthEndpoints out;
  out.ready.push_back({.name = "session", .check = [&client]() -> Result<void> {
                         if (client.connected()) return {};
                         return Error{.code = ErrorCode::kUnavailable,
                                      .message = "there is no session with the controller"};
                       }});
  out.pages.push_back({.path = "/metrics",
                       .content_type = kMetricsType,
                       .render = [&agent, &client] { return own_agent_metrics(agent, client); }});
  return out;
}

}  // namespace

int run_agent_until_signal(const AgentOptions& options, node::Kernel& kernel) {
  log::set_up(options.log_level, options.log_format);
  log::info("local-path-provisioner {} agent{}", version(),
            options.node_name.empty() ? "" : " node=" + options.node_name);
  SystemClock clock;
  const auto controllers = agent::ControllerAddresses::create(
      {.urls = options.controllers,
       .ca_file = options.ca_file,
       .token_file = options.token_file,
       .user_agent = "local-path-provisioner-agent/" + std::string(version())},
      clock);
  if (!controllers.ok()) {
    log::error("cannot start: {}", controllers.error().message);
    return 1;
  }
  agent::Agent::Options settings{.root = options.root};
  settings.tells_usage = options.usage_interval.count() > 0;
  if (settings.tells_usage) settings.look_every = options.usage_interval;
  settings.sweep_after = options.sweep_after;
  settings.at_rest = unmap_idle_code;
  agent::Agent agent(kernel, clock, std::move(settings));
  agent::AgentClient client(
      agent, clock,
      {.find = [&](const std::stop_token& stop) { return (*controllers)->find(stop); },
       .program = std::string(version())});
  std::unique_ptr<HealthServer> health;
  if (options.health_port != 0) {
    auto started =
        HealthServer::start({.port = options.health_port, .address = options.health_address},
                            endpoints(agent, client), clock);
    if (started.ok()) {
      health = *std::move(started);
    } else {
      // The work does not depend on it; the probes will tell.
      log::error("health server: {}", started.error().message);
    }
  }
  agent.start();
  std::jthread session([&client](const std::stop_token& stop) {
    set_thread_name("session");
    client.run(stop);
  });
  const log::Level usual = options.log_level;
  wait_for_signal({}, [usual] { toggle_debug_log(usual); });
  // In this order, so that what ends now is still told.
  agent.stop();
  session.request_stop();
  session.join();
  if (health) health->stop();
  log::info("stopped");
  return 0;
}

}  // namespace lpp::app
