// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flags/flag.h"
#include "flags/flag_reader.h"
#include "flags/parser.h"

namespace lpp::cli {

using flags::find_flag;
using flags::Flag;
using flags::FlagGroup;
using flags::FlagReader;
using flags::GetEnv;
using flags::Given;
using flags::parse_flags;

struct Context;

/// Exit codes of all commands. A cluster that is not reached is told from a problem by `check`
/// only: for the others it is what is wrong.
enum ExitCode : int { kExitOk = 0, kExitProblem = 1, kExitUsage = 2, kExitUnreachable = 3 };

/// One command of the program, as its help, the parser and the shells know it. Static text.
struct Command {
  std::string_view name;
  std::string_view summary;      // one line
  std::string_view arguments{};  // of the usage line, e.g. "NAMESPACE/CLAIM"
  std::string_view text{};       // the help; the usage line follows its first paragraph
  std::span<const FlagGroup> flags{};
  /// Runs it and returns the exit code; nullptr for what runs until it is stopped: main() does
  /// that.
  int (*run)(const Given& given, Context& context) = nullptr;
  /// Words that completion offers, separated by '|', or what it offers from the cluster.
  std::string_view words{};
  flags::Values values = flags::Values::kNone;
  bool hidden = false;  // for scripts: not in the help
  /// Signals wait until it says what they do: Context::end_on_signal or stop_on_signal.
  bool minds_signals = false;
};

/// A command as it was called.
struct Call {
  const Command* command = nullptr;
  Given given{};
};

/// Flags accepted before the command, and after it too.
const FlagGroup& global_flags();

/// The command's groups with the global flags in front.
std::vector<FlagGroup> all_flags(const Command& command);

/// Every command but `start`.
std::span<const Command> commands();

/// The command of that name; nullptr if there is none.
const Command* find_command(std::span<const Command* const> all, std::string_view name);

/// "PROGRAM volumes [CLAIM...] [flags]".
std::string usage_line(const Command& command, std::string_view program);

/// The help of the program and of one command. `program` is what the user calls it.
std::string program_help(std::span<const Command* const> all, std::string_view program);
std::string command_help(const Command& command, std::string_view program);

}  // namespace lpp::cli
