#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "devcluster/apiserver/server.h"
#include "devcluster/controllers/controllers.h"
#include "devcluster/node/nodes.h"
#include "harness/temp_dir.h"
#include "harness/test_bed.h"

namespace lpp::testing {

/// The embedded cluster with the objects of the manifest applied. Each one is a cluster of its own;
/// everything is gone when it goes.
class EmbeddedBed final : public TestBed {
 public:
  struct Options {
    std::string manifest{};  // deploy/local-path-storage.yaml
    std::size_t nodes = 2;
    std::size_t node_threads = 2;
  };

  static Result<std::unique_ptr<EmbeddedBed>> create(const Options& options);
  ~EmbeddedBed() override;

  std::string name() const override { return "embedded cluster"; }
  Kube& admin() override { return *admin_; }
  Upstream upstream() const override { return upstream_; }
  std::string daemon_token() const override { return daemon_token_; }
  std::vector<std::string> nodes() const override { return nodes_.names(); }
  std::string on_disk(const std::string& node, const std::string& path) const override;
  std::vector<std::string> base_paths() const override {
    return {"/opt/local-path-provisioner", "/mnt/second/disk"};
  }
  Patience patience() const override;

  devcluster::Nodes& node_fleet() { return nodes_; }
  devcluster::ApiServer& api_server() { return *server_; }
  devcluster::Registry& registry() { return *registry_; }

 private:
  EmbeddedBed(std::unique_ptr<TempDir> folder, std::unique_ptr<SystemClock> clock,
              std::unique_ptr<devcluster::Registry> registry,
              std::unique_ptr<devcluster::Nodes> nodes);
  Result<void> start(const Options& options);

  const std::unique_ptr<TempDir> folder_;
  const std::unique_ptr<SystemClock> clock_;
  const std::unique_ptr<devcluster::Registry> registry_;
  const std::unique_ptr<devcluster::Nodes> nodes_owner_;
  devcluster::Nodes& nodes_;
  std::unique_ptr<devcluster::Controllers> controllers_;
  std::unique_ptr<devcluster::ApiServer> server_;
  std::unique_ptr<Kube> admin_;
  Upstream upstream_;
  std::string daemon_token_;
};

/// Creates every object of the manifest but the Deployment: the daemon under test is a process.
Result<void> apply_manifest(Kube& admin, const std::string& file);

}  // namespace lpp::testing
