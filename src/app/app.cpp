// SPDX-License-Identifier: Apache-2.0
#include "app/app.h"

#include <atomic>
#include <stop_token>
#include <thread>

#include "app/agents.h"
#include "app/config_loader.h"
#include "app/health_endpoints.h"
#include "app/health_server.h"
#include "app/signals.h"
#include "app/version.h"
#include "app/wiring.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "helperpod/runner.h"
#include "k8s/fenced_transport.h"
#include "k8s/httplib_transport.h"
#include "k8s/leader_elector.h"
#include "k8s/metered_transport.h"
#include "k8s/rate_limiter.h"
#include "provisioner/capacity_publisher.h"
#include "provisioner/controller.h"
#include "provisioner/places.h"

namespace lpp::app {

namespace {

/// Shutdown: running steps get this long to end by themselves, then their calls are cut short.
constexpr std::chrono::seconds kStepsLimit{4};
constexpr std::chrono::seconds kEventsLimit{2};

}  // namespace

/// Members are in start order: what stands below uses what stands above.
class App::Impl {
 public:
  Impl(const Options& options, const MakeExecutor& make_executor, Clock& clock,
       std::unique_ptr<k8s::Transport> transport, std::string api_host, std::stop_token stop)
      : options_(options),
        clock_(clock),
        stop_(std::move(stop)),
        connections_(std::move(transport)),
        transport_(*connections_, clock_),
        limiter_(options.client_throttle
                     ? std::make_unique<k8s::RateLimiter>(clock_, options.client_throttle->qps,
                                                          options.client_throttle->burst)
                     : nullptr),
        client_(transport_, clock_, {.stop = abort_.get_token(), .rate_limiter = limiter_.get()}),
        fenced_(transport_, clock_, [this] { return elector_->valid_until(); }),
        leader_client_(
            options.leader_election.enabled ? static_cast<k8s::Transport&>(fenced_) : transport_,
            clock_, {.stop = abort_.get_token(), .rate_limiter = limiter_.get()}),
        identity_(make_identity()),
        events_(client_, clock_, options.provisioner_name + "_" + identity_),
        config_map_("cm", client_, clock_,
                    {.resource = k8s::kConfigMaps,
                     .ns = options.namespace_name,
                     .field_selector = "metadata.name=" + options.configmap_name}),
        claims_("pvc", client_, clock_, {.resource = k8s::kPersistentVolumeClaims},
                trim_claims(options.served_names())),
        volumes_("pv", client_, clock_, {.resource = k8s::kPersistentVolumes},
                 trim_volumes(options.served_names())),
        classes_("sc", client_, clock_, {.resource = k8s::kStorageClasses},
                 trim_classes(options.served_names())),
        nodes_("node", client_, clock_, {.resource = k8s::kNodes, .metadata_only = true},
               trim_node),
        pods_("pod", client_, clock_,
              {.resource = k8s::kPods,
               .ns = options.namespace_name,
               .label_selector = helperpod::label_selector(options.provisioner_name)},
              trim_pod),
        config_({.config_map = {options.namespace_name, options.configmap_name},
                 .allow_unsafe_template = options.allow_unsafe_helper_pod_template},
                config_source(options, config_map_, clock_, stop_),
                template_source(options, config_map_, clock_, stop_), client_, events_, clock_),
        places_(volumes_.store(), nodes_.store(), options.served_names()),
        ledger_(places_),
        runner_(leader_client_, clock_, pods_.store(), ledger_,
                {.provisioner_name = options.provisioner_name,
                 .ns = options.namespace_name,
                 .service_account = options.service_account_name,
                 .config_map = options.configmap_name,
                 .helper_image = options.helper_image,
                 .beside_agents = options.agents,
                 .most_per_node = static_cast<std::size_t>(options.helper_pods_per_node)},
                [this] { return current(); }),
        other_executor_(make_executor ? make_executor({clock_, ledger_, config_.config()})
                                      : nullptr),
        figures_(clock_),
        binding_(clock_, options.bind_claims ? provisioner::Binding::By::kUs
                                             : provisioner::Binding::By::kControlPlane),
        agents_(options.agents ? std::make_unique<Agents>(agent_parts()) : nullptr),
        world_{options.served_names(),
               leader_client_,
               clock_,
               events_,
               executor(),
               ledger_,
               config_.config(),
               claims_.store(),
               volumes_.store(),
               classes_.store(),
               nodes_.store(),
               figures_,
               binding_,
               space_,
               uses_},
        controller_(world_, {claims_, volumes_, classes_, nodes_},
                    {.worker_threads = options.worker_threads,
                     .provisioning_retry_count = options.provisioning_retry_count,
                     .deletion_retry_count = options.deletion_retry_count}),
        capacities_(world_, options.namespace_name,
                    agents_ ? agents_->is_served() : provisioner::CapacityPublisher::IsServed()),
        elector_(std::make_unique<k8s::LeaderElector>(
            client_, clock_, elector_options(options, identity_),
            k8s::LeaderElector::Callbacks{
                .started_leading = [this] { begin_term(); },
                .stopped_leading = [this] { end_term(); },
                .new_leader =
                    [](const std::string& holder) { log::info("leader is {}", holder); }})),
        subjects_(make_subjects(std::move(api_host))) {
    pods_.add_handler([this](const auto& change) { runner_.observe(change); });
  }

