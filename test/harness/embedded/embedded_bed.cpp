#include "harness/embedded/embedded_bed.h"

#include <nlohmann/json.hpp>

#include "harness/installation.h"
#include "harness/yaml_objects.h"

namespace lpp::testing {

Result<void> apply_manifest(Kube& admin, const std::string& file) {
  LPP_ASSIGN_OR_RETURN(const auto objects, read_yaml_objects(file), "manifest");
  for (const auto& object : objects) {
    if (object.value("kind", "") == "Deployment") continue;
    LPP_RETURN_IF_ERROR(admin.apply(object), file);
  }
  return {};
}

Result<std::unique_ptr<EmbeddedBed>> EmbeddedBed::create(const Options& options) {
  auto folder = std::make_unique<TempDir>();
  auto clock = std::make_unique<SystemClock>();
  auto registry = std::make_unique<devcluster::Registry>();
  devcluster::NodesOptions node_options{.folder = folder->path("nodes"),
                                        .known_images = {"busybox", "rancher/library-busybox"},
                                        .threads = options.node_threads};
  LPP_ASSIGN_OR_RETURN(
      auto nodes, devcluster::Nodes::create(*registry, *clock, std::move(node_options)), "nodes");
  std::unique_ptr<EmbeddedBed> bed(
      new EmbeddedBed(std::move(folder), std::move(clock), std::move(registry), std::move(nodes)));
  LPP_RETURN_IF_ERROR(bed->start(options), "embedded cluster");
  return bed;
}

EmbeddedBed::EmbeddedBed(std::unique_ptr<TempDir> folder, std::unique_ptr<SystemClock> clock,
                         std::unique_ptr<devcluster::Registry> registry,
                         std::unique_ptr<devcluster::Nodes> nodes)
    : folder_(std::move(folder)),
      clock_(std::move(clock)),
      registry_(std::move(registry)),
      nodes_owner_(std::move(nodes)),
      nodes_(*nodes_owner_) {}

EmbeddedBed::~EmbeddedBed() {
  if (server_ != nullptr) server_->stop();
  if (controllers_ != nullptr) controllers_->stop();
  nodes_.stop();
}

Result<void> EmbeddedBed::start(const Options& options) {
  server_ = std::make_unique<devcluster::ApiServer>(*registry_);
  server_->set_log_source(
      [this](const std::string& ns, const std::string& pod, const std::string& container) {
        return nodes_.log(ns, pod, container);
      });
  LPP_RETURN_IF_ERROR(server_->start(), "API server");
  controllers_ = std::make_unique<devcluster::Controllers>(*registry_, *clock_);
  controllers_->start();
  nodes_.start();
  for (std::size_t i = 1; i <= options.nodes; ++i) {
    LPP_RETURN_IF_ERROR(nodes_.add_node("node-" + std::to_string(i)), "node");
  }
  const std::string kubeconfig = folder_->path("admin.kubeconfig");
  LPP_RETURN_IF_ERROR(server_->write_kubeconfig(kubeconfig), "kubeconfig");
  LPP_ASSIGN_OR_RETURN(admin_, Kube::from_kubeconfig(kubeconfig), "administrator");
  LPP_ASSIGN_OR_RETURN(upstream_, admin_->upstream(), "administrator");
  LPP_RETURN_IF_ERROR(apply_manifest(*admin_, options.manifest), "manifest");
  daemon_token_ = server_->mint_service_account_token(kDaemonNamespace,
                                                      "local-path-provisioner-service-account");
  return {};
}

std::string EmbeddedBed::on_disk(const std::string& node, const std::string& path) const {
  return nodes_.disk_root(node) + path;
}

Patience EmbeddedBed::patience() const {
  return {.limit = std::chrono::seconds(60), .interval = std::chrono::milliseconds(10)};
}

}  // namespace lpp::testing
