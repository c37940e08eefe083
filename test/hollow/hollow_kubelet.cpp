// SPDX-License-Identifier: Apache-2.0
// lpp-hollow-kubelet: nodes that run nothing, for load tests. See usage().

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/log.h"
#include "harness/ending_signals.h"
#include "hollow/hollow_nodes.h"
#include "hollow/hollow_options.h"
#include "hollow/hollow_pods.h"
#include "k8s/httplib_transport.h"

namespace lpp::hollow {
namespace {

Result<void> run(const Options& options) {
  SystemClock clock;
  LPP_ASSIGN_OR_RETURN(const auto config, k8s::load_kubeconfig(options.kubeconfig), "start");
  LPP_ASSIGN_OR_RETURN(const auto transport, k8s::make_httplib_transport(config, clock), "start");
  k8s::ApiClient client(*transport, clock, {});
  Nodes nodes(client, clock, options);
  LPP_RETURN_IF_ERROR(nodes.add(), "add nodes");
  Pods pods(client, clock, options);
  pods.start();
  std::jthread heartbeat([&](const std::stop_token& stop) { nodes.run(stop); });

  const sigset_t signals = testing::ending_signals();
  const timespec moment{.tv_sec = 0, .tv_nsec = 20'000'000};
  int signal = 0;
  while (signal <= 0 && !pods.has_synced()) signal = ::sigtimedwait(&signals, nullptr, &moment);
  if (signal <= 0) {
    std::puts("ready");
    std::fflush(stdout);
    ::sigwait(&signals, &signal);
  }
  pods.stop();
  heartbeat.request_stop();
  heartbeat.join();
  if (options.remove_nodes) nodes.remove();
  const auto& stats = pods.stats();
  std::printf(
      "pods seen %llu, succeeded %llu, failed %llu, removed %llu, errors %llu\n",
      static_cast<unsigned long long>(stats.seen), static_cast<unsigned long long>(stats.ended),
      static_cast<unsigned long long>(stats.failed), static_cast<unsigned long long>(stats.removed),
      static_cast<unsigned long long>(stats.errors));
  return {};
}

}  // namespace
}  // namespace lpp::hollow

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::signal(SIGPIPE, SIG_IGN);
  lpp::testing::block_ending_signals();
  lpp::log::set_up(lpp::log::Level::kInfo);
  const auto options = lpp::hollow::parse_options(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "%s\n\n%s", options.error().message.c_str(),
                 std::string(lpp::hollow::usage()).c_str());
    return 2;
  }
  if (const auto done = lpp::hollow::run(*options); !done.ok()) {
    lpp::log::error("{}", done.error().message);
    return 1;
  }
  return 0;
}
