// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>
#include <variant>

#include "app/agent_process.h"
#include "app/app.h"
#include "app/flag_table.h"
#include "app/options.h"
#include "app/signals.h"
#include "app/version.h"
#include "cli/context.h"
#include "node/kernel.h"

namespace {

using namespace lpp::app;

/// A command that ends by itself: signals end it as they end any program, but where it says when
/// and how.
int run_command(const lpp::cli::Call& call, const char* argv0) {
  if (!call.command->minds_signals) unblock_signals();
  lpp::SystemClock clock;
  const auto commands = all_commands();
  auto context = lpp::cli::process_context(clock, process_environment(), std::string(version()));
  context.end_on_signal = unblock_signals;
  context.stop_on_signal = stop_on_signal;
  context.program = program_name(argv0);
  context.commands = commands;
  return lpp::cli::run(call, context);
}

/// Shows the help, the version or what is wrong with the command line.
int show(const PrintAndExit& print, const char* argv0) {
  std::FILE* const stream = print.exit_code == 0 ? stdout : stderr;
  errno = 0;
  const bool written = std::fputs(print.text.c_str(), stream) >= 0 && std::fflush(stream) == 0;
  const int number = errno;
  if (written || number == EPIPE) return print.exit_code;  // who has left has read enough
  const std::string message = program_name(argv0) + ": standard output cannot be written: " +
                              std::generic_category().message(number) + "\n";
  if (stream == stdout) std::fputs(message.c_str(), stderr);
  return std::max<int>(print.exit_code, lpp::cli::kExitProblem);
}

}  // namespace

int main(int argc, char** argv) {
  // Before anything else: a container's first process loses a signal that it is not ready for. And
  // before any thread starts, for they inherit it.
  block_signals();
  const Invocation invocation = parse_command_line(argc, argv);
  if (const auto* print = std::get_if<PrintAndExit>(&invocation)) {
    return show(*print, argv[0]);
  }
  if (const auto* call = std::get_if<lpp::cli::Call>(&invocation)) {
    return run_command(*call, argv[0]);
  }

  // Few threads work at the same time: more arenas would only hold on to more memory.
  mallopt(M_ARENA_MAX, 2);  // NOLINT(concurrency-mt-unsafe): no thread yet
  // What is large is held for a moment: it goes back at once, and leaves no holes.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // NOLINT(concurrency-mt-unsafe): no thread yet
  if (const auto* agent = std::get_if<AgentOptions>(&invocation)) {
    lpp::node::Kernel kernel;
    return run_agent_until_signal(*agent, kernel);
  }
  App app(std::get<Options>(invocation));
  return run_until_signal(app);
}
