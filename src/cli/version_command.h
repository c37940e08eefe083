#pragma once

#include "cli/context.h"

namespace lpp::cli {

/// `version`: one line, or with -o json {"version": "0.1.0"}.
extern const Command kVersionCommand;

/// `completion bash|zsh`: a script made from the tables of all commands.
extern const Command kCompletionCommand;

}  // namespace lpp::cli
