// SPDX-License-Identifier: Apache-2.0
#include "real_agents.h"

#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/agent_account.h"
#include "harness/file_text.h"
#include "harness/http_get.h"
#include "harness/paths_below.h"
#include "harness/yaml_objects.h"
#include "places/places.h"

namespace lpp::testing {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSelector = "app=local-path-provisioner-agent";
constexpr const char* kAccount =
    "system:serviceaccount:local-path-storage:local-path-provisioner-service-account";
constexpr const char* kHost = "local-path-provisioner-agents.local-path-storage.svc";

std::string manifest(const char* file) { return repository(std::string("deploy/agents/") + file); }

/// Of the pods that there are: the kubelet removes them with their pods.
std::string logs_of_agents() {
  std::string all;
  for (const fs::path& path : paths_below(required_setting("LPP_E2E_LOGS") + "/pods")) {
    if (path.string().find("_local-path-provisioner-agent-") == std::string::npos) continue;
    if (std::error_code none; fs::is_regular_file(path, none)) all += "\n" + text_of(path);
  }
  return all;
}

std::vector<std::string> with_agents(std::vector<std::string> args, int port) {
  args.insert(args.end(), {"--agents", "--agents-port", std::to_string(port)});
  return args;
}

/// The API server goes by roles a moment after they were made.
void wait_allowed(RealStory& story) {
  const json token_reviews{{"group", "authentication.k8s.io"}, {"resource", "tokenreviews"}};
  const json secrets{{"namespace", kDaemonNamespace}, {"resource", "secrets"}};
  constexpr k8s::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews",
                                         "SubjectAccessReview", false};
  for (json what : {token_reviews, secrets}) {
    what["verb"] = "create";
    LPP_MUST(wait_until(
        "the provisioner may create " + what["resource"].get<std::string>(),
        [&]() -> std::string {
          const auto review = story.admin().api().create(
              kAccessReviews, {},
              {{"apiVersion", "authorization.k8s.io/v1"},
               {"kind", "SubjectAccessReview"},
               {"spec", {{"user", kAccount}, {"resourceAttributes", what}}}});
          if (!review.ok()) return review.error().message;
          return (*review)["status"].value("allowed", false) ? "" : review->dump();
        },
        story.bed->patience()));
  }
}

}  // namespace

SharedMount::SharedMount(std::string directory) : directory_(std::move(directory)) {
  fs::create_directories(directory_);
  const char* const here = directory_.c_str();
  REQUIRE(::mount(here, here, nullptr, MS_BIND, nullptr) == 0);
  REQUIRE(::mount(nullptr, here, nullptr, MS_SHARED, nullptr) == 0);
}

SharedMount::~SharedMount() { ::umount2(directory_.c_str(), MNT_DETACH); }

RealAgents::RealAgents(const std::string& story, RealAgentsOptions options)
    : port_(free_port()),
      standby_port_(free_port()),
      volumes_(required_setting("LPP_E2E_VOLUMES")),
      options_(std::move(options)),
      story_(story, {.extra_args = with_agents(options_.daemon_args, port_)}),
      base_paths_(options_.base_paths.empty() ? story_.bed->base_paths() : options_.base_paths) {
  for (const char* file : {"rbac.yaml", "service.yaml"}) {
    for (const json& object : LPP_MUST(read_yaml_objects(manifest(file)))) {
      LPP_MUST(story_.admin().apply(object));
      applied_.push_back(object);
    }
  }
  wait_allowed(story_);
}

RealAgents::~RealAgents() {
  wait_nothing_released();
  // Its rights go next, and it must never be told that it lacks one.
  story_.installation->kill_daemon();
  remove_all();
}

/// Without its records no volume is on its disk any more. As far as it goes, as below.
void RealAgents::wait_nothing_released() {
  if (!story_.installation->daemon().alive()) return;
  static_cast<void>(wait_until(
      "what was released is removed",
      [&]() -> std::string {
        const auto volumes = story_.admin().list(k8s::kPersistentVolumes);
        if (!volumes.ok()) return volumes.error().message;
        for (const json& volume : *volumes) {
          const std::string policy = volume["spec"].value("persistentVolumeReclaimPolicy", "");
          const json annotations = volume["metadata"].value("annotations", json::object());
          // Claims and pods are on their way out, too.
          if (policy == "Delete" && annotations.contains("local.path.provisioner/disk")) {
            return "volumes are left";
          }
        }
        return "";
      },
      {.limit = std::chrono::seconds(40)}));
}

void RealAgents::remove_all() {
  // The DaemonSet was applied last. As far as it goes: a failure has been told already.
  std::reverse(applied_.begin(), applied_.end());
  for (const json& object : applied_) {
    const auto resource = resource_of(object);
    if (!resource.ok()) continue;
    const json& meta = object["metadata"];
    static_cast<void>(story_.admin().remove_and_wait(
        **resource, {meta.value("namespace", ""), meta["name"]}, {}, story_.bed->patience()));
  }
  static_cast<void>(wait_until(
      "no agent's pod is left",
      [&]() -> std::string {
        const auto pods = story_.admin().list(k8s::kPods, kDaemonNamespace, kSelector);
        return pods.ok() && pods->empty() ? "" : "there is one";
      },
      story_.bed->patience()));
  // The next tests find the disks as they were.
  for (const auto& base : base_paths_) {
    std::error_code none;
    std::filesystem::remove_all(base + "/.local-path-provisioner", none);
  }
}

std::vector<std::string> RealAgents::standby_args() const {
  return with_agents(options_.daemon_args, standby_port_);
}

