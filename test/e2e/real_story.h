// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "harness/installation.h"
#include "harness/kinds.h"
#include "harness/must.h"
#include "harness/objects.h"
#include "harness/sanitizer_report.h"
#include "harness/volume_audit.h"
#include "real_bed.h"

namespace lpp::testing {

inline constexpr k8s::Resource kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles",
                                             "ClusterRole", false};

/// The daemon on the real control plane, for one test case. Its log stays in the state directory.
struct RealStory {
  explicit RealStory(const std::string& name, InstallationOptions options = {})
      : bed(LPP_MUST(RealBed::create())),
        folder(required_setting("LPP_E2E_LOGS") + "/" + name),
        installation(make(std::move(options))),
        audit(*bed) {}

  ~RealStory() {
    const std::string log = installation->log_text();
    // RBAC: whatever the daemon tried, it was allowed to.
    if (!may_be_forbidden) CHECK(log.find("forbidden") == std::string::npos);
    CHECK(sanitizer_report(log) == "");
  }
  RealStory(const RealStory&) = delete;
  RealStory& operator=(const RealStory&) = delete;

  void start() {
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
  }
  Kube& admin() { return bed->admin(); }

  const std::unique_ptr<RealBed> bed;
  const std::string folder;
  const std::unique_ptr<Installation> installation;
  VolumeAudit audit;
  bool may_be_forbidden = false;  // the story takes rights away

 private:
  std::unique_ptr<Installation> make(InstallationOptions options) {
    std::filesystem::create_directories(folder);
    options.daemon = required_setting("LPP_E2E_DAEMON");
    options.folder = folder;
    return LPP_MUST(Installation::create(*bed, std::move(options)));
  }
};

}  // namespace lpp::testing
