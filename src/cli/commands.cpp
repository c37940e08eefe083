// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cli/adopt_command.h"
#include "cli/check.h"
#include "cli/explain_path.h"
#include "cli/history.h"
#include "cli/node_command.h"
#include "cli/reference.h"
#include "cli/release_command.h"
#include "cli/sweep_command.h"
#include "cli/version_command.h"
#include "cli/volumes_command.h"

namespace lpp::cli {

std::span<const Command> commands() {
  // Made at the first call: the commands' own files may not have been initialised before.
  static const std::array all = {kVolumesCommand,    kHistoryCommand,  kExplainPathCommand,
                                 kCheckCommand,      kAdoptCommand,    kReleaseCommand,
                                 kSweepCommand,      kNodeCommand,     kVersionCommand,
                                 kCompletionCommand, kCompleteCommand, kReferenceCommand};
  return all;
}

}  // namespace lpp::cli
