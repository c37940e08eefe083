// SPDX-License-Identifier: Apache-2.0
#include "chaos/chaos_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/kinds.h"
#include "harness/objects.h"
#include "harness/sanitizer_report.h"

namespace lpp::testing {

namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::size_t kStepsToShow = 60;

std::vector<std::string> all_bases(TestBed& bed) {
  std::vector<std::string> bases = bed.base_paths();
  bases.push_back(bases.front() + "-third");
  bases.push_back(bed.shared_path());
  return bases;
}

}  // namespace

ChaosRun::ChaosRun(TestBed& bed, ClusterFaults& cluster, ChaosOptions options)
    : bed_(bed),
      cluster_(cluster),
      options_(std::move(options)),
      schedule_(options_.seed,
                options_.agents.empty() ? Schedule::Agents::kNone : Schedule::Agents::kSome),
      promises_(bed, model_, ledger_, bed.nodes(), all_bases(bed), options_.agents),
      moods_(options_.seed + 1'000'000),
      nodes_(bed.nodes()) {}

ChaosRun::~ChaosRun() {
  tenants_.reset();
  // A bed that outlives a run that failed: the scripts are everybody's.
  for (const auto& [key, text] : original_data_) static_cast<void>(set_data(key, text));
  for (const Replica& replica : replicas_) {
    if (replica.installation != nullptr) replica.installation->proxy().set_hooks({});
  }
  if (prepared_ && !over_) clean_up();
}

