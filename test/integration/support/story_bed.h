// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "daemon_program.h"
#include "harness/by.h"
#include "harness/embedded/embedded_bed.h"
#include "harness/installation.h"
#include "harness/must.h"
#include "harness/sanitizer_report.h"
#include "harness/temp_dir.h"
#include "harness/volume_audit.h"
#include "integration/support/agent_bed.h"
#include "places/places.h"

namespace lpp::testing {

/// An embedded cluster and the daemon on it, for one test case.
struct StoryBed {
  explicit StoryBed(
      std::vector<std::string> daemon_args = {},
      EmbeddedBed::Options options = {.manifest = repository("deploy/local-path-storage.yaml")},
      By executor = By::kHelperPods)
      : by(executor),
        bed(LPP_MUST(EmbeddedBed::create(options))),
        agents(by == By::kAgents ? std::make_unique<NodeAgents>(*bed, daemon_program()) : nullptr),
        installation(LPP_MUST(Installation::create(*bed, installed(daemon_args)))),
        audit(*bed) {
    if (agents) LPP_MUST(apply_manifest(admin(), repository("deploy/agents/rbac.yaml")));
  }
  StoryBed(std::vector<std::string> daemon_args, By executor)
      : StoryBed(std::move(daemon_args), {.manifest = repository("deploy/local-path-storage.yaml")},
                 executor) {}
  explicit StoryBed(By executor) : StoryBed(std::vector<std::string>{}, executor) {}

  ~StoryBed() {
    CHECK(sanitizer_report(installation->log_text()) == "");
    if (agents) CHECK(agents->sanitizer_reports() == "");
  }
  StoryBed(const StoryBed&) = delete;
  StoryBed& operator=(const StoryBed&) = delete;

  void start() {
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
    if (!agents) return;
    agents->take_ca();
    agents->start_all();
  }
  Kube& admin() { return bed->admin(); }
  /// Of the second executor.
  std::string records() const { return folder.path("records"); }
  std::string disks() const {
    return std::filesystem::path(bed->cluster().disk_root("node-1")).parent_path();
  }

  const By by;
  const TempDir folder;
  const std::unique_ptr<EmbeddedBed> bed;
  const std::unique_ptr<NodeAgents> agents;  // nullptr: there are none
  const std::unique_ptr<Installation> installation;
  VolumeAudit audit;

 private:
  InstallationOptions installed(const std::vector<std::string>& args) const {
    InstallationOptions options{
        .daemon = daemon_program(), .folder = folder.path(), .extra_args = args};
    if (by == By::kDirectories) {
      options.daemon = built("test/harness/lpp-directory-daemon");
      options.env = {{"DIRECTORY_DISKS", disks()}, {"DIRECTORY_RECORDS", records()}};
    }
    if (agents) {
      options.extra_args.insert(options.extra_args.end(),
                                {"--agents", "--agents-port", std::to_string(agents->port())});
    }
    return options;
  }
};

}  // namespace lpp::testing
