// SPDX-License-Identifier: Apache-2.0
#include "devcluster/demo.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "devcluster/json_names.h"
#include "devcluster/runtime/wait.h"
#include "harness/ending_signals.h"
#include "harness/http_get.h"
#include "harness/installation.h"
#include "harness/yaml_objects.h"

namespace lpp::devcluster {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* kClaims = "persistentvolumeclaims";
constexpr const char* kServiceAccount = "local-path-provisioner-service-account";

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// What the Deployment's environment says of the helper pods; the rest is of its pod.
std::map<std::string, std::string> helper_pod_settings(const std::vector<json>& objects) {
  std::map<std::string, std::string> settings;
  for (const json& object : objects) {
    for (const json& container : array_at(object, {"spec", "template", "spec", "containers"})) {
      for (const json& variable : array_at(container, {"env"})) {
        const std::string name(text_at(variable, {"name"}));
        if (name != "HELPER_IMAGE" && name != "ALLOW_UNSAFE_HELPER_POD_TEMPLATE") continue;
        settings[name] = text_at(variable, {"value"});
      }
    }
  }
  return settings;
}

}  // namespace

Demo::Demo(DemoOptions options)
    : options_(std::move(options)), began_(clock_.now()), colours_(isatty(STDOUT_FILENO) == 1) {}

Demo::~Demo() = default;

json Demo::claim() const {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", {{"name", kClaimName}, {"namespace", "default"}}},
          {"spec",
           {{"storageClassName", "local-path"},
            {"accessModes", {"ReadWriteOnce"}},
            {"resources", {{"requests", {{"storage", "128Mi"}}}}}}}};
}

json Demo::pod() const {
  return pod_with_script("echo \"written by $(hostname)\" > /data/hello.txt; exec sleep 86400");
}

json Demo::pod_with_script(const std::string& script) {
  const json container{{"name", "writer"},
                       {"image", "busybox"},
                       {"command", {"sh", "-c", script}},
                       {"volumeMounts", json::array({{{"name", "data"}, {"mountPath", "/data"}}})}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", kPodName}, {"namespace", "default"}}},
          {"spec",
           {{"terminationGracePeriodSeconds", 0},
            {"containers", json::array({container})},
            {"volumes", json::array({{{"name", "data"},
                                      {"persistentVolumeClaim", {{"claimName", kClaimName}}}}})}}}};
}

void Demo::say(const std::string& line) {
  const std::chrono::duration<double> elapsed = clock_.now() - began_;
  std::printf("[%5.2f s] %s✔%s %s\n", elapsed.count(), colours_ ? "\033[32m" : "",
              colours_ ? "\033[0m" : "", line.c_str());
  std::fflush(stdout);
}

std::string Demo::metrics() const {
  const auto told = testing::http_get(daemon_->health_port(), "/metrics");
  return told.ok() ? told->body : std::string();
}

bool Demo::stopped() {
  const sigset_t signals = testing::ending_signals();
  const timespec now{};
  if (!interrupted_ && sigtimedwait(&signals, nullptr, &now) > 0) interrupted_ = true;
  return interrupted_ || (daemon_ != nullptr && !daemon_->alive());
}

Result<void> Demo::expect(const std::string& what, const ObjectRef& ref,
                          const std::function<bool(const json*)>& condition) {
  if (wait_for(cluster_->registry(), ref, condition, kPatience, [this] { return stopped(); })) {
    return {};
  }
  if (interrupted_) return cancelled();
  if (daemon_ != nullptr && !daemon_->alive()) return invalid("the daemon has ended: " + what);
  return Error{.code = ErrorCode::kTimeout,
               .message = what + ": not within " + std::to_string(kPatience.count()) + " s"};
}

int Demo::run() {
  const Result<void> told = tell();
  if (!told.ok()) explain(told.error());
  Result<void> ended;
  if (daemon_ != nullptr && daemon_->alive()) {
    const auto ending = daemon_->terminate(kPatience);
    if (!ending.ok()) {
      ended = ending.error();
    } else if (!ending->exit.to_string().empty() && ending->exit.code != 0) {
      ended = invalid("the daemon ended with " + ending->exit.to_string());
    }
    if (told.ok() && ended.ok()) {
      say("the daemon has ended cleanly, " + std::to_string(ending->took.count()) +
          " ms after SIGTERM");
    }
  }
  if (told.ok() && !ended.ok()) explain(ended.error());
  return told.ok() && ended.ok() ? 0 : 1;
}