  Result<void> start();
  void work();
  void shut_down();

 private:
  Subjects make_subjects(std::string api_host) const;
  bool synced() const {
    return claims_.has_synced() && volumes_.has_synced() && classes_.has_synced() &&
           nodes_.has_synced() && pods_.has_synced();
  }
  helperpod::HelperPodRunner::Current current() const;
  operation::Executor& pods_or_other();
  operation::Executor& executor();
  Agents::Parts agent_parts();
  template <typename Use>
  void for_each_cache(const Use& use);
  bool wait_for_sync();
  void begin_term();
  void end_term();
  bool catch_up(TimePoint since, const std::stop_token& ended);
  void stop_working();

  const Options options_;
  Clock& clock_;
  const std::stop_token stop_;  // the process is to end
  std::stop_source abort_;      // cuts running API calls short at the end of a shutdown
  std::unique_ptr<k8s::Transport> connections_;
  k8s::MeteredTransport transport_;
  std::unique_ptr<k8s::RateLimiter> limiter_;
  k8s::ApiClient client_;
  k8s::FencedTransport fenced_;
  k8s::ApiClient leader_client_;  // of everything that only the leader may do
  const std::string identity_;
  k8s::EventRecorder events_;
  std::atomic<bool> stopping_ = false;
  k8s::Informer<k8s::ConfigMap> config_map_;
  k8s::Informer<k8s::PersistentVolumeClaim> claims_;
  k8s::Informer<k8s::PersistentVolume> volumes_;
  k8s::Informer<k8s::StorageClass> classes_;
  k8s::Informer<k8s::Node> nodes_;
  k8s::Informer<k8s::Pod> pods_;
  ConfigLoader config_;
  provisioner::Places places_;
  operation::PathLedger ledger_;
  helperpod::HelperPodRunner runner_;
  std::unique_ptr<operation::Executor> other_executor_;
  provisioner::OperationFigures figures_;
  provisioner::Binding binding_;
  operation::SpaceBoard space_;
  operation::ToldUses uses_{clock_};
  std::unique_ptr<Agents> agents_;
  provisioner::World world_;
  provisioner::Controller controller_;
  provisioner::CapacityPublisher capacities_;
  std::unique_ptr<k8s::LeaderElector> elector_;
  std::jthread term_;  // begins the work, and ends with that
  const Subjects subjects_;
  std::unique_ptr<HealthServer> health_;
};

/// What leaders' decisions are made from.
template <typename Use>
void App::Impl::for_each_cache(const Use& use) {
  use(claims_);
  use(volumes_);
  use(classes_);
  use(nodes_);
  use(pods_);
}

Result<void> App::Impl::start() {
  if (options_.leader_election.enabled) {
    LPP_RETURN_IF_ERROR(k8s::LeaderElector::validate(elector_options(options_, identity_)),
                        "leader election");
  }
  auto health =
      HealthServer::start({.port = options_.health_port}, health_endpoints(subjects_), clock_);
  if (health.ok()) {
    health_ = *std::move(health);
    log::info("health server listens on port {}", health_->port());
  } else {
    // The work does not depend on it; the probes will tell.
    log::error("health server: {}", health.error().message);
  }
  events_.on_dropped([this](const k8s::ObjectReference& about, std::string_view, std::string_view) {
    controller_.event_dropped(about);
  });
  events_.start();
  config_.on_change([this] {
    controller_.config_changed();
    if (agents_) agents_->config_changed();
  });
  if (uses_config_map(options_)) config_map_.start();
  LPP_RETURN_IF_ERROR(config_.start(), "configuration");
  for_each_cache([](auto& cache) { cache.start(); });
  if (wait_for_sync()) log::info("caches have synced");
  if (agents_) LPP_RETURN_IF_ERROR(agents_->start(), "agents");
  unmap_idle_code();  // much of it only starts the program
  return {};
}

void App::Impl::work() {
  if (stop_.stop_requested()) return;
  if (options_.leader_election.enabled) {
    elector_->run(stop_);  // releases the lease when the work has ended
    return;
  }
  // Nobody led before: what the caches were filled with at the start is good enough.
  controller_.start_working();
  capacities_.start();
  clock_.sleep_until(TimePoint::max(), stop_);
  stop_working();
}

/// Runs after work() has returned: no worker runs any more and the lease is released.
void App::Impl::shut_down() {
  stopping_ = true;
  for_each_cache([](auto& cache) { cache.request_stop(); });
  config_map_.request_stop();
  config_.stop();
  events_.stop(kEventsLimit);
  abort_.request_stop();
  if (agents_) agents_->stop();
  for_each_cache([](auto& cache) { cache.join(); });
  config_map_.join();
  if (health_) health_->stop();
}

/// Called with the lease in hand. The work waits for the caches, the lease's renewal does not.
void App::Impl::begin_term() {
  term_ = std::jthread([this, since = clock_.now()](const std::stop_token& ended) {
    set_thread_name("term");
    if (!catch_up(since, ended)) return;
    log::info("leading identity={}", identity_);
    controller_.start_working();
    capacities_.start();
  });
}

void App::Impl::end_term() {
  term_.request_stop();
  if (term_.joinable()) term_.join();
  stop_working();
  uses_.forget_all();
}

/// A watch may be behind by any time: what the last leader did to the end may be missing in the
/// caches, and nothing in them tells. A consistent list made after the lease was taken has it all.
bool App::Impl::catch_up(TimePoint since, const std::stop_token& ended) {
  constexpr std::chrono::milliseconds kStep{2};
  for_each_cache([&](auto& cache) { cache.list_since(since); });
  const auto done = [&] {
    bool all = true;
    for_each_cache([&](const auto& cache) { all = all && cache.listed_since(since); });
    return all;
  };
  while (!done()) {
    if (!clock_.sleep_for(kStep, ended)) return false;
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - since).count();
  log::info("caches are as new as the lease, after {} ms", took);
  return true;
}

/// Ends the leader's work. While the process stops, steps that hang in a call are cut short after a
/// while; when only the lease was lost, the fence has ended their writes already.
void App::Impl::stop_working() {
  std::jthread limit([this](const std::stop_token& ended) {
    set_thread_name("term-limit");
    constexpr std::chrono::milliseconds kLook{100};
    while (!stop_.stop_requested()) {
      if (!clock_.sleep_for(kLook, ended)) return;
    }
    stopping_ = true;
    if (clock_.sleep_for(kStepsLimit, ended)) {
      log::warn("steps are still running after {} s: their calls are cut short",
                kStepsLimit.count());
      abort_.request_stop();
    }
  });
  capacities_.stop();
  controller_.stop_working();
  log::info("workers have stopped");
}

bool App::Impl::wait_for_sync() {
  constexpr std::chrono::milliseconds kStep{10};
  while (!synced()) {
    if (!clock_.sleep_for(kStep, stop_)) return false;
  }
  return true;
}

Subjects App::Impl::make_subjects(std::string api_host) const {
  Subjects subjects{
      .clock = clock_,
      .options = options_,
      .identity = identity_,
      .api_host = std::move(api_host),
      .started_at = clock_.wall_now(),
      .requests = transport_.stats(),
      .controller = controller_,
      .figures = figures_,
      .helper_pods = pods_.store(),
      .volumes = volumes_.store(),
      .nodes = nodes_.store(),
      .space = space_,
      .uses = uses_,
      .capacities = capacities_.stats(),
      .runner = runner_,
      .config = config_,
      .elector = options_.leader_election.enabled ? elector_.get() : nullptr,
      .events = events_,
      .agents = agents_ == nullptr ? std::function<AgentsSubject()>()
                                   : [this] { return agents_->subject(); },
      .oldest_works = [this](const auto& node) { return agents_->oldest_works(node); },
      .orphans = agents_ == nullptr ? std::function<OrphansSubject()>()
                                    : [this] { return agents_->orphans(); },
      .stopping = [this] { return stopping_.load(); }};
  subjects.caches = {subject_of("persistentvolumeclaims", claims_),
                     subject_of("persistentvolumes", volumes_),
                     subject_of("storageclasses", classes_), subject_of("nodes", nodes_),
                     subject_of("pods", pods_)};
  if (uses_config_map(options_)) subjects.caches.push_back(subject_of("configmaps", config_map_));
  return subjects;
}

helperpod::HelperPodRunner::Current App::Impl::current() const {
  const auto config = config_.config().current();
  return {.pod_template = config_.pod_template().current(),
          .cmd_timeout = config->cmd_timeout,
          .setup_command = config->setup_command,
          .teardown_command = config->teardown_command,
          .resize_command = config->resize_command,
          .cluster = agents_ == nullptr ? std::nullopt : std::optional(agents_->cluster())};
}

operation::Executor& App::Impl::pods_or_other() {
  return other_executor_ == nullptr ? runner_ : *other_executor_;
}

operation::Executor& App::Impl::executor() {
  return agents_ == nullptr ? pods_or_other() : agents_->executor();
}

Agents::Parts App::Impl::agent_parts() {
  const auto leads = [this] {
    return !options_.leader_election.enabled || clock_.now() < elector_->valid_until();
  };
  return {.options = options_,
          .identity = identity_,
          .clock = clock_,
          .client = client_,
          .leader_client = leader_client_,
          .ledger = ledger_,
          .others = pods_or_other(),
          .config = config_.config(),
          .nodes = nodes_.store(),
          .volumes = volumes_.store(),
          .claims = claims_.store(),
          .events = events_,
          .space = space_,
          .leads = leads};
}

App::App(Options options, MakeExecutor make_executor)
    : options_(std::move(options)), make_executor_(std::move(make_executor)) {
  log::set_up(options_.log_level, options_.log_format);
}
App::~App() = default;

void App::toggle_debug_log() const { app::toggle_debug_log(options_.log_level); }

int App::run(const std::stop_token& stop) {
  log::info("local-path-provisioner {} provisioner={} namespace={}", version(),
            options_.provisioner_name, options_.namespace_name);
  for (const std::string& warning : options_.warnings) log::warn("{}", warning);

  const auto config = rest_config(options_);
  if (!config.ok()) {
    log::error("cannot reach a cluster: {}", config.error().message);
    return 1;
  }
  log::info("API server {}:{} from {}", config->host, config->port, config->source);
  const auto fail = [](const Error& error) {
    log::error("cannot start: {}", error.message);
    return 1;
  };
  SystemClock clock;
  auto transport = k8s::make_httplib_transport(*config, clock);
  if (!transport.ok()) return fail(transport.error());

  Impl impl(options_, make_executor_, clock, *std::move(transport),
            fmt::format("{}:{}", config->host, config->port), stop);
  const auto started = impl.start();
  if (started.ok()) impl.work();
  impl.shut_down();
  if (!started.ok() && !stop.stop_requested()) return fail(started.error());
  log::info("stopped");
  return 0;
}

int run_until_signal(App& app) {
  std::stop_source stop;
  std::stop_source ended;
  int exit_code = 0;
  std::thread runner([&] {
    exit_code = app.run(stop.get_token());
    ended.request_stop();
  });
  wait_for_signal(ended.get_token(), [&app] { app.toggle_debug_log(); });
  stop.request_stop();
  runner.join();
  return exit_code;
}

}  // namespace lpp::app