Result<void> ChaosRun::prepare() {
  // Short, so that much happens; the rules between them are those of the real ones.
  const std::vector<std::string> args = {"--leader-elect-lease-duration=3s",
                                         "--leader-elect-renew-deadline=2s",
                                         "--leader-elect-retry-period=1s"};
  prepared_ = true;
  LPP_RETURN_IF_ERROR(bed_.admin().apply(namespace_object(kChaosNamespace)), "prepare");
  for (const ChaosClass& one : chaos_classes())
    LPP_RETURN_IF_ERROR(make_class(one.name), "prepare");
  LPP_ASSIGN_OR_RETURN(const json map,
                       bed_.admin().get(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"}),
                       "prepare");
  for (const auto& [key, text] : map["data"].items()) original_data_[key] = text;
  if (!options_.agents.empty()) {
    LPP_ASSIGN_OR_RETURN(agents_,
                         AgentFleet::create(bed_, {.program = options_.daemon,
                                                   .folder = options_.folder,
                                                   .machines = options_.agents,
                                                   .replicas = options_.replicas}),
                         "prepare");
  }
  for (std::size_t i = 0; i < options_.replicas; ++i) {
    Replica replica;
    auto own_args = args;
    if (agents_ != nullptr) {
      for (auto& one : agents_->daemon_args(i)) own_args.push_back(std::move(one));
    }
    const std::string folder = fmt::format("{}/replica-{}", options_.folder, i);
    std::filesystem::create_directories(folder);
    LPP_ASSIGN_OR_RETURN(
        replica.installation,
        Installation::create(
            bed_, {.daemon = options_.daemon, .folder = folder, .extra_args = own_args, .env = {}}),
        "prepare");
    replica.faults = std::make_unique<FaultMix>(options_.seed * 1000 + i, i, leaders_);
    replica.installation->proxy().set_hooks(watched(replica.faults->hooks()));
    replicas_.push_back(std::move(replica));
  }
  for (Replica& replica : replicas_) {
    LPP_RETURN_IF_ERROR(start(replica), "prepare");
    LPP_RETURN_IF_ERROR(replica.installation->wait_ready(), "prepare");
  }
  if (agents_ != nullptr) LPP_RETURN_IF_ERROR(start_agents(), "prepare");
  tenants_.emplace(ledger_, options_.seed + 2'000'000);
  return {};
}

Result<void> ChaosRun::make_class(const std::string& name) {
  ClassSpec spec{.name = name};
  if (chaos_class(name).retain) spec.reclaim_policy = "Retain";
  if (name == "chaos-local") spec.parameters = {{"volumeType", "local"}};
  if (name == "chaos-refused") spec.parameters = {{"volumeType", "none-such"}};
  if (chaos_class(name).pattern) {
    spec.parameters["pathPattern"] = "{{ .PVC.Namespace }}/{{ .PVC.Name }}";
  }
  if (chaos_class(name).comes_back) spec.parameters["nodePath"] = bed_.base_paths().front();
  LPP_ASSIGN_OR_RETURN(const auto found, bed_.admin().find(k8s::kStorageClasses, {"", name}),
                       "class");
  if (found) return {};
  return bed_.admin().apply(class_object(spec));
}

Result<ChaosSummary> ChaosRun::run() {
  if (auto good = prepare(); !good.ok()) return explain(good.error());
  const auto began = steady_clock::now();
  const auto over = [&] {
    return options_.steps != 0 ? summary_.steps >= options_.steps
                               : steady_clock::now() - began >= options_.seconds;
  };
  while (!over()) {
    const Step step = schedule_.next();
    last_steps_.push_back(fmt::format("{}: {}", ++summary_.steps, step.to_string()));
    if (last_steps_.size() > kStepsToShow) last_steps_.pop_front();
    ++summary_.kinds[std::string(to_string(step.kind))];
    if (summary_.steps % options_.round == 1) {
      const double levels[] = {0.02, 0.1, 0.3};
      for (Replica& replica : replicas_) replica.faults->set_level(levels[step.c % 3]);
    }
    auto good =
        options_.without.contains(std::string(to_string(step.kind))) ? Result<void>() : take(step);
    if (good.ok()) good = check_alive();
    if (good.ok() && (summary_.steps % options_.round == 0 || over())) {
      good = quiet_point(Clearing::kSome);
    }
    if (!good.ok()) return explain(good.error());
  }
  // The end: nothing may be left.
  while (!model_.claims.empty()) {
    if (auto gone = delete_claim(model_.claims.begin()->first); !gone.ok()) {
      return explain(gone.error());
    }
  }
  if (auto good = quiet_point(Clearing::kAll); !good.ok()) return explain(good.error());
  if (auto gone = remove_objects(); !gone.ok()) return explain(gone.error());
  for (Replica& replica : replicas_) {
    if (auto good = replica.installation->stop_daemon(); !good.ok()) return explain(good.error());
    const std::string report = sanitizer_report(replica.installation->log_text());
    if (!report.empty()) return explain(Error{.message = report});
  }
  for (const auto& machine : options_.agents) {
    if (auto gone = agents_->uninstall(machine); !gone.ok()) return explain(gone.error());
  }
  for (const Replica& replica : replicas_) {
    for (const auto& [kind, count] : replica.faults->counts()) summary_.faults[kind] += count;
  }
  summary_.takeovers = leaders_.takeovers();
  summary_.written = ledger_.written();
  summary_.removed = ledger_.removed();
  over_ = true;
  return summary_;
}

Result<void> ChaosRun::start(Replica& replica) {
  if (replica.running) return {};
  // Nothing runs on a first configuration that is not valid; then it says so and ends.
  if (config_is_bad_) {
    LPP_RETURN_IF_ERROR(write_config(replica.installation->default_config()), "start");
    config_is_bad_ = false;
  }
  LPP_RETURN_IF_ERROR(set_data("helperPod.yaml", original_data_["helperPod.yaml"]), "start");
  LPP_RETURN_IF_ERROR(replica.installation->start_daemon(Installation::OldLease::kKeep), "start");
  replica.running = true;
  replica.was_ready = false;
  return {};
}

/// Nothing runs on a first configuration or template that is not valid: whoever has just started
/// is spared.
bool ChaosRun::all_were_ready() {
  for (Replica& replica : replicas_) {
    if (!replica.running || replica.was_ready) continue;
    if (replica.paused) return false;
    replica.was_ready =
        replica.installation->daemon().wait_ready(std::chrono::milliseconds(1)).ok();
    if (!replica.was_ready) return false;
  }
  return true;
}

Result<void> ChaosRun::check_alive() {
  for (const Replica& replica : replicas_) {
    if (replica.running && !replica.installation->daemon().alive()) {
      return Error{.message = "a daemon ended by itself\n" + replica.installation->log_tail()};
    }
  }
  if (agents_ != nullptr) LPP_RETURN_IF_ERROR(agents_->check(), "agents");
  const auto violations = leaders_.violations();
  if (!violations.empty()) {
    return Error{.message = "two leaders wrote at once: " + violations.front()};
  }
  const std::string lost = ledger_.lost();
  if (!lost.empty()) return Error{.message = lost};
  return {};
}

Error ChaosRun::explain(const Error& error) const {
  std::string text = fmt::format("seed {}, step {}: {}\nlast steps:", options_.seed, summary_.steps,
                                 error.message);
  for (const std::string& step : last_steps_) text += "\n  " + step;
  for (const Replica& replica : replicas_) {
    if (replica.installation == nullptr) continue;
    text += "\n" + replica.installation->log_tail();
  }
  if (agents_ != nullptr) text += agents_->log_tails();
  return Error{.code = error.code,
               .message = text + "\nlogs and settings are in " + options_.folder};
}

}  // namespace lpp::testing