Result<void> Demo::tell() {
  for (const auto step :
       {&Demo::start_cluster, &Demo::apply_manifest, &Demo::start_daemon, &Demo::start_others,
        &Demo::make_volume, &Demo::show, &Demo::wait_for_signal, &Demo::remove_volume}) {
    if (auto done = (this->*step)(); !done.ok()) return done;
  }
  return {};
}

void Demo::explain(const Error& error) {
  if (interrupted_) {
    std::fprintf(stderr, "interrupted\n");
    return;
  }
  const char* red = isatty(STDERR_FILENO) == 1 ? "\033[31m" : "";
  const char* plain = *red != '\0' ? "\033[0m" : "";
  std::fprintf(stderr, "%s✘%s %s\n", red, plain, error.message.c_str());
  if (cluster_ != nullptr) {
    const std::pair<const char*, const char*> objects[] = {{"PersistentVolumeClaim", kClaimName},
                                                           {"Pod", kPodName}};
    for (const auto& [kind, name] : objects) {
      for (const std::string& event : cluster_->events_about(kind, "default", name)) {
        std::fprintf(stderr, "  event of %s: %s\n", name, event.c_str());
      }
    }
  }
  const bool has_log = error.message.find("end of ") != std::string::npos;
  if (daemon_ != nullptr && !has_log) std::fprintf(stderr, "%s\n", daemon_->log_tail().c_str());
}

Result<void> Demo::start_cluster() {
  auto cluster = Cluster::start({.folder = options_.folder, .images = options_.images});
  if (!cluster.ok()) return std::move(cluster).error().wrap("embedded cluster");
  cluster_ = *std::move(cluster);
  auto kube = testing::Kube::from_kubeconfig(cluster_->kubeconfig());
  if (!kube.ok()) return std::move(kube).error();
  kube_ = *std::move(kube);
  say("a cluster with 2 nodes is up at " + cluster_->server().url());
  std::printf("            its containers run under %s\n", cluster_->nodes().sandbox().c_str());
  return {};
}

Result<void> Demo::apply_manifest() {
  const auto objects = testing::read_yaml_objects(options_.manifest);
  if (!objects.ok()) return objects.error();
  for (const json& object : *objects) {
    const std::string what = text_at(object, {"kind"}) + " " + key_of(object);
    LPP_RETURN_IF_ERROR(kube_->apply(object), "apply " + what);
  }
  say("applied the " + std::to_string(objects->size()) + " objects of " + options_.shown);
  return {};
}

Result<void> Demo::start_daemon() {
  LPP_ASSIGN_OR_RETURN(
      const std::string kubeconfig,
      cluster_->service_account_kubeconfig(testing::kDaemonNamespace, kServiceAccount),
      "kubeconfig");
  const auto objects = testing::read_yaml_objects(options_.manifest);
  if (!objects.ok()) return objects.error();
  std::vector<std::string> args = {"--kubeconfig",
                                   kubeconfig,
                                   "--namespace",
                                   testing::kDaemonNamespace,
                                   "--configmap-name",
                                   "local-path-config",
                                   "--service-account-name",
                                   kServiceAccount};
  for (std::string& argument : daemon_arguments()) args.push_back(std::move(argument));
  auto daemon = testing::DaemonProcess::start({.program = options_.daemon,
                                               .args = std::move(args),
                                               .env = helper_pod_settings(*objects),
                                               .log_file = cluster_->folder() + "/daemon.log"});
  if (!daemon.ok()) return std::move(daemon).error();
  daemon_ = *std::move(daemon);
  LPP_RETURN_IF_ERROR(daemon_->wait_ready(kPatience), "daemon");
  say("local-path-provisioner is ready, with the permissions of its ServiceAccount");
  return {};
}

