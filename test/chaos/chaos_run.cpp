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
  return bases;
}

}  // namespace

ChaosRun::ChaosRun(TestBed& bed, ClusterFaults& cluster, ChaosOptions options)
    : bed_(bed),
      cluster_(cluster),
      options_(std::move(options)),
      schedule_(options_.seed),
      promises_(bed, model_, bed.nodes(), all_bases(bed)),
      nodes_(bed.nodes()) {}

ChaosRun::~ChaosRun() {
  // A bed that outlives a run that failed: the scripts are everybody's.
  for (const auto& [key, text] : original_data_) static_cast<void>(set_data(key, text));
  for (const Replica& replica : replicas_) {
    if (replica.installation != nullptr) replica.installation->proxy().set_hooks({});
  }
}

Result<void> ChaosRun::prepare() {
  // Short, so that much happens; the rules between them are those of the real ones.
  const std::vector<std::string> args = {"--leader-elect-lease-duration=3s",
                                         "--leader-elect-renew-deadline=2s",
                                         "--leader-elect-retry-period=1s"};
  LPP_RETURN_IF_ERROR(bed_.admin().apply(namespace_object(kChaosNamespace)), "prepare");
  for (const ChaosClass& one : chaos_classes())
    LPP_RETURN_IF_ERROR(make_class(one.name), "prepare");
  LPP_ASSIGN_OR_RETURN(const json map,
                       bed_.admin().get(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"}),
                       "prepare");
  for (const auto& [key, text] : map["data"].items()) original_data_[key] = text;
  for (std::size_t i = 0; i < options_.replicas; ++i) {
    Replica replica;
    const std::string folder = fmt::format("{}/replica-{}", options_.folder, i);
    std::filesystem::create_directories(folder);
    LPP_ASSIGN_OR_RETURN(
        replica.installation,
        Installation::create(
            bed_, {.daemon = options_.daemon, .folder = folder, .extra_args = args, .env = {}}),
        "prepare");
    replica.faults = std::make_unique<FaultMix>(options_.seed * 1000 + i, i, leaders_);
    replica.installation->proxy().set_hooks(replica.faults->hooks());
    replicas_.push_back(std::move(replica));
  }
  for (Replica& replica : replicas_) {
    LPP_RETURN_IF_ERROR(start(replica), "prepare");
    LPP_RETURN_IF_ERROR(replica.installation->wait_ready(), "prepare");
  }
  return {};
}

Result<void> ChaosRun::make_class(const std::string& name) {
  ClassSpec spec{.name = name};
  if (name == "chaos-retain") spec.reclaim_policy = "Retain";
  if (name == "chaos-local") spec.parameters = {{"volumeType", "local"}};
  if (name == "chaos-refused") spec.parameters = {{"volumeType", "none-such"}};
  if (name == "chaos-named") {
    spec.parameters = {{"pathPattern", "{{ .PVC.Namespace }}/{{ .PVC.Name }}"}};
  }
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
    auto good = take(step);
    if (good.ok()) good = check_alive();
    if (good.ok() && (summary_.steps % options_.round == 0 || over())) good = quiet_point();
    if (!good.ok()) return explain(good.error());
  }
  // The end: nothing may be left.
  while (!model_.claims.empty()) {
    if (auto gone = delete_claim(model_.claims.begin()->first); !gone.ok()) {
      return explain(gone.error());
    }
  }
  if (auto good = quiet_point(); !good.ok()) return explain(good.error());
  if (auto gone = remove_objects(); !gone.ok()) return explain(gone.error());
  for (Replica& replica : replicas_) {
    if (auto good = replica.installation->stop_daemon(); !good.ok()) return explain(good.error());
    const std::string report = sanitizer_report(replica.installation->log_text());
    if (!report.empty()) return explain(Error{.message = report});
  }
  for (const Replica& replica : replicas_) {
    for (const auto& [kind, count] : replica.faults->counts()) summary_.faults[kind] += count;
  }
  summary_.takeovers = leaders_.takeovers();
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
  const auto violations = leaders_.violations();
  if (violations.empty()) return {};
  return Error{.message = "two leaders wrote at once: " + violations.front()};
}

