// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "harness/raw_client.h"
#include "story_steps.h"

namespace lpp::testing {

inline constexpr const char* kTenantsData = "what a tenant has written";

/// The daemon with agents on the nodes, all of them real processes. One thread.
struct AgentStory : StoryBed {
  AgentStory() : StoryBed(By::kAgents) {}

  /// The daemon, and agents on these nodes.
  void start_with(const std::vector<std::string>& nodes) {
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
    agents->take_ca();
    // The server has its certificate a moment after the CA can be read.
    wait_for(*this, "agents are served", [&]() -> std::string {
      return RawClient(agents->port()).connected() ? "" : "no connection";
    });
    for (const auto& node : nodes) agents->start(node);
    for (const auto& node : nodes) agents->wait_connected(node);
    LPP_MUST(admin().apply(namespace_object("app")));
  }
  void start_with_all() { start_with(bed->nodes()); }

  k8s::ObjectKey want(const std::string& name, const std::string& node = "node-1",
                      const std::string& storage_class = "local-path") {
    const k8s::ObjectKey key{"app", name};
    LPP_MUST(admin().create(
        claim_object({.key = key, .storage_class = storage_class, .selected_node = node})));
    return key;
  }
  std::vector<k8s::ObjectKey> want_many(int count) {
    std::vector<k8s::ObjectKey> claims;
    for (int i = 0; i < count; ++i) {
      claims.push_back(want("c" + std::to_string(i), i % 2 == 0 ? "node-1" : "node-2"));
    }
    return claims;
  }
  VolumeFacts wait_bound_and_write(const k8s::ObjectKey& claim) {
    const auto volume = LPP_MUST(audit.wait_bound(claim));
    std::filesystem::create_directories(volume.disk + "/below");
    std::ofstream(volume.disk + "/below/data") << kTenantsData;
    return volume;
  }
  void remove_and_wait(const k8s::ObjectKey& claim, const VolumeFacts& volume) {
    LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, claim));
    LPP_MUST(audit.wait_deleted(claim, volume));
  }
  void wait_directories(std::size_t count) {
    wait_for(*this, std::to_string(count) + " directories", [&]() -> std::string {
      const auto now = audit.directories().size();
      return now >= count ? "" : "there are " + std::to_string(now);
    });
  }
  /// Deletes all claims; nothing may be left of them, be it a record.
  void remove_all(const std::vector<k8s::ObjectKey>& claims) {
    for (const auto& claim : claims) LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, claim));
    wait_for(*this, "all volumes are gone", [&]() -> std::string {
      const auto left = LPP_MUST(admin().list(k8s::kPersistentVolumes)).size();
      return left == 0 ? "" : std::to_string(left) + " are there";
    });
    LPP_MUST(audit.wait_empty());
    wait_no_records();
  }
  /// Of volumes, of operations and of what was moved away to be removed.
  void wait_no_records() {
    wait_for(*this, "nothing is on record", [&]() -> std::string {
      for (const auto& node : bed->nodes()) {
        for (const auto& base : bed->base_paths()) {
          const std::string kept = bed->on_disk(node, base) + "/.local-path-provisioner";
          std::error_code none;
          for (const auto& file : std::filesystem::directory_iterator(kept, none)) {
            const std::string name = file.path().filename();
            if (name != "lock" && name != "identity.json" && name != "spare") return file.path();
          }
        }
      }
      return "";
    });
  }
  std::ptrdiff_t helper_pods_made() const { return pods_asked_for(*this); }
  std::string page(const std::string& path) const { return testing::page(*this, path); }
  /// "" when the metrics say all of these at once, else all that they say.
  std::string metrics_lack(const std::vector<std::string>& lines) const {
    const std::string metrics = page("/metrics");
    const bool all = std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return metrics.find("\n" + line + "\n") != std::string::npos;
    });
    return all ? "" : metrics;
  }
  void wait_for_metric(const std::string& line) {
    wait_for(*this, "the metrics say " + line, [&] { return metrics_lack({line}); });
  }
};

}  // namespace lpp::testing
