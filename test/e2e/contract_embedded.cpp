// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "contract_case.h"
#include "devcluster/cluster.h"

namespace lpp::testing {

Kube& contract_cluster() {
  // No nodes: nothing here may depend on pods that run.
  static const std::unique_ptr<devcluster::Cluster> cluster =
      LPP_MUST(devcluster::Cluster::start({.nodes = {}}));
  static const std::unique_ptr<Kube> kube = LPP_MUST(Kube::from_kubeconfig(cluster->kubeconfig()));
  return *kube;
}

}  // namespace lpp::testing
