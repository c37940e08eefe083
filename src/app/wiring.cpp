// SPDX-License-Identifier: Apache-2.0
#include "app/wiring.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "app/version.h"
#include "base/strings.h"
#include "provisioner/names.h"
#include "provisioner/plan.h"
#include "provisioner/resize_decision.h"
#include "provisioner/volume_rules.h"

namespace lpp::app {

namespace {

/// How long the start waits for the API server before it gives up and says so.
constexpr std::chrono::seconds kFirstListLimit{60};

/// No object's name is longer: what is cut there is still nobody's.
constexpr std::size_t kMaxName = 254;

template <std::size_t N>
void keep_only(k8s::StringMap& map, const std::array<std::string_view, N>& keys) {
  std::erase_if(map, [&](const auto& entry) {
    return std::find(keys.begin(), keys.end(), entry.first) == keys.end();
  });
}

}  // namespace

std::string make_identity() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + "_" + random_uuid();
}

Result<k8s::RestConfig> rest_config(const Options& options) {
  k8s::RestConfigSources sources;
  sources.kubeconfig_flag = options.kubeconfig;
  sources.getenv = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): read only
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  auto config = k8s::load_rest_config(sources);
  if (config.ok()) config->user_agent = "local-path-provisioner/" + std::string(version());
  return config;
}

k8s::LeaderElectorOptions elector_options(const Options& options, const std::string& identity) {
  const LeaderElection& election = options.leader_election;
  return {.ns = election.resource_namespace,
          .lease_name = election.resource_name,
          .identity = identity,
          .lease_duration = election.lease_duration,
          .renew_deadline = election.renew_deadline,
          .retry_period = election.retry_period};
}

k8s::Informer<k8s::PersistentVolume>::Trim trim_volumes(provisioner::ServedNames names) {
  return [names = std::move(names)](k8s::PersistentVolume& volume) {
    if (!provisioner::is_ours(volume, names)) {
      if (!provisioner::made_by_hand(volume)) return false;
      volume = provisioner::reduced_to_place(volume);
      return true;
    }
    volume.meta.labels.clear();
    volume.meta.owner_references.clear();
    volume.meta.generate_name = {};
    // Which disk was there last.
    const bool names_disk = k8s::find(volume.meta.annotations, provisioner::kVolumeDisk) != nullptr;
    if (!names_disk) volume.meta.creation_timestamp = {};
    return true;
  };
}

k8s::Informer<k8s::PersistentVolumeClaim>::Trim trim_claims(provisioner::ServedNames names) {
  return [names = std::move(names)](k8s::PersistentVolumeClaim& claim) {
    const bool bound = !claim.volume_name.empty();
    const bool ours = provisioner::may_ask_for(claim, names);
    if (claim.volume_name.size() > kMaxName) claim.volume_name.resize(kMaxName);
    if (ours && !bound) return true;  // patterns may ask for any of its metadata
    // Only what ties it to its volume is still of interest, and what it asks for if it grows: it
    // may be bound to a volume of ours without having asked us for one.
    const bool grows = provisioner::wants_resize(claim);
    k8s::PersistentVolumeClaim kept;
    kept.meta.name = std::move(claim.meta.name);
    kept.meta.ns = std::move(claim.meta.ns);
    kept.meta.uid = std::move(claim.meta.uid);
    kept.meta.resource_version = std::move(claim.meta.resource_version);
    kept.volume_name = std::move(claim.volume_name);
    if (grows) {
      kept.storage_request = std::move(claim.storage_request);
      kept.capacity = std::move(claim.capacity);
      kept.allocated = std::move(claim.allocated);
      kept.resize_status = std::move(claim.resize_status);
      kept.conditions = std::move(claim.conditions);
    }
    // Whoever it asked: a volume of ours that was adopted, too, is to be seen losing its claim.
    kept.meta.deletion_timestamp = std::move(claim.meta.deletion_timestamp);
    if (ours || grows) kept.phase = std::move(claim.phase);
    if (ours) {
      kept.meta.annotations = std::move(claim.meta.annotations);
      keep_only(kept.meta.annotations, k8s::kClaimAnnotations);
      kept.storage_class_name = std::move(claim.storage_class_name);
    }
    claim = std::move(kept);
    return true;
  };
}

bool trim_node(k8s::Node& node) {
  node.meta.annotations.clear();
  node.meta.owner_references.clear();
  node.meta.finalizers = {};
  return true;
}

bool trim_pod(k8s::Pod& pod) {
  pod.meta.labels.clear();
  return true;
}

k8s::Informer<k8s::StorageClass>::Trim trim_classes(provisioner::ServedNames names) {
  return [names = std::move(names)](k8s::StorageClass& storage_class) {
    if (names.has(storage_class.provisioner)) return true;
    k8s::StorageClass kept;
    kept.meta.name = std::move(storage_class.meta.name);
    kept.meta.uid = std::move(storage_class.meta.uid);
    kept.meta.resource_version = std::move(storage_class.meta.resource_version);
    kept.provisioner = std::move(storage_class.provisioner);
    storage_class = std::move(kept);
    return true;
  };
}

std::unique_ptr<config::TextSource> config_source(const Options& options,
                                                  k8s::Informer<k8s::ConfigMap>& config_map,
                                                  Clock& clock, const std::stop_token& stop) {
  if (options.config.ends_with(".json")) return config::make_file_source(options.config, clock);
  if (!options.config.empty()) return config::make_inline_source("--config", options.config);
  return config::make_config_map_source(config_map,
                                        {options.namespace_name, options.configmap_name},
                                        "config.json", clock, kFirstListLimit, stop);
}

std::string template_file(const Options& options) {
  if (!options.helper_pod_file.empty()) return options.helper_pod_file;
  if (options.config_mount_path.empty()) return {};
  const auto file = std::filesystem::path(options.config_mount_path) / "helperPod.yaml";
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) ? file.string() : std::string();
}

std::unique_ptr<config::TextSource> template_source(const Options& options,
                                                    k8s::Informer<k8s::ConfigMap>& config_map,
                                                    Clock& clock, const std::stop_token& stop) {
  if (auto file = template_file(options); !file.empty()) {
    return config::make_file_source(std::move(file), clock);
  }
  return config::make_config_map_source(config_map,
                                        {options.namespace_name, options.configmap_name},
                                        "helperPod.yaml", clock, kFirstListLimit, stop);
}

bool uses_config_map(const Options& options) {
  return options.config.empty() || template_file(options).empty();
}

}  // namespace lpp::app
