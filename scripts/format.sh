#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# format.sh [--check]: bring all C++ files into the form of .clang-format, or only test it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/sources.sh

mode=-i
if [ "${1:-}" = --check ]; then mode="--dry-run -Werror"; fi
# shellcheck disable=SC2086  # one or two words
list_files '*.cpp' '*.h' | xargs -r -n 20 -P "$(nproc)" clang-format --style=file $mode
