// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.h"

namespace lpp::cli {

/// `version`: one line, or with -o json {"version": "0.1.0"}.
extern const Command kVersionCommand;

/// `__complete`, for the scripts of `completion` and for kubectl, which calls the program by the
/// name kubectl_complete-local_path: one line for each offer, a tab and what it is, and last ":4",
/// or
/// ":0" where files are to be completed.
extern const Command kCompleteCommand;
inline constexpr std::string_view kCompletionProgram = "kubectl_complete-local_path";

/// `completion bash|zsh|fish`: a script that asks `__complete`.
extern const Command kCompletionCommand;

}  // namespace lpp::cli
