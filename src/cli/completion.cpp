#include <algorithm>
#include <string>

#include "base/log.h"
#include "base/strings.h"
#include "cli/version_command.h"

namespace lpp::cli {

namespace {

/// In single quotes, for either shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string spaced(std::string_view choices) {
  std::string out(choices);
  std::replace(out.begin(), out.end(), '|', ' ');
  return out;
}

template <typename Visit>
void for_each_flag(const Command& command, const Visit& visit) {
  for (const FlagGroup& group : all_flags(command)) {
    for (const Flag& flag : group.flags) visit(flag);
  }
}

std::vector<const Command*> shown(std::span<const Command* const> all) {
  std::vector<const Command*> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [](const Command* command) { return !command->hidden; });
  return out;
}

/// Names of the flags as words of the command line.
std::string flag_words(const Command& command) {
  std::string out;
  for_each_flag(command, [&](const Flag& flag) {
    out.append(out.empty() ? "--" : " --").append(flag.name);
    if (flag.short_name != 0) out.append(" -").append(1, flag.short_name);
  });
  return out;
}

/// "--f|-f" as a pattern of `case`.
std::string pattern(const Flag& flag) {
  std::string out = "--" + std::string(flag.name);
  if (flag.short_name != 0) out.append("|-").append(1, flag.short_name);
  return out;
}

std::string bash_script(std::span<const Command* const> all) {
  std::string names = "help";
  for (const Command* command : shown(all)) names.append(" ").append(command->name);
  std::string out = fmt::format(
      R"(# bash completion of local-path-provisioner; source it, or write it to
# /etc/bash_completion.d/local-path-provisioner
_local_path_provisioner() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command='' flags='' words='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      -*) ;;
      *) command=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  case $command in
    '') flags='--debug -d --help -h --version -v' words={0} ;;
    help) words={0} ;;
)",
      quoted(names));
  for (const Command* command : shown(all)) {
    out.append("    ").append(command->name).append(")\n");
    for_each_flag(*command, [&](const Flag& flag) {
      if (!flag.choices.empty()) {
        out += fmt::format(
            "      case $prev in {}) COMPREPLY=($(compgen -W {} -- \"$cur\")); return ;; esac\n",
            pattern(flag), quoted(spaced(flag.choices)));
      } else if (flag.is_file()) {
        out += fmt::format(
            "      case $prev in {}) COMPREPLY=($(compgen -f -- \"$cur\")); return ;; esac\n",
            pattern(flag));
      } else if (!flag.is_boolean()) {
        out += fmt::format("      case $prev in {}) return ;; esac\n", pattern(flag));
      }
    });
    out += fmt::format("      flags={} words={} ;;\n", quoted(flag_words(*command)),
                       quoted(spaced(command->words)));
  }
  return out + R"(  esac
  case $cur in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
  esac
}
complete -o filenames -F _local_path_provisioner local-path-provisioner kubectl-local_path
)";
}

/// One argument of _arguments: '(-o --output)'{-o,--output}'[help]:FORMAT:(a b)'.
std::string zsh_spec(const Flag& flag) {
  std::string help;
  for (const char c : flag.help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') help += '\\';
    help += c;
  }
  std::string tail = "[" + help + "]";
  if (!flag.is_boolean()) {
    tail.append(":").append(flag.placeholder).append(":");
    if (!flag.choices.empty()) tail.append("(" + spaced(flag.choices) + ")");
    if (flag.is_file()) tail.append("_files");
  }
  if (flag.short_name == 0) return quoted("*--" + std::string(flag.name) + tail);
  return fmt::format("'*'{{-{},--{}}}{}", flag.short_name, flag.name, quoted(tail));
}

std::string zsh_script(std::span<const Command* const> all) {
  std::string out = R"(#compdef local-path-provisioner kubectl-local_path
# zsh completion of local-path-provisioner; write it to a folder of $fpath as
# _local-path-provisioner, or source it after compinit.
_local_path_provisioner() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands=(
)";
  const auto shown_commands = shown(all);
  for (const Command* command : shown_commands) {
    out += fmt::format("    {}\n", quoted(fmt::format("{}:{}", command->name, command->summary)));
  }
  out += R"(    'help:show this help, or that of a command'
  )
  _arguments -C '(-d --debug)'{-d,--debug}'[log each step]' '(-h --help)'{-h,--help}'[show this help]' \
    '(-v --version)'{-v,--version}'[show the version]' '1:command:->command' '*::argument:->arguments'
  case $state in
    command) _describe command commands ;;
    arguments)
      case $words[1] in
        help) _describe command commands ;;
)";
  for (const Command* command : shown_commands) {
    out += fmt::format("        {})\n          _arguments", command->name);
    for_each_flag(*command, [&](const Flag& flag) { out += " \\\n            " + zsh_spec(flag); });
    if (!command->words.empty()) {
      out += fmt::format(" \\\n            '1:argument:({})'", spaced(command->words));
    }
    out += " ;;\n";
  }
  return out + R"(      esac ;;
  esac
}
if [ "$funcstack[1]" = "_local_path_provisioner" ] || [ "$funcstack[1]" = "_local-path-provisioner" ]; then
  _local_path_provisioner "$@"
else
  compdef _local_path_provisioner local-path-provisioner kubectl-local_path
fi
)";
}

int run_completion(const Given& given, Context& context) {
  if (given.words.size() != 1 || (given.words[0] != "bash" && given.words[0] != "zsh")) {
    return fail(context, "completion", invalid("say for which shell: bash or zsh"), kExitUsage);
  }
  context.out(given.words[0] == "bash" ? bash_script(context.commands)
                                       : zsh_script(context.commands));
  return kExitOk;
}

}  // namespace

const Command kCompletionCommand{
    .name = "completion",
    .summary = "print a completion script for bash or zsh",
    .arguments = "bash|zsh",
    .text =
        "Print a script that completes commands and flags in a shell.\n"
        "\n"
        "Examples:\n"
        "  source <(local-path-provisioner completion bash)\n"
        "  local-path-provisioner completion zsh >\"${fpath[1]}/_local-path-provisioner\"\n",
    .run = run_completion,
    .words = "bash|zsh",
};

}  // namespace lpp::cli
