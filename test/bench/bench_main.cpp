// SPDX-License-Identifier: Apache-2.0
// lpp-bench: load, and what it is compared with. See kUsage.

#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/log.h"
#include "bench/arguments.h"
#include "bench/failure.h"
#include "bench/fill.h"
#include "bench/floor.h"
#include "bench/load.h"
#include "bench/sample.h"
#include "bench/startup.h"
#include "harness/ending_signals.h"
#include "k8s/httplib_transport.h"

namespace lpp::bench {
namespace {

constexpr const char* kUsage = R"(lpp-bench COMMAND --kubeconfig FILE [flags]

  load     create claims, wait until they are Bound, delete them, wait until their volumes are gone
             --claims N (100)  --rounds N (1)  --mode direct|pods (direct)  --class NAME
             --nodes N (1)  --node-prefix TEXT (hollow-)  or  --node NAME ...
             --connections N (16)  --limit-s N (300)  --name PREFIX (claim)
             --beside-others true|false (false)    do not wait until nothing more happens
             --namespace NAME (bench)  --helper-namespace NAME (local-path-storage)
  claims   create the claims and end; flags of load
  failure  one claim whose helper pod fails: when the Event was there; flags of load
  fill     claims and volumes, Bound, without provisioner and controllers
             --claims N (1000)  --first N (0)  --class NAME  --provisioner NAME  --node NAME
             --namespace NAME (bench-fill)  --connections N (32)
  sample   measure what runs, for a while or until it watches again
             --seconds N (60)  --until-watching true|false (false)
  startup  start a provisioner some times
             --program FILE  --arg TEXT ...  --env NAME=VALUE ...  --rounds N (3)
  floor    the least API calls that provision and delete, until SIGTERM; prints "ready"
             --connections N (32)  --base PATH  --image NAME  --class NAME
             --helper-namespace NAME  --pod-template FILE    helperPod.yaml: pods as the daemon's
             --work pods|volumes|bound (pods)    volumes: no pods, one call for each that is made
             or removed; bound: with finalizer and what binds it, as this provisioner with agents

load, sample and startup also take what they measure; --kubeconfig is not for sample and startup:
  --audit-log FILE --audit-user NAME   requests of the provisioner
  --process NAME=PID ...               processor time; of "daemon" memory too
  --log-file FILE                      of the provisioner
Results are JSON on standard output.
)";

/// What a command needs, made from its flags.
struct Session {
  SystemClock clock{};
  std::unique_ptr<k8s::Transport> transport{};
  std::unique_ptr<k8s::ApiClient> client{};
};

Result<void> connect(Session& session, const Arguments& arguments) {
  LPP_ASSIGN_OR_RETURN(const auto file, arguments.required("kubeconfig"), "lpp-bench");
  LPP_ASSIGN_OR_RETURN(const auto config, k8s::load_kubeconfig(file), "lpp-bench");
  LPP_ASSIGN_OR_RETURN(session.transport, k8s::make_httplib_transport(config, session.clock),
                       "lpp-bench");
  session.client = std::make_unique<k8s::ApiClient>(*session.transport, session.clock,
                                                    k8s::ApiClient::Options{});
  return {};
}

Result<void> print(const nlohmann::json& result) {
  std::cout << result.dump() << '\n';
  return {};
}

using Words = std::vector<std::string>;

Result<void> run_with_load_flags(const std::string& command, const Words& words) {
  LPP_ASSIGN_OR_RETURN(const auto arguments, Arguments::parse(words, load_flags()), command);
  LPP_ASSIGN_OR_RETURN(auto options, load_options(arguments), command);
  Session session;
  LPP_RETURN_IF_ERROR(connect(session, arguments), command);
  if (command == "failure") {
    options.claims = 1;
    LPP_ASSIGN_OR_RETURN(const auto result,
                         measure_failure(*session.client, session.clock, options), command);
    return print(result);
  }
  Load load(*session.client, session.clock, std::move(options));
  if (command == "claims") return load.only_create();
  LPP_ASSIGN_OR_RETURN(const auto result, load.run(), command);
  return print(result);
}

Result<void> run_fill(const Words& words) {
  LPP_ASSIGN_OR_RETURN(const auto arguments, Arguments::parse(words, fill_flags()), "fill");
  LPP_ASSIGN_OR_RETURN(const auto options, fill_options(arguments), "fill");
  Session session;
  LPP_RETURN_IF_ERROR(connect(session, arguments), "fill");
  return fill(*session.client, options);
}

Result<void> run_sample(const Words& words) {
  LPP_ASSIGN_OR_RETURN(const auto arguments, Arguments::parse(words, sample_flags()), "sample");
  LPP_ASSIGN_OR_RETURN(const auto options, sample_options(arguments), "sample");
  SystemClock clock;
  return print(sample(clock, options));
}

Result<void> run_startup(const Words& words) {
  LPP_ASSIGN_OR_RETURN(const auto arguments, Arguments::parse(words, startup_flags()), "startup");
  LPP_ASSIGN_OR_RETURN(const auto options, startup_options(arguments), "startup");
  SystemClock clock;
  LPP_ASSIGN_OR_RETURN(const auto result, measure_startup(clock, options), "startup");
  return print(result);
}

Result<void> run_floor(const Words& words) {
  testing::block_ending_signals();
  LPP_ASSIGN_OR_RETURN(const auto arguments, Arguments::parse(words, floor_flags()), "floor");
  LPP_ASSIGN_OR_RETURN(auto options, floor_options(arguments), "floor");
  Session session;
  LPP_RETURN_IF_ERROR(connect(session, arguments), "floor");
  Floor floor(*session.client, session.clock, std::move(options));
  floor.start();
  const sigset_t signals = testing::ending_signals();
  const timespec moment{.tv_sec = 0, .tv_nsec = 20'000'000};
  int signal = 0;
  while (signal <= 0 && !floor.has_synced()) signal = ::sigtimedwait(&signals, nullptr, &moment);
  if (signal > 0) return {};
  std::puts("ready");
  std::fflush(stdout);
  ::sigwait(&signals, &signal);
  return {};
}

Result<void> run(const std::string& command, const Words& words) {
  if (command == "load" || command == "claims" || command == "failure") {
    return run_with_load_flags(command, words);
  }
  if (command == "fill") return run_fill(words);
  if (command == "sample") return run_sample(words);
  if (command == "startup") return run_startup(words);
  if (command == "floor") return run_floor(words);
  return invalid("unknown command '" + command + "'\n\n" + kUsage);
}

}  // namespace
}  // namespace lpp::bench

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string command = argc > 1 ? argv[1] : "";
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  lpp::log::set_up(lpp::log::Level::kInfo);
  const auto done = lpp::bench::run(command, words);
  if (done.ok()) return 0;
  std::fprintf(stderr, "lpp-bench: %s\n", done.error().message.c_str());
  return done.error().is(lpp::ErrorCode::kInvalid) ? 2 : 1;
}
