// SPDX-License-Identifier: Apache-2.0
// lpp-demo: `make demo`.

#include <cstdio>
#include <cstdlib>
#include <cxxopts.hpp>
#include <string>

#include "base/log.h"
#include "devcluster/agents_demo.h"
#include "devcluster/demo.h"
#include "devcluster/quota_demo.h"
#include "harness/ending_signals.h"
#include "places/places.h"

int main(int argc, char** argv) {
  cxxopts::Options options("lpp-demo",
                           "Shows the whole life of a volume on an embedded cluster.\n"
                           "DEMO_KEEP=1 in the environment leaves it running until Ctrl-C.\n");
  options.add_options()("daemon", "the local-path-provisioner program",
                        cxxopts::value<std::string>())(
      "manifest", "the manifest to install",
      cxxopts::value<std::string>()->default_value(
          lpp::testing::repository("deploy/local-path-storage.yaml")))(
      "dir", "directory for the nodes' disks; empty: a temporary one",
      cxxopts::value<std::string>()->default_value(""))(
      "agents", "show it with an agent on each node instead of helper pods",
      cxxopts::value<bool>()->default_value("false"))(
      "quota-image",
      "show sizes that hold, with this root file system as the image of helper pods; the nodes' "
      "disks need project quota",
      cxxopts::value<std::string>())("h,help", "print this text");

  // Blocked before any thread starts: the demo asks for them where it can act on them.
  lpp::testing::block_ending_signals();
  try {
    const auto arguments = options.parse(argc, argv);
    if (arguments.count("help") > 0) {
      std::fputs(options.help().c_str(), stdout);
      return 0;
    }
    lpp::log::set_up(lpp::log::Level::kError);
    lpp::devcluster::DemoOptions demo;
    demo.daemon = arguments["daemon"].as<std::string>();
    demo.manifest = arguments["manifest"].as<std::string>();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs yet
    const char* keep = std::getenv("DEMO_KEEP");
    demo.keep = keep != nullptr && std::string(keep) != "" && std::string(keep) != "0";
    demo.folder = arguments["dir"].as<std::string>();
    demo.shown = "deploy/local-path-storage.yaml";
    if (arguments["agents"].as<bool>()) {
      demo.manifest = lpp::testing::repository("test/chart/kustomize/node-agents.diff");
      demo.shown = "examples/node-agents";
      return lpp::devcluster::AgentsDemo(demo).run();
    }
    if (arguments.count("quota-image") == 0) return lpp::devcluster::Demo(demo).run();
    demo.manifest = lpp::testing::repository("test/chart/kustomize/hard-quota.yaml");
    demo.shown = "examples/hard-quota";
    demo.images = {{"local-path-provisioner", arguments["quota-image"].as<std::string>()}};
    return lpp::devcluster::QuotaDemo(demo).run();
  } catch (const cxxopts::exceptions::exception& error) {
    std::fprintf(stderr, "lpp-demo: %s\n%s", error.what(), options.help().c_str());
    return 2;
  }
}
