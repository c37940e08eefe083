#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "daemon_program.h"
#include "harness/embedded/embedded_bed.h"
#include "harness/installation.h"
#include "harness/must.h"
#include "harness/sanitizer_report.h"
#include "harness/temp_dir.h"
#include "harness/volume_audit.h"

namespace lpp::testing {

/// An embedded cluster and the daemon on it, for one test case.
struct StoryBed {
  explicit StoryBed(std::vector<std::string> daemon_args = {},
                    EmbeddedBed::Options options = {.manifest = LPP_MANIFEST})
      : bed(LPP_MUST(EmbeddedBed::create(options))),
        installation(LPP_MUST(Installation::create(
            *bed,
            {.daemon = daemon_program(), .folder = folder.path(), .extra_args = daemon_args}))),
        audit(*bed) {}

  ~StoryBed() { CHECK(sanitizer_report(installation->log_text()) == ""); }
  StoryBed(const StoryBed&) = delete;
  StoryBed& operator=(const StoryBed&) = delete;

  void start() {
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
  }
  Kube& admin() { return bed->admin(); }

  const TempDir folder;
  const std::unique_ptr<EmbeddedBed> bed;
  const std::unique_ptr<Installation> installation;
  VolumeAudit audit;
};

}  // namespace lpp::testing
