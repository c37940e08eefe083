#include <array>

#include "cli/version_command.h"

namespace lpp::cli {

namespace {

/// In the order of the help.
const std::array kCommands = {kVersionCommand, kCompletionCommand};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace lpp::cli
