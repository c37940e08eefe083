// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "base/log.h"
#include "cli/version_command.h"

namespace lpp::cli {

namespace {

// Each script asks the program itself (`__complete`), so that it offers what that knows and what
// the cluster holds, and stays right after an update.

constexpr std::string_view kBash =
    R"(# bash completion of local-path-provisioner; source it, or write it to
# /etc/bash_completion.d/local-path-provisioner
_local_path_provisioner() {
  local program=${COMP_WORDS[0]/#\~/$HOME} words=() word last prefix='' line lines=() joins=0 i
  COMPREPLY=()
  # bash takes --flag=value for three words.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((${#words[@]} > 0)) && { ((joins)) || [[ $word == = && ${words[-1]} == -* ]]; }; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    joins=0
    if [[ $word == = && ${words[-1]} == -*= ]]; then joins=1; fi
  done
  last=${words[-1]}
  if [[ $last == -*=* ]]; then prefix=${last%%=*}=; fi
  while IFS= read -r line; do lines+=("$line"); done \
    < <("$program" __complete -- "${words[@]}" 2>/dev/null)
  if ((${#lines[@]} == 0)); then return; fi
  if [[ ${lines[-1]} == :0 ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done \
      < <(compgen -f -- "${last#"$prefix"}")
    return
  fi
  for line in "${lines[@]::${#lines[@]}-1}"; do
    line=${line%%$'\t'*}
    COMPREPLY+=("${line#"$prefix"}")
  done
}
complete -F _local_path_provisioner local-path-provisioner kubectl-local_path
)";

constexpr std::string_view kZsh =
    R"(#compdef local-path-provisioner kubectl-local_path
# zsh completion of local-path-provisioner; write it to a directory of $fpath as
# _local-path-provisioner, or source it after compinit.
_local_path_provisioner() {
  local line directive
  local -a lines offers
  lines=("${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  directive=${lines[-1]}
  if [[ $directive == :0 ]]; then
    if [[ $PREFIX == -*=* ]]; then compset -P '*='; fi
    _files
    return
  fi
  for line in "${(@)lines[1,-2]}"; do
    if [[ $line == *$'\t'* ]]; then
      offers+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    else
      offers+=("${line//:/\\:}")
    fi
  done
  _describe value offers
}
if [ "$funcstack[1]" = "_local_path_provisioner" ] || [ "$funcstack[1]" = "_local-path-provisioner" ]; then
  _local_path_provisioner "$@"
else
  compdef _local_path_provisioner local-path-provisioner kubectl-local_path
fi
)";

constexpr std::string_view kFish =
    R"(# fish completion of local-path-provisioner; write it to
# ~/.config/fish/completions/local-path-provisioner.fish, or source it.
function __local_path_provisioner_offers
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -e words[1]
    set -l lines ($program __complete -- $words "$last" 2>/dev/null)
    test (count $lines) -gt 0; or return
    if test $lines[-1] = :0
        __fish_complete_path (string replace -r '^-[^=]*=' '' -- "$last")
        return
    end
    set -e lines[-1]
    printf '%s\n' $lines
end
complete -c local-path-provisioner -f -a '(__local_path_provisioner_offers)'
complete -c kubectl-local_path -f -a '(__local_path_provisioner_offers)'
)";

int run_completion(const Given& given, Context& context) {
  const std::string shell = given.words.size() == 1 ? given.words.front() : std::string();
  if (shell == "bash") {
    context.out(kBash);
  } else if (shell == "zsh") {
    context.out(kZsh);
  } else if (shell == "fish") {
    context.out(kFish);
  } else {
    return fail(context, "completion", invalid("say for which shell: bash, zsh or fish"),
                kExitUsage);
  }
  return kExitOk;
}

}  // namespace

const Command kCompletionCommand{
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .arguments = "bash|zsh|fish",
    .text =
        "Print a script that completes commands, flags, namespaces, claims and more in a shell.\n"
        "\n"
        "Examples:\n"
        "  source <(local-path-provisioner completion bash)\n"
        "  local-path-provisioner completion zsh >\"${fpath[1]}/_local-path-provisioner\"\n"
        "  local-path-provisioner completion fish | source\n"
        "  # for kubectl local-path, beside the link kubectl-local_path:\n"
        "  sudo ln -s local-path-provisioner /usr/local/bin/kubectl_complete-local_path\n",
    .run = run_completion,
    .words = "bash|zsh|fish",
};

}  // namespace lpp::cli
