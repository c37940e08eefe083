// SPDX-License-Identifier: Apache-2.0
#include "harness/command_run.h"

#include "harness/file_text.h"
#include "harness/temp_dir.h"

namespace lpp::testing {

Result<CommandOutput> run_command(ChildOptions options, std::chrono::milliseconds limit) {
  const TempDir folder;
  options.log_file = folder.path() + "/out";
  const std::string program = options.program;
  LPP_ASSIGN_OR_RETURN(const auto child, ChildProcess::start(options), program);
  const auto ended = child->wait(limit);
  const std::string text = text_of(options.log_file);
  if (!ended) return Error{ErrorCode::kTimeout, program + " does not end:\n" + text};
  if (ended->signal != 0) {
    return Error{.message = program + ": " + ended->to_string() + "\n" + text};
  }
  return CommandOutput{.code = ended->code, .text = text};
}

}  // namespace lpp::testing
