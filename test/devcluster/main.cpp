// SPDX-License-Identifier: Apache-2.0
// lpp-devcluster: the embedded cluster as a program of its own.

#include <cstdio>
#include <cxxopts.hpp>
#include <filesystem>
#include <string>

#include "base/log.h"
#include "devcluster/cluster.h"
#include "harness/ending_signals.h"

namespace {

using namespace lpp;
using namespace lpp::devcluster;

void print_use(Cluster& cluster, const std::string& kubeconfig) {
  std::printf(
      "A cluster for trying and testing: one process, in-memory API server, no access control,\n"
      "pods run as busybox under %s.\n"
      "Nothing is kept when it ends. Do not put it on a network.\n\n"
      "  API server   %s\n"
      "  node disks   %s/nodes/<node>\n\n"
      "  export KUBECONFIG=%s\n"
      "  kubectl get nodes,pv,pvc,pods -A\n\n"
      "Ctrl-C ends it.\n",
      cluster.nodes().sandbox().c_str(), cluster.server().url().c_str(), cluster.folder().c_str(),
      kubeconfig.c_str());
  std::fflush(stdout);
}

/// The one line with which a run of the tests begins.
int print_sandbox() {
  const auto tools = find_sandbox_tools();
  std::printf("containers run under %s\n", tools.ok()
                                               ? tools->description().c_str()
                                               : ("nothing: " + tools.error().message).c_str());
  return tools.ok() ? 0 : 1;
}

int run(const cxxopts::ParseResult& arguments) {
  ClusterOptions options;
  options.folder = arguments["dir"].as<std::string>();
  options.port = arguments["port"].as<int>();
  options.nodes.clear();
  for (int i = 1; i <= arguments["nodes"].as<int>(); ++i) {
    options.nodes.push_back("node-" + std::to_string(i));
  }
  auto cluster = Cluster::start(std::move(options));
  if (!cluster.ok()) {
    std::fprintf(stderr, "lpp-devcluster: %s\n", cluster.error().message.c_str());
    return 1;
  }
  std::string kubeconfig = (*cluster)->kubeconfig();
  if (const auto wanted = arguments["kubeconfig-out"].as<std::string>(); !wanted.empty()) {
    const auto written = (*cluster)->server().write_kubeconfig(wanted);
    if (!written.ok()) {
      std::fprintf(stderr, "lpp-devcluster: %s\n", written.error().message.c_str());
      return 1;
    }
    kubeconfig = wanted;
  }
  print_use(**cluster, kubeconfig);
  const sigset_t signals = testing::ending_signals();
  int received = 0;
  sigwait(&signals, &received);
  (*cluster)->stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cxxopts::Options options(
      "lpp-devcluster",
      "A Kubernetes cluster in one process, for trying and testing: an in-memory API server,\n"
      "the control loops that volumes need, and nodes that run pods as sandboxed processes.\n");
  options.add_options()("nodes", "number of nodes", cxxopts::value<int>()->default_value("2"))(
      "dir", "directory for the nodes' disks and the kubeconfig; empty: a temporary one",
      cxxopts::value<std::string>()->default_value(""))(
      "port", "port of the API server on 127.0.0.1; 0: any free one",
      cxxopts::value<int>()->default_value("0"))(
      "kubeconfig-out", "also write the administrator's kubeconfig here",
      cxxopts::value<std::string>()->default_value(""))("debug", "log each step")(
      "sandbox", "print what would run the containers, and end")("h,help", "print this text");

  // Blocked before any thread starts, so that only sigwait() sees them.
  testing::block_ending_signals();
  try {
    const auto arguments = options.parse(argc, argv);
    if (arguments.count("help") > 0) {
      std::fputs(options.help().c_str(), stdout);
      return 0;
    }
    if (arguments.count("sandbox") > 0) return print_sandbox();
    log::set_up(arguments.count("debug") > 0 ? log::Level::kDebug : log::Level::kWarn);
    return run(arguments);
  } catch (const cxxopts::exceptions::exception& error) {
    std::fprintf(stderr, "lpp-devcluster: %s\n%s", error.what(), options.help().c_str());
    return 2;
  }
}
