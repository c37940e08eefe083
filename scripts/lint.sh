#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh: everything that is judged without running the programs: the project's rules, the form of
# the C++ files, the shell scripts, clang-tidy and clang's thread-safety analysis (its warnings are errors
# of every build by clang). Goes on after a failure, so that one run tells all; files that passed and did
# not change are not looked at again.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh

failed=()
step() { # NAME COMMAND...
  local name=$1 begin=$SECONDS
  shift
  if "$@"; then
    printf 'lint: %s: ok (%s s)\n' "$name" $((SECONDS - begin))
  else
    printf 'lint: %s: FAILED\n' "$name" >&2
    failed+=("$name")
  fi
}

shell_scripts() {
  list_files '*.sh'
  list_files '*' | grep -v '\.[a-z]*$' | while read -r file; do
    if grep -qE '^#!.*\b(ba)?sh\b' <<<"$(head -n 1 "$file" | tr -d '\0')"; then printf '%s\n' "$file"; fi
  done
}
check_shell() { shell_scripts | xargs -r shellcheck -x -P SCRIPTDIR -P .; }

# Looked at is what the daemon and the test beds are made of; LINT_TESTS=1 adds the test cases. The warnings
# of clang are among the checks, so nothing is compiled beside.
tidy() {
  local files targets=(local-path-provisioner lpp-devcluster lpp-demo lpp-hollow-kubelet)
  if [ "${LINT_TESTS:-}" = 1 ]; then targets=(all); fi
  cmake --preset tidy --log-level=WARNING >/dev/null || return
  # A line per file: its name, and how it would be compiled.
  files=$(ninja -C build/tidy -t commands "${targets[@]}" | sed -nE 's|^(.* -c ([^ ]+))$|\2 -- \1|p') || return
  if [ -z "$files" ]; then
    echo 'lint: clang-tidy: build/tidy compiles nothing' >&2
    return 1
  fi
  (cd build/tidy && xargs -L 1 -P "$(nproc)" ../../scripts/cached-tidy.sh -quiet) <<<"$files" 2>&1 |
    grep -vE '^[0-9]+ warnings? generated'
  return "${PIPESTATUS[0]}"
}

step rules scripts/check-rules.sh
step clang-format scripts/format.sh --check
step shellcheck check_shell
step clang-tidy tidy
if [ ${#failed[@]} != 0 ]; then
  printf 'lint: failed: %s\n' "${failed[*]}" >&2
  exit 1
fi