void ChaosRun::end_faults() {
  for (Replica& replica : replicas_) {
    replica.faults->set_level(0);
    FaultProxy& proxy = replica.installation->proxy();
    proxy.refuse(false);
    replica.partitioned = false;
    if (std::exchange(replica.paused, false)) replica.installation->daemon().signal(SIGCONT);
    proxy.release_hung();
    proxy.cut_connections();
    proxy.clear_records();
  }
  for (const std::string& node : nodes_) {
    cluster_.trouble_node(node, {});
    if (model_.gone_nodes.erase(node) > 0) cluster_.return_node(node);
  }
  troubles_.clear();
}

/// What an administrator and the scheduler would do: everything that can work shall work now.
Result<void> ChaosRun::repair() {
  for (const auto& [key, text] : original_data_) {
    LPP_RETURN_IF_ERROR(set_data(key, text), "repair");
  }
  model_.setup_fails = false;
  model_.teardown_marker.clear();
  LPP_RETURN_IF_ERROR(make_class("chaos-flip"), "repair");
  LPP_RETURN_IF_ERROR(write_config(replicas_.front().installation->default_config()), "repair");
  config_is_bad_ = false;
  const k8s::ObjectKey lease{kDaemonNamespace, kDaemonLease};
  LPP_ASSIGN_OR_RETURN(const auto held, bed_.admin().find(k8s::kLeases, lease), "repair");
  if (held && (*held)["spec"].value("holderIdentity", "") == "somebody-else") {
    leaders_.tampered(kLeaderUnknown);
    auto removed = bed_.admin().remove(k8s::kLeases, lease);
    if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) return removed;
  }
  return {};
}

/// Claims without a node get one, as from the scheduler: the daemon may have sent them back.
Result<void> ChaosRun::select_nodes() {
  std::size_t number = 0;
  for (const auto& [slot, claim] : model_.claims) {
    LPP_ASSIGN_OR_RETURN(const auto object,
                         bed_.admin().find(k8s::kPersistentVolumeClaims, claim.key), "node");
    if (!object) return Error{.message = "claim " + claim.key.name + " is gone"};
    const json annotations = (*object)["metadata"].value("annotations", json::object());
    if (annotations.contains("volume.kubernetes.io/selected-node")) continue;
    const json patch = {
        {"metadata",
         {{"annotations", {{"volume.kubernetes.io/selected-node", known_node(number++)}}}}}};
    LPP_RETURN_IF_ERROR(bed_.admin().merge(k8s::kPersistentVolumeClaims, claim.key, patch),
                        "repair");
  }
  return {};
}

/// Promise 3: a claim that the failing script keeps from its volume says so, with the script's
/// words. One that has moved waits for its directory on the node before to go first: if that fails
/// too, those are the words.
Result<void> ChaosRun::check_failures_told() {
  if (!model_.setup_fails) return {};
  LPP_RETURN_IF_ERROR(write_config(replicas_.front().installation->default_config()), "told");
  config_is_bad_ = false;
  for (const auto& [slot, claim] : model_.claims) {
    if (claim.storage_class != "local-path" && claim.storage_class != "chaos-local") continue;
    const auto told = wait_until(
        "an event of claim " + claim.key.name + " says \"" + model_.setup_marker + "\"",
        [&, key = claim.key]() -> std::string {
          const auto object = bed_.admin().get(k8s::kPersistentVolumeClaims, key);
          if (!object.ok()) return object.error().message;
          const json annotations = (*object)["metadata"].value("annotations", json::object());
          if (!annotations.contains("volume.kubernetes.io/selected-node")) return "";
          if ((*object).value("status", json::object()).value("phase", "") == "Bound") return "";
          std::string all;
          for (const auto& event : bed_.admin().events_about("PersistentVolumeClaim", key)) {
            if (event.find(model_.setup_marker) != std::string::npos) return "";
            if (!model_.teardown_marker.empty() &&
                event.find(model_.teardown_marker) != std::string::npos &&
                event.starts_with("Warning ProvisioningCleanupFailed: ")) {
              return "";
            }
            all += "\n  " + event;
          }
          return "its events:" + all;
        },
        {.limit = options_.patience, .interval = std::chrono::milliseconds(50)});
    if (!told.ok()) return told;
  }
  return {};
}

