// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/paths.h"
#include "devcluster/cluster.h"
#include "harness/test_bed.h"

namespace lpp::testing {

/// The embedded cluster with the objects of the manifest applied. Each one is a cluster of its own;
/// everything is gone when it goes.
class EmbeddedBed final : public TestBed {
 public:
  EmbeddedBed(const EmbeddedBed&) = delete;
  EmbeddedBed& operator=(const EmbeddedBed&) = delete;
  struct Options {
    std::string manifest{};                                // deploy/local-path-storage.yaml
    std::string account_namespace = "local-path-storage";  // of the daemon's ServiceAccount
    std::vector<std::string> nodes{"node-1", "node-2"};
    bool protobuf = true;                         // the API server can answer so
    std::map<std::string, std::string> images{};  // as devcluster::ClusterOptions::images
    bool recovers_expansion = true;  // as devcluster::Registry::Options::recovers_expansion
    bool run_controllers = true;     // or cluster().start_controllers() does, later
  };

  static Result<std::unique_ptr<EmbeddedBed>> create(const Options& options);
  /// Adds the grants that were used to the file of LPP_RIGHTS_RECORD in the environment, if set.
  ~EmbeddedBed() override;
  /// It uses grants that the manifests do not hold.
  void record_no_rights() { records_rights_ = false; }

  std::string name() const override { return "embedded cluster"; }
  Kube& admin() override { return *admin_; }
  Upstream upstream() const override { return upstream_; }
  std::string daemon_token() const override { return daemon_token_; }
  std::vector<std::string> nodes() const override { return cluster_->nodes().names(); }
  std::string on_disk(const std::string& node, const std::string& path) const override {
    if (is_at_or_below(path, kShared)) {
      return cluster_->nodes().shared_folder() + path.substr(std::string_view(kShared).size());
    }
    return cluster_->disk_root(node) + path;
  }
  std::vector<std::string> base_paths() const override {
    return {"/opt/local-path-provisioner", "/mnt/second/disk"};
  }
  std::string shared_path() const override { return kShared; }
  Patience patience() const override {
    return {.limit = std::chrono::seconds(60), .interval = std::chrono::milliseconds(10)};
  }

  devcluster::Cluster& cluster() { return *cluster_; }

 private:
  static constexpr const char* kShared = "/mnt/shared";

  EmbeddedBed() = default;

  std::unique_ptr<devcluster::Cluster> cluster_;
  std::unique_ptr<Kube> admin_;
  Upstream upstream_;
  std::string daemon_token_;
  bool records_rights_ = true;
};

}  // namespace lpp::testing
