#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [SECONDS [DRIVER [OPTIONS...]]]: fuzz the engine of path patterns against Go's. The driver is
# build/dev/test/fuzz/pattern_fuzz_driver unless another one is given. Needs Go 1.24 or later.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-60}
driver=$(realpath "${2:-$here/../../../build/dev/test/fuzz/pattern_fuzz_driver}")
shift $(($# < 2 ? $# : 2))
cd "$here"
program=$(mktemp)
trap 'rm -f "$program"' EXIT
GOFLAGS=-mod=mod GOWORK=off go build -o "$program" .
"$program" -driver "$driver" -seconds "$seconds" "$@"
