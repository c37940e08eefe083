// SPDX-License-Identifier: Apache-2.0
// How a pod's containers get their images, are started and restarted.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/strings.h"
#include "devcluster/json_names.h"
#include "devcluster/node/pod_runner.h"

namespace lpp::devcluster {

using nlohmann::json;
using std::chrono::seconds;
namespace fs = std::filesystem;

namespace {

constexpr seconds kMostBackOff{300};
constexpr seconds kPullBackOff{10};
constexpr seconds kPullErrorShown{1};  // as ErrImagePull, then as ImagePullBackOff

}  // namespace

bool PodRunner::should_restart(const ContainerRun& run) const {
  if (restart_policy_ == "Always") return !run.init || run.exit_code != 0;
  return restart_policy_ == "OnFailure" && run.exit_code != 0;
}

void PodRunner::advance(const json& pod, const json& container, ContainerRun& run,
                        const NodeFaults& faults, Next& next) {
  if (run.running()) return;
  if (run.state == ContainerRun::State::kTerminated) {
    if (!should_restart(run)) return;
    run.last_state = state_json(run);
    run.state = ContainerRun::State::kWaiting;
    run.reason = "CrashLoopBackOff";
    run.message.clear();
    ++run.restarts;
    if (run.back_off > Duration::zero()) {
      const auto wait = std::chrono::duration_cast<seconds>(run.back_off);
      run.message = "back-off " + std::to_string(wait.count()) +
                    "s restarting failed container=" + run.name + " pod=" + name_of(pod);
      services_.events.warning(
          pod, "BackOff",
          "Back-off restarting failed container " + run.name + " in pod " + key_of(pod));
    }
  }
  if (run.restarts > 0) {
    // The first restart is immediate, each further one waits twice as long as the one before.
    const Duration left = run.ended + run.back_off - services_.clock.now();
    if (left > Duration::zero()) {
      sooner(next, left);
      return;
    }
    run.back_off = run.back_off == Duration::zero()
                       ? services_.restart_back_off
                       : std::min<Duration>(run.back_off * 2, kMostBackOff);
  }
  if (pull(pod, run, faults, next)) start(pod, container, run, next);
}

bool PodRunner::pull(const json& pod, ContainerRun& run, const NodeFaults& faults, Next& next) {
  if (!faults.fail_pulls && (image_is_known(run.image, services_.known_images) ||
                             services_.images.contains(image_repository(run.image)))) {
    pulls_.erase(run.name);
    return true;
  }
  const TimePoint now = services_.clock.now();
  Pull& pull = pulls_[run.name];
  if (now < pull.failed + kPullErrorShown) {
    sooner(next, pull.failed + kPullErrorShown - now);
    return false;
  }
  if (pull.back_off > Duration::zero() && now < pull.again) {
    run.reason = "ImagePullBackOff";
    run.message = "Back-off pulling image \"" + run.image + '"';
    services_.events.normal(pod, "BackOff", run.message);
    sooner(next, pull.again - now);
    return false;
  }
  run.reason = "ErrImagePull";
  run.message = "failed to pull and unpack image \"" + run.image +
                "\": not found (this cluster only has busybox)";
  services_.events.normal(pod, "Pulling", "Pulling image \"" + run.image + '"');
  services_.events.warning(pod, "Failed",
                           "Failed to pull image \"" + run.image + "\": " + run.message);
  services_.events.warning(pod, "Failed", "Error: ErrImagePull");
  pull.back_off = pull.back_off == Duration::zero()
                      ? Duration(kPullBackOff)
                      : std::min<Duration>(pull.back_off * 2, kMostBackOff);
  pull.failed = now;
  pull.again = now + pull.back_off;
  sooner(next, kPullErrorShown);
  return false;
}

void PodRunner::start(const json& pod, const json& container, ContainerRun& run, Next& next) {
  constexpr seconds kConfigRetry{1};
  run.state_folder = state_folder_ + "/" + run.name;
  std::error_code error;
  fs::create_directories(run.state_folder, error);
  const auto own_image = services_.images.find(image_repository(run.image));
  auto spec =
      make_container({.registry = services_.registry,
                      .pod = pod,
                      .container = container,
                      .volumes = *volumes_,
                      .image_root = services_.image_root,
                      .own_image = own_image == services_.images.end() ? "" : own_image->second,
                      .state_folder = run.state_folder,
                      .can_change_user = services_.processes.tools().root});
  if (!spec.ok()) {
    run.reason = "CreateContainerConfigError";
    run.message = spec.error().message;
    services_.events.warning(pod, "Failed", "Error: " + run.message);
    sooner(next, kConfigRetry);
    return;
  }
  services_.events.normal(pod, "Pulled",
                          "Container image \"" + run.image + "\" already present on machine");
  services_.events.normal(pod, "Created", "Created container: " + run.name);
  const auto id = services_.processes.start(*spec, log_path(run.name, false), announce_);
  if (!id.ok()) {
    if (id.error().is(ErrorCode::kCancelled)) return;
    finish(pod, run, {.started = false, .code = 128, .message = id.error().message});
    return;
  }
  run.process = *id;
  run.state = ContainerRun::State::kRunning;
  run.reason.clear();
  run.message.clear();
  run.began = services_.clock.now();
  run.started_at = now_text();
  run.container_id =
      "lpp-devcluster://" + short_hash(uid_ + run.name) + "-" + std::to_string(run.restarts);
  services_.events.normal(pod, "Started", "Started container " + run.name);
}

}  // namespace lpp::devcluster
