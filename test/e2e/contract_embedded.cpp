// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "contract_case.h"
#include "devcluster/cluster.h"
#include "fakes/test_run_listener.h"

namespace lpp::testing {
namespace {

std::unique_ptr<devcluster::Cluster> g_cluster;
std::unique_ptr<Kube> g_kube;

/// Ends the cluster with the tests: its threads must not outlive what the program destroys when it
/// exits.
struct ClusterEnd : TestRunListener {
  using TestRunListener::TestRunListener;
  void test_run_end(const doctest::TestRunStats& /*unused*/) override {
    g_kube.reset();
    g_cluster.reset();
  }
};

REGISTER_LISTENER("cluster", 1, ClusterEnd);

}  // namespace

Kube& contract_cluster() {
  if (g_kube == nullptr) {
    // No nodes: nothing here may depend on pods that run.
    g_cluster = LPP_MUST(devcluster::Cluster::start({.nodes = {}}));
    g_kube = LPP_MUST(Kube::from_kubeconfig(g_cluster->kubeconfig()));
  }
  return *g_kube;
}

}  // namespace lpp::testing
