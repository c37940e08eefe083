#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# update-docs.sh [PROGRAM]: writes what the program says about its flags, keys and parameters into
# docs/configure.md, between the two marks. A test compares them.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${1:-build/dev/src/local-path-provisioner}
page=docs/configure.md
reference=$(mktemp)
trap 'rm -f "$reference" "$reference.page"' EXIT
"$program" reference >"$reference"
awk -v file="$reference" '
  /<!-- reference: end -->/ { skip = 0 }
  !skip { print }
  /<!-- reference: begin -->/ { skip = 1; while ((getline line <file) > 0) print line }
' "$page" >"$reference.page"
cat "$reference.page" >"$page"
