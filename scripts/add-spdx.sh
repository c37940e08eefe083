#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# add-spdx.sh [--check]: gives every source file that has none its licence line, as SPDX wants it: the
# first line, or the second after "#!". With --check it only names the files that lack it.
# Data of tests and what others have written stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/sources.sh

LICENCE='SPDX-License-Identifier: Apache-2.0'
missing=0

sources() {
  list_files '*' | grep -vE '^(deploy|test/(data|fuzz/corpus|chart/golden))/' | while read -r file; do
    case ${file##*/} in
      *.cpp | *.h) printf '// %s\n' "$file" ;;
      *.sh | *.py | *.cmake | CMakeLists.txt | Makefile | Dockerfile)
        printf '# %s\n' "$file" ;;
      *.go) printf '// %s\n' "$file" ;;
      *.*) ;;
      *) if [ "$(head -c 2 "$file")" = '#!' ]; then printf '# %s\n' "$file"; fi ;;
    esac
  done
}

while read -r comment file; do
  if grep -qF "$LICENCE" <<<"$(head -n 5 "$file")"; then continue; fi
  missing=1
  if [ "${1:-}" = --check ]; then
    echo "$file: no line \"$comment $LICENCE\"; scripts/add-spdx.sh adds it" >&2
    continue
  fi
  first=$(head -n 1 "$file")
  # Written into the file itself, which keeps its mode.
  {
    case $first in '#!'*) printf '%s\n' "$first" ;; esac
    printf '%s %s\n' "$comment" "$LICENCE"
    case $first in '#!'*) tail -n +2 "$file" ;; *) cat "$file" ;; esac
  } >"$file.spdx"
  cat "$file.spdx" >"$file"
  rm "$file.spdx"
done < <(sources)
if [ "${1:-}" = --check ]; then exit $missing; fi