Result<void> Demo::make_volume() {
  const TimePoint began = clock_.now();
  for (const json& object : {claim(), pod()}) {
    if (auto created = kube_->create(object); !created.ok()) return std::move(created).error();
  }
  say("created claim default/demo-claim and pod default/demo-pod, which writes into its volume");
  const ObjectRef wanted{kClaims, "default", kClaimName};
  const auto is_bound = [&](const json* c) {
    if (c == nullptr) return false;
    volume_ = text_at(*c, {"spec", "volumeName"});
    node_ = annotation(*c, "volume.kubernetes.io/selected-node");
    return text_at(*c, {"status", "phase"}) == "Bound";
  };
  if (auto bound = expect("claim default/demo-claim becomes Bound", wanted, is_bound);
      !bound.ok()) {
    return bound;
  }
  bound_after_ = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - began);
  say("claim default/demo-claim is Bound to " + volume_ + " on " + node_);
  const ObjectPtr volume = cluster_->registry().find("persistentvolumes", "", volume_);
  if (volume != nullptr) {
    path_ =
        text_at(*volume, {"spec", "hostPath", "path"}, text_at(*volume, {"spec", "local", "path"}));
  }
  directory_ = cluster_->disk_root(node_) + path_;
  return expect("pod default/demo-pod runs", {"pods", "default", kPodName}, [](const json* pod) {
    return pod != nullptr && text_at(*pod, {"status", "phase"}) == "Running";
  });
}

Result<void> Demo::show() {
  const std::string file = directory_ + "/hello.txt";
  const TimePoint deadline = clock_.now() + kPatience;
  while (first_line(file).empty()) {  // nothing but the disk tells when a process has written
    if (stopped()) return cancelled();
    if (clock_.now() >= deadline) return invalid(file + " does not appear");
    clock_.sleep_for(std::chrono::milliseconds(5), {});
  }
  say("pod default/demo-pod runs and has written its file; on the disk of " + node_ + ":");
  std::printf("            %s/hello.txt: \"%s\"\n", path_.c_str(), first_line(file).c_str());
  return {};
}

Result<void> Demo::wait_for_signal() {
  if (!options_.keep) return {};
  std::printf(
      "\nEverything keeps running until Ctrl-C. Try, in another terminal:\n\n"
      "  KUBECONFIG=%s kubectl get pv,pvc,pods -A\n\n"
      "The disks of the nodes are below %s/nodes.\n",
      cluster_->kubeconfig().c_str(), cluster_->folder().c_str());
  std::fflush(stdout);
  const sigset_t signals = testing::ending_signals();
  int received = 0;
  sigwait(&signals, &received);
  std::printf("\n");
  if (!daemon_->alive()) return invalid("the daemon has ended meanwhile");
  return {};
}

std::vector<ObjectPtr> Demo::helper_pods() const {
  auto pods = cluster_->registry().all("pods", testing::kDaemonNamespace);
  std::erase_if(pods,
                [](const ObjectPtr& pod) { return !name_of(*pod).starts_with("helper-pod"); });
  return pods;
}

Result<void> Demo::remove_volume() {
  for (const auto& [resource, name] :
       {std::pair{&k8s::kPods, kPodName}, std::pair{&k8s::kPersistentVolumeClaims, kClaimName}}) {
    auto removed = kube_->remove(*resource, {"default", name});
    // After a while of trying things by hand it may be gone already.
    if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) return removed;
  }
  say("deleted the pod and the claim");
  const auto gone = [](const json* object) { return object == nullptr; };
  LPP_RETURN_IF_ERROR(
      expect("volume " + volume_ + " is removed", {"persistentvolumes", "", volume_}, gone),
      "removal");
  if (fs::exists(directory_)) return invalid(directory_ + " is still there");
  say("volume " + volume_ + " is gone, and so is its directory on " + node_);
  for (const ObjectPtr& pod : helper_pods()) {
    LPP_RETURN_IF_ERROR(expect("helper pod " + key_of(*pod) + " is removed",
                               {"pods", testing::kDaemonNamespace, name_of(*pod)}, gone),
                        "removal");
  }
  say("nothing is left behind: no volume, no helper pod, no directory");
  return {};
}

}  // namespace lpp::devcluster
