// SPDX-License-Identifier: Apache-2.0
#include "bench/load.h"

#include <algorithm>

#include "base/strings.h"
#include "bench/observer.h"
#include "bench/parallel.h"
#include "bench/process_usage.h"
#include "harness/kinds.h"
#include "harness/objects.h"

namespace lpp::bench {

namespace {

using nlohmann::json;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::set<std::string> load_flags() {
  std::set<std::string> flags = measurement_flags();
  flags.merge(std::set<std::string>{"kubeconfig", "namespace", "helper-namespace", "class", "nodes",
                                    "node-prefix", "node", "mode", "claims", "rounds",
                                    "connections", "limit-s", "name", "beside-others"});
  return flags;
}

Result<LoadOptions> load_options(const Arguments& arguments) {
  LoadOptions options;
  options.ns = arguments.text("namespace", options.ns);
  options.helper_ns = arguments.text("helper-namespace", options.helper_ns);
  options.storage_class = arguments.text("class", options.storage_class);
  options.name = arguments.text("name", options.name);
  options.nodes = arguments.all("node");
  const std::size_t by_number = options.nodes.empty() ? 1 : 0;
  LPP_ASSIGN_OR_RETURN(const auto nodes, arguments.number("nodes", by_number), "load");
  for (std::size_t i = 0; i < nodes; ++i) {
    options.nodes.push_back(arguments.text("node-prefix", "hollow-") + std::to_string(i));
  }
  const std::string mode = arguments.text("mode", "direct");
  if (mode != "direct" && mode != "pods") return invalid("--mode: direct or pods, not " + mode);
  options.through_pods = mode == "pods";
  options.beside_others = arguments.text("beside-others", "false") == "true";
  LPP_ASSIGN_OR_RETURN(options.claims, arguments.number("claims", options.claims), "load");
  LPP_ASSIGN_OR_RETURN(options.rounds, arguments.number("rounds", options.rounds), "load");
  LPP_ASSIGN_OR_RETURN(options.connections, arguments.number("connections", options.connections),
                       "load");
  LPP_ASSIGN_OR_RETURN(const auto limit, arguments.number("limit-s", 300), "load");
  options.limit = std::chrono::seconds(limit);
  LPP_ASSIGN_OR_RETURN(options.things, measured_things(arguments), "load");
  if (options.claims == 0 || options.rounds == 0 || options.connections == 0 ||
      options.nodes.empty()) {
    return invalid("--claims, --rounds, --connections and --nodes must be at least 1");
  }
  return options;
}

std::string Load::claim_name(std::size_t index) const {
  return options_.name + "-" + std::to_string(round_) + "-" + std::to_string(index);
}

Result<void> Load::prepare() {
  const auto made =
      client_.create(testing::kNamespaces, {}, testing::namespace_object(options_.ns));
  if (!made.ok() && !made.error().is(ErrorCode::kAlreadyExists)) {
    return made.error().wrap("namespace");
  }
  if (!options_.through_pods) return {};
  // Pods are refused until the namespace has its ServiceAccount.
  constexpr auto kPatience = std::chrono::milliseconds(50);
  for (int tries = 0; tries < 200; ++tries) {
    if (client_.get(testing::kServiceAccounts, {options_.ns, "default"}).ok()) return {};
    clock_.sleep_for(kPatience, {});
  }
  return Error{.code = ErrorCode::kTimeout, .message = "no default ServiceAccount"};
}

Result<void> Load::create(std::size_t index) {
  const std::string name = claim_name(index);
  const std::string node =
      options_.through_pods ? "" : options_.nodes[index % options_.nodes.size()];
  const auto claim = client_.create(k8s::kPersistentVolumeClaims, options_.ns,
                                    testing::claim_object({.key = {options_.ns, name},
                                                           .storage_class = options_.storage_class,
                                                           .selected_node = node}));
  if (!claim.ok()) return claim.error().wrap("claim");
  if (!options_.through_pods) return {};
  const auto pod = client_.create(k8s::kPods, options_.ns,
                                  testing::pod_object({.key = {options_.ns, name},
                                                       .claim = name,
                                                       .script = "sleep 1000000",
                                                       .restart_policy = "Always"}));
  if (!pod.ok()) return pod.error().wrap("pod");
  return {};
}

Result<void> Load::remove(std::size_t index) {
  const k8s::ObjectKey key{options_.ns, claim_name(index)};
  if (options_.through_pods) {
    LPP_RETURN_IF_ERROR(client_.remove(k8s::kPods, key, {.grace_period_seconds = 0}), "pod");
  }
  return client_.remove(k8s::kPersistentVolumeClaims, key);
}

Result<json> Load::phase(Observer& observer, Action action, bool creates) {
  Measurement measurement(clock_, options_.things);
  const auto began = clock_.now();
  std::vector<TimePoint> asked(options_.claims);
  LPP_RETURN_IF_ERROR(in_parallel(options_.claims, options_.connections,
                                  [&](std::size_t i) {
                                    asked[i] = clock_.now();
                                    return (this->*action)(i);
                                  }),
                      creates ? "create" : "delete");
  const auto deadline = began + options_.limit;
  const bool all =
      creates ? observer.wait_bound(options_.claims, deadline) : observer.wait_gone(deadline);
  auto last = began;
  std::vector<double> latencies;
  for (std::size_t i = 0; i < options_.claims; ++i) {
    const Observer::Times times = observer.times(claim_name(i));
    const auto& reached = creates ? times.bound : times.volume_gone;
    if (!reached) continue;
    last = std::max(last, *reached);
    latencies.push_back(seconds(*reached - asked[i]));
  }
  if (!all) last = clock_.now();
  bool tidy = true;
  if (!options_.beside_others) {
    tidy = observer.wait_no_helper_pods(clock_.now() + std::chrono::seconds(20));
    measurement.wait_quiet();
  }

  const double took = seconds(last - began);
  const auto number = static_cast<double>(options_.claims);
  json result = measurement.result();
  result["complete"] = all && tidy;
  result["reached"] = latencies.size();
  result["seconds"] = took;
  result["per_second"] = static_cast<double>(latencies.size()) / took;
  result["latency_s"] = distribution(std::move(latencies));
  result["requests_per_volume"] = result["requests"]["sum"].get<double>() / number;
  return result;
}

Result<json> Load::round(std::size_t number) {
  round_ = number;
  Observer observer(client_, clock_, options_.ns, options_.helper_ns);
  observer.start();
  json result;
  LPP_ASSIGN_OR_RETURN(result["create"], phase(observer, &Load::create, true), "round");
  LPP_ASSIGN_OR_RETURN(result["delete"], phase(observer, &Load::remove, false), "round");
  return result;
}

Result<void> Load::only_create() {
  LPP_RETURN_IF_ERROR(prepare(), "claims");
  return in_parallel(options_.claims, options_.connections,
                     [this](std::size_t i) { return create(i); });
}

Result<json> Load::run() {
  LPP_RETURN_IF_ERROR(prepare(), "load");
  json result = {{"claims", options_.claims},
                 {"nodes", options_.nodes.size()},
                 {"mode", options_.through_pods ? "pods" : "direct"},
                 {"rounds", json::array()}};
  if (const auto it = options_.things.processes.find("daemon");
      it != options_.things.processes.end()) {
    result["before_kib"] = memory_kib(it->second);
  }
  for (std::size_t i = 0; i < options_.rounds; ++i) {
    LPP_ASSIGN_OR_RETURN(auto one, round(i), "round " + std::to_string(i));
    result["rounds"].push_back(std::move(one));
  }
  return result;
}

}  // namespace lpp::bench