Result<void> ChaosRun::clear_retained() {
  LPP_ASSIGN_OR_RETURN(const auto volumes, promises_.volumes(), "retained");
  for (const ChaosVolume& volume : volumes) {
    if (!volume.kept_after_claim() && !model_.retained.contains(volume.pv)) continue;
    LPP_RETURN_IF_ERROR(bed_.admin().remove_and_wait(k8s::kPersistentVolumes, {"", volume.pv}, {},
                                                     {.limit = options_.patience}),
                        "retained");
    std::error_code error;
    std::filesystem::remove_all(volume.disk, error);
    if (error) return Error{.message = volume.disk + ": " + error.message()};
  }
  model_.retained.clear();
  return {};
}

/// What prepare() made, for beds that are used for something else too.
Result<void> ChaosRun::remove_objects() {
  for (const ChaosClass& one : chaos_classes()) {
    if (!one.name.starts_with("chaos-")) continue;
    LPP_RETURN_IF_ERROR(bed_.admin().remove_and_wait(k8s::kStorageClasses, {"", one.name}), "end");
  }
  return bed_.admin().remove(kNamespaces, {"", kChaosNamespace});
}

Result<void> ChaosRun::quiet_point() {
  const auto began = steady_clock::now();
  std::string last;  // what came right last
  end_faults();
  for (Replica& replica : replicas_) {
    LPP_RETURN_IF_ERROR(start(replica), "quiet point");
    LPP_RETURN_IF_ERROR(replica.installation->wait_ready(), "quiet point");
  }
  LPP_RETURN_IF_ERROR(check_failures_told(), "quiet point");
  LPP_RETURN_IF_ERROR(repair(), "quiet point");
  LPP_RETURN_IF_ERROR(
      wait_until("every promise is kept",
                 [&] {
                   const auto selected = select_nodes();
                   std::string broken =
                       selected.ok() ? promises_.broken() : selected.error().message;
                   if (!broken.empty()) last = broken;
                   return broken;
                 },
                 {.limit = options_.patience, .interval = std::chrono::milliseconds(50)}),
      "quiet point");
  LPP_RETURN_IF_ERROR(check_alive(), "quiet point");
  for (const std::string& directory : promises_.excused()) {
    std::filesystem::remove_all(directory);
    ++summary_.excused;
  }
  model_.nodes_that_were_gone.clear();
  model_.lost_records.clear();
  model_.bases_changed = false;
  LPP_RETURN_IF_ERROR(clear_retained(), "quiet point");
  for (auto& [slot, claim] : model_.claims) {
    LPP_RETURN_IF_ERROR(touch_data(claim), "quiet point");
    if (!claim.content.empty()) ++summary_.volumes;
  }
  ++summary_.quiet_points;
  if (options_.say) {
    const auto took = std::chrono::duration<double>(steady_clock::now() - began).count();
    options_.say(fmt::format("{} steps, {} claims, quiet after {:.1f} s, {} takeovers; last: {}",
                             summary_.steps, model_.claims.size(), took, leaders_.takeovers(),
                             last));
  }
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
  return Error{.code = error.code,
               .message = text + "\nlogs and settings are in " + options_.folder};
}

}  // namespace lpp::testing
