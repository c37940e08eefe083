#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "harness/installation.h"
#include "harness/kinds.h"
#include "harness/must.h"
#include "harness/objects.h"
#include "harness/volume_audit.h"
#include "real_bed.h"

namespace lpp::testing {

/// The daemon on the real control plane, for one test case. Its log stays in the state directory.
struct RealStory {
  explicit RealStory(const std::string& name)
      : bed(LPP_MUST(RealBed::create())),
        folder(required_setting("LPP_E2E_LOGS") + "/" + name),
        installation(make()),
        audit(*bed) {}

  ~RealStory() {
    // RBAC: whatever the daemon tried, it was allowed to.
    std::ostringstream log;
    log << std::ifstream(installation->log_file()).rdbuf();
    CHECK(log.str().find("forbidden") == std::string::npos);
  }

  void start() {
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
  }
  Kube& admin() { return bed->admin(); }

  const std::unique_ptr<RealBed> bed;
  const std::string folder;
  const std::unique_ptr<Installation> installation;
  VolumeAudit audit;

 private:
  std::unique_ptr<Installation> make() {
    std::filesystem::create_directories(folder);
    return LPP_MUST(Installation::create(
        *bed, {.daemon = required_setting("LPP_E2E_DAEMON"), .folder = folder}));
  }
};

}  // namespace lpp::testing
