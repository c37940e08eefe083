// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <algorithm>
#include <array>

namespace lpp::cli {

namespace {

constexpr std::array kGlobal = {
    Flag{.name = "debug",
         .short_name = 'd',
         .env = "RANCHER_DEBUG",
         .fallback = "false",
         .help = "log each step"},
    Flag{.name = "help", .short_name = 'h', .fallback = "false", .help = "show this help"},
    Flag{.name = "version", .short_name = 'v', .fallback = "false", .help = "show the version"},
};

constexpr FlagGroup kGlobalGroup{"Global flags (before or after the command)", kGlobal};

}  // namespace

const FlagGroup& global_flags() { return kGlobalGroup; }

std::vector<FlagGroup> all_flags(const Command& command) {
  std::vector<FlagGroup> all{kGlobalGroup};
  all.insert(all.end(), command.flags.begin(), command.flags.end());
  return all;
}

const Command* find_command(std::span<const Command* const> all, std::string_view name) {
  const auto it = std::find_if(all.begin(), all.end(),
                               [&](const Command* command) { return command->name == name; });
  return it == all.end() ? nullptr : *it;
}

std::string usage_line(const Command& command, std::string_view program) {
  std::string line(program);
  line.append(" ").append(command.name);
  if (!command.arguments.empty()) line.append(" ").append(command.arguments);
  if (!command.flags.empty()) line.append(" [flags]");
  return line;
}

std::string program_help(std::span<const Command* const> all, std::string_view program) {
  std::string out =
      "local-path-provisioner turns directories on the nodes' own disks into Kubernetes volumes.\n"
      "\n"
      "Usage:\n"
      "  ";
  out.append(program).append(" [global flags] COMMAND [flags]\n\nCommands:\n");
  std::size_t width = 4;  // of "help"
  for (const Command* command : all) {
    if (!command->hidden) width = std::max(width, command->name.size());
  }
  const auto line = [&](std::string_view name, std::string_view summary) {
    out.append("  ").append(name).append(width - name.size() + 2, ' ').append(summary) += '\n';
  };
  for (const Command* command : all) {
    if (!command->hidden) line(command->name, command->summary);
  }
  line("help", "show this help, or that of a command");
  out +=
      "\nExamples:\n"
      "  local-path-provisioner start --config /etc/config/config.json\n";
  for (const std::string_view example :
       {"volumes -A", "volumes -n web data   # why is this claim Pending?",
        "history --since 12h   # what did it do last night?"}) {
    out.append("  ").append(program).append(" ").append(example) += '\n';
  }
  append_group(out, kGlobalGroup);
  return out;
}

std::string command_help(const Command& command, std::string_view program) {
  // The texts say "local-path-provisioner", which may be called otherwise.
  std::string text(command.text);
  constexpr std::string_view kOwnName = "local-path-provisioner";
  if (program != kOwnName) {
    for (auto at = text.find(std::string(kOwnName) + " "); at != std::string::npos;
         at = text.find(std::string(kOwnName) + " ", at + program.size())) {
      text.replace(at, kOwnName.size(), program);
    }
  }
  const auto body = text.find("\n\n");
  std::string out = text.substr(0, body == std::string::npos ? text.size() : body + 1);
  out.append("\nUsage:\n  ").append(usage_line(command, program)) += '\n';
  if (body != std::string::npos) out.append(text.substr(body + 1));
  for (const FlagGroup& group : command.flags) append_group(out, group);
  append_group(out, kGlobalGroup);
  return out;
}

}  // namespace lpp::cli
