# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts that look at the project's own files.

# list_files PATTERN...   The project's files of these names, new ones included, ignored ones not.
list_files() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    # A file that is deleted but not yet committed is still listed.
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
      if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done
  else # an unpacked archive
    local names=() pattern
    for pattern in "$@"; do names+=(-o -name "${pattern##*/}"); done
    find . \( -path ./build -o -path ./.git \) -prune -o -type f \( "${names[@]:1}" \) -print |
      sed 's|^\./||' | sort
  fi
}
