// SPDX-License-Identifier: Apache-2.0
#include "harness/embedded/embedded_bed.h"

#include <fstream>

#include "devcluster/apiserver/rbac.h"
#include "fakes/setting.h"
#include "harness/installation.h"

namespace lpp::testing {

EmbeddedBed::~EmbeddedBed() {
  const auto file = setting("LPP_RIGHTS_RECORD");
  if (!file || !records_rights_ || cluster_ == nullptr) return;
  std::ofstream out(*file, std::ios::app);
  for (const auto& line : cluster_->server().rbac().used()) out << line << '\n';
}

Result<std::unique_ptr<EmbeddedBed>> EmbeddedBed::create(const Options& options) {
  std::unique_ptr<EmbeddedBed> bed(new EmbeddedBed);
  LPP_ASSIGN_OR_RETURN(
      bed->cluster_,
      devcluster::Cluster::start({.nodes = options.nodes,
                                  .known_images = {"busybox", "rancher/library-busybox"},
                                  .images = options.images,
                                  .shared_path = kShared,
                                  .run_controllers = options.run_controllers,
                                  .server = {.protobuf = options.protobuf},
                                  .registry = {.recovers_expansion = options.recovers_expansion}}),
      "embedded cluster");
  LPP_ASSIGN_OR_RETURN(bed->admin_, Kube::from_kubeconfig(bed->cluster_->kubeconfig()),
                       "administrator");
  LPP_ASSIGN_OR_RETURN(bed->upstream_, bed->admin_->upstream(), "administrator");
  LPP_RETURN_IF_ERROR(apply_manifest(*bed->admin_, options.manifest), "manifest");
  bed->daemon_token_ = bed->cluster_->server().mint_service_account_token(
      options.account_namespace, "local-path-provisioner-service-account");
  return bed;
}

}  // namespace lpp::testing
