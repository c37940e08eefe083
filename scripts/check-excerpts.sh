#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-excerpts.sh: what pages show of the source stands there. A block after "<!-- from FILE -->" holds lines
# of that file, blanks around them aside; a line "…" stands for any that are left out. Each finding is one line.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh

mapfile -t pages < <(list_files '*.md')
awk '
  function trim(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }
  # Whether the wanted lines from number i on stand in the source from line k on.
  function stands(i, k) {
    while (i <= wanted) {
      if (want[i] == "…") return later(i + 1, k)
      if (source[k++] != want[i++]) return 0
    }
    return 1
  }
  function later(i, k) {
    while (k <= lines) if (stands(i, k++)) return 1
    return 0
  }
  function judge(   line, k) {
    lines = 0
    delete source
    while ((getline line <from) > 0) source[++lines] = trim(line)
    close(from)
    ++judged
    if (wanted == 0 || !later(1, 1)) {
      print FILENAME ": " from " has not (any more): " want[1] >"/dev/stderr"
      found = 1
    }
  }
  FNR == 1 { from = ""; inside = 0 }
  /^<!-- from .* -->$/ { from = $3; next }
  from != "" && /^```/ {
    if (inside) { judge(); from = "" }
    inside = !inside
    wanted = 0
    next
  }
  inside { want[++wanted] = trim($0) }
  END {
    if (judged == 0) { print "check-excerpts: no page has an excerpt" >"/dev/stderr"; found = 1 }
    exit found
  }' "${pages[@]}"
