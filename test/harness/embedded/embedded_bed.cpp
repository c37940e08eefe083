#include "harness/embedded/embedded_bed.h"

#include "harness/installation.h"

namespace lpp::testing {

Result<std::unique_ptr<EmbeddedBed>> EmbeddedBed::create(const Options& options) {
  std::unique_ptr<EmbeddedBed> bed(new EmbeddedBed);
  LPP_ASSIGN_OR_RETURN(
      bed->cluster_,
      devcluster::Cluster::start(
          {.nodes = options.nodes, .known_images = {"busybox", "rancher/library-busybox"}}),
      "embedded cluster");
  LPP_ASSIGN_OR_RETURN(bed->admin_, Kube::from_kubeconfig(bed->cluster_->kubeconfig()),
                       "administrator");
  LPP_ASSIGN_OR_RETURN(bed->upstream_, bed->admin_->upstream(), "administrator");
  LPP_RETURN_IF_ERROR(apply_manifest(*bed->admin_, options.manifest), "manifest");
  bed->daemon_token_ = bed->cluster_->server().mint_service_account_token(
      kDaemonNamespace, "local-path-provisioner-service-account");
  return bed;
}

}  // namespace lpp::testing
