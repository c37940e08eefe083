// SPDX-License-Identifier: Apache-2.0
#include "devcluster/quota_demo.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "devcluster/json_names.h"
#include "harness/command_run.h"

namespace lpp::devcluster {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kMi = std::uintmax_t{1} << 20U;
constexpr std::uintmax_t kBefore = 64 * kMi;
constexpr std::uintmax_t kAfter = 128 * kMi;

/// Fills the volume, waits for it to grow, and fills the rest.
constexpr const char* kScript = R"sh(fill() {
  echo "\$ dd if=/dev/zero of=/data/$1 bs=1M count=200"
  dd if=/dev/zero of=/data/$1 bs=1M count=200 2>&1 | grep -v records
  echo '$ df -h /data'
  df -h /data
  echo "-- $1"
}
fill first
until [ "$(df -mP /data | awk 'NR == 2 { print $2 }')" = 128 ]; do sleep 0.1; done
fill second
exec sleep 86400
)sh";

void print_indented(std::string_view text) {
  for (const std::string_view line : split(trim(text), '\n')) {
    std::printf("            %.*s\n", static_cast<int>(line.size()), line.data());
  }
  std::fflush(stdout);
}

}  // namespace

json QuotaDemo::claim() const {
  json claim = Demo::claim();
  claim["spec"]["storageClassName"] = "local-path-quota";
  claim["spec"]["resources"]["requests"]["storage"] = "64Mi";
  return claim;
}

json QuotaDemo::pod() const { return pod_with_script(kScript); }

Result<void> QuotaDemo::show() {
  say("the claim asked for 64Mi; its pod, which is root, writes until nothing more fits:");
  LPP_RETURN_IF_ERROR(watch_fill("first", kBefore, "64.0M"), "64Mi");
  LPP_RETURN_IF_ERROR(grow(), "growing");
  LPP_RETURN_IF_ERROR(watch_fill("second", kAfter - kBefore, "128.0M"), "128Mi");
  return show_usage();
}

Result<void> QuotaDemo::watch_fill(const std::string& name, std::uintmax_t bytes,
                                   std::string_view size) {
  const std::string end = "-- " + name + "\n";
  const TimePoint deadline = clock().now() + kPatience;
  std::string log;
  auto at = std::string::npos;
  while (at == std::string::npos) {  // nothing but the log tells what the pod has done
    if (stopped()) return cancelled();
    if (clock().now() >= deadline) return invalid("the pod does not end to write; it said: " + log);
    clock().sleep_for(std::chrono::milliseconds(20), {});
    log = cluster().nodes().log("default", kPodName, "writer").value_or("");
    at = log.find(end, printed_);
  }
  const std::string_view shown = std::string_view(log).substr(printed_, at - printed_);
  print_indented(shown);
  const auto df = shown.find("$ df ");
  if (df == std::string_view::npos || shown.find(size, df) == std::string_view::npos) {
    return invalid("df in the pod does not show a file system of " + std::string(size));
  }
  printed_ = at + end.size();
  std::error_code error;
  const auto written = fs::file_size(directory() + "/" + name, error);
  if (error || written > bytes || written + kMi < bytes) {
    return invalid("the limit does not hold: " + name + " has " + std::to_string(written) +
                   " bytes, not " + std::to_string(bytes));
  }
  say(std::to_string(written / kMi) + " MiB were written, and not a byte more");
  return {};
}

Result<void> QuotaDemo::grow() {
  const json patch = {{"spec", {{"resources", {{"requests", {{"storage", "128Mi"}}}}}}}};
  std::printf("            $ kubectl patch pvc %s -p '%s'\n", kClaimName, patch.dump().c_str());
  const auto asked = kube().merge(k8s::kPersistentVolumeClaims, {"default", kClaimName}, patch);
  if (!asked.ok()) return asked.error();
  const auto has_grown = [](const json* claim) {
    return claim != nullptr && text_at(*claim, {"status", "capacity", "storage"}) == "128Mi";
  };
  LPP_RETURN_IF_ERROR(
      expect("the claim has 128Mi", {"persistentvolumeclaims", "default", kClaimName}, has_grown),
      "claim");
  say("the claim has 128Mi, while its pod runs; that goes on where it was stopped:");
  return {};
}

Result<void> QuotaDemo::show_usage() {
  LPP_RETURN_IF_ERROR(show_full("local-path-provisioner volumes -A",
                                {"volumes", "-A", "--kubeconfig", cluster().kubeconfig()}),
                      "volumes");
  const std::string base = fs::path(directory()).parent_path();
  LPP_RETURN_IF_ERROR(
      show_full("local-path-provisioner node usage --base /opt/local-path-provisioner",
                {"node", "usage", "--base", base}),
      "usage");
  return show_metrics();
}

Result<void> QuotaDemo::show_metrics() {
  // The volume's are of when it has grown: a helper pod has told them then.
  struct Shown {
    std::string_view name;
    std::string label;
    double least;
    double most;
  };
  const std::string volume = "persistentvolumeclaim=\"" + std::string(kClaimName) + '"';
  const std::string path = "path=\"/opt/local-path-provisioner\"";
  const double disk = 1024.0 * kMi;
  std::printf("            $ curl -s localhost:8080/metrics | grep -e _volume_stats_ -e _bytes\n");
  const std::string text = metrics();
  std::string missing;
  for (const Shown& shown : {
           Shown{"volume_stats_used_bytes", volume, kBefore - kMi, kBefore},
           Shown{"volume_stats_capacity_bytes", volume, kAfter, kAfter},
           Shown{"volumes_requested_bytes", path, kAfter, kAfter},
           Shown{"path_size_bytes", path, 2.0 * kAfter, disk},
           Shown{"path_free_bytes", path, kAfter, disk - kBefore},
       }) {
    const std::string name = "local_path_provisioner_" + std::string(shown.name) + '{';
    bool is_told = false;
    for (const std::string_view line : split(text, '\n')) {
      if (!line.starts_with(name) || line.find(shown.label) == std::string_view::npos) continue;
      print_indented(line);
      const double value = std::strtod(std::string(line.substr(line.rfind(' '))).c_str(), nullptr);
      is_told = value >= shown.least && value <= shown.most;
    }
    if (!is_told) missing += ' ' + std::string(shown.name);
  }
  if (missing.empty()) return {};
  return invalid("/metrics does not tell, or not as it is:" + missing);
}

Result<void> QuotaDemo::show_full(const std::string& typed, const std::vector<std::string>& args) {
  const auto ran = testing::run_command({.program = options().daemon, .args = args}, kPatience);
  if (!ran.ok()) return ran.error();
  std::printf("            $ %s\n", typed.c_str());
  print_indented(ran->text);
  if (ran->code != 0) return invalid(typed + " ended with " + std::to_string(ran->code));
  if (!ran->says("100%")) return invalid(typed + " does not tell that the volume is full");
  return {};
}

}  // namespace lpp::devcluster