void RealAgents::start() {
  // In the order of a user who applies everything at once: the pods are there before what they
  // need.
  apply_daemon_set();
  story_.start();
  wait_for_metric("local_path_provisioner_agents_connected 1");
}

void RealAgents::apply_daemon_set() {
  auto objects = LPP_MUST(read_yaml_objects(manifest("daemonset.yaml")));
  REQUIRE(objects.size() == 1);
  json& object = objects[0];
  json& spec = object["spec"]["template"]["spec"];
  json& container = spec["containers"][0];
  container["image"] = required_setting("LPP_E2E_IMAGE");
  const auto url = [](int port) {
    return std::string("https://") + kHost + ":" + std::to_string(port);
  };
  container["args"] = {"--controller",
                       options_.standby ? url(port_) + "," + url(standby_port_) : url(port_)};
  if (options_.limits) container["securityContext"]["capabilities"]["add"].push_back("SYS_ADMIN");
  spec["hostAliases"] =
      json::array({{{"ip", required_setting("LPP_E2E_POD_GATEWAY")}, {"hostnames", {kHost}}}});
  // Each base path in its own place, as the manifest says.
  const auto named = [](json& list) -> json& {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [](const json& one) { return one["name"] == "base"; });
    REQUIRE(found != list.end());
    return *found;
  };
  json mount = named(container["volumeMounts"]);
  json volume = named(spec["volumes"]);
  std::size_t number = 0;
  for (const std::string& base : base_paths_) {
    mount["mountPath"] = base;
    volume["hostPath"]["path"] = base;
    if (number == 0) {
      named(container["volumeMounts"]) = mount;
      named(spec["volumes"]) = volume;
    } else {
      mount["name"] = volume["name"] = "base-" + std::to_string(number);
      container["volumeMounts"].push_back(mount);
      spec["volumes"].push_back(volume);
    }
    ++number;
  }
  LPP_MUST(story_.admin().apply(object));
  applied_.push_back(object);
}

void RealAgents::wait_for_metric(const std::string& line) {
  LPP_MUST(wait_until(
      "the metrics say " + line,
      [&]() -> std::string {
        const auto page = http_get(story_.installation->daemon().health_port(), "/metrics");
        if (!page.ok()) return page.error().message;
        if (page->body.find("\n" + line + "\n") != std::string::npos) return "";
        const auto pods = story_.admin().list(k8s::kPods, kDaemonNamespace, kSelector);
        if (!pods.ok()) return pods.error().message;
        std::string all;
        for (const json& pod : *pods) all += "\n" + pod["status"].dump();
        return "agents:" + logs_of_agents() + all;
      },
      story_.bed->patience()));
}

void RealAgents::change_image(const std::string& image) {
  json& daemon_set = applied_.back();
  daemon_set["spec"]["template"]["spec"]["containers"][0]["image"] = image;
  LPP_MUST(story_.admin().apply(daemon_set));
}

void RealAgents::wait_for_image(const std::string& image) {
  LPP_MUST(wait_until(
      "the agent's pod has the image " + image,
      [&]() -> std::string {
        const auto pods = story_.admin().list(k8s::kPods, kDaemonNamespace, kSelector);
        if (!pods.ok()) return pods.error().message;
        if (pods->size() != 1) return std::to_string(pods->size()) + " pods";
        const json& pod = pods->front();
        if (pod["spec"]["containers"][0]["image"] != image) return "the former one is there";
        return pod["metadata"].contains("deletionTimestamp") ? "it ends" : "";
      },
      story_.bed->patience()));
  wait_for_metric("local_path_provisioner_agents_connected 1");
}

std::string RealAgents::pod() {
  const auto pods = LPP_MUST(story_.admin().list(k8s::kPods, kDaemonNamespace, kSelector));
  REQUIRE(pods.size() == 1);
  return pods[0]["metadata"]["name"];
}

pid_t RealAgents::process(pid_t before) {
  const json object = LPP_MUST(story_.admin().get(k8s::kPods, {kDaemonNamespace, pod()}));
  const std::string uid = object["metadata"]["uid"];
  pid_t found = 0;
  LPP_MUST(wait_until(
      "the agent's process is there",
      [&]() -> std::string {
        for (const auto& entry : fs::directory_iterator("/proc")) {
          const std::string name = entry.path().filename();
          if (name.find_first_not_of("0123456789") != std::string::npos) continue;
          // The pod's cgroup is called by its UID; its other process holds the sandbox.
          if (text_of(entry.path() / "cgroup").find("pod" + uid) == std::string::npos) continue;
          // Names are cut off after 15 bytes.
          if (!text_of(entry.path() / "comm").starts_with("local-path-prov")) continue;
          const pid_t pid = std::stoi(name);
          if (pid != before) found = pid;
        }
        return found != 0 ? "" : "there is none";
      },
      story_.bed->patience()));
  return found;
}

int RealAgents::restarts() {
  const json object = LPP_MUST(story_.admin().get(k8s::kPods, {kDaemonNamespace, pod()}));
  return object["status"]["containerStatuses"][0]["restartCount"];
}

bool RealAgents::made_helper_pods() {
  const auto records = story_.installation->proxy().records();
  return std::any_of(records.begin(), records.end(),
                     [](const auto& record) { return record.request.is("create", "pods"); });
}

StoryBy::StoryBy(const std::string& name, By by, const RealAgentsOptions& options) {
  if (by == By::kAgents) {
    agents_ = std::make_unique<RealAgents>(name + "-by-agents", options);
  } else {
    pods_ =
        std::make_unique<RealStory>(name, InstallationOptions{.extra_args = options.daemon_args});
  }
}

void StoryBy::start() {
  if (agents_) {
    agents_->start();
  } else {
    pods_->start();
  }
}

}  // namespace lpp::testing
