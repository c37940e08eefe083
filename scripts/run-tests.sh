#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run-tests.sh [PRESET [ctest arguments...]]: builds a preset (default: dev) and runs its unit and
# integration tests. The first line says what runs the containers of the embedded cluster, the last
# one counts the test cases of all programs. In CI none may be skipped ("skipped:"), but for what
# not every machine has, which is listed below, and what is tested elsewhere ("not here:").
#   LPP_BUILT=dev    that preset is built already, and may be in use
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/temporary.sh

preset=${1:-dev}
if [ $# -gt 0 ]; then shift; fi
build=build/$preset

ready() { # PRESET [--target TARGET...]
  if [ "$1" = "${LPP_BUILT:-}" ]; then return; fi
  cmake --preset "$1" --log-level=WARNING >/dev/null
  cmake --build --preset "$@" -- --quiet
}
ready "$preset"
beds=$preset
if grep -q "^LPP_TEST_BEDS:PATH=$PWD/build/dev$" "$build/CMakeCache.txt"; then
  beds=dev
  ready dev --target story_test lpp-chaos lpp-devcluster lpp-rights
fi

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1:handle_abort=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# A process that ends while it has threads waits for a second, that of each crash, too.
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1:handle_abort=1:atexit_sleep_ms=10:suppressions=$PWD/test/tsan.supp}

# The sanitizers of gcc 12 cannot place their memory where the kernel scatters mappings wider than
# 28 bits, as newer ones do: switch that off for the tests.
run=()
bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
case $preset in
  asan | tsan)
    if [ "$bits" -gt 28 ]; then
      if setarch "$(uname -m)" -R true 2>/dev/null; then
        run=(setarch "$(uname -m)" -R)
      else
        printf 'run-tests: vm.mmap_rnd_bits is %s and may not be bypassed here; if the programs\n' "$bits" >&2
        printf 'run-tests: do not start: sysctl vm.mmap_rnd_bits=28\n' >&2
      fi
    fi
    ;;
esac

# It judges the metrics.
if promtool=$(scripts/promtool.sh 2>/dev/null); then PATH=$PATH:$(dirname "$promtool"); fi

"build/$beds/test/devcluster/lpp-devcluster" --sandbox || true

# What is to be kept stays in /tmp.
if [ -z "${LPP_KEEP_TEMP:-}" ]; then
  temporary=$(temporary_folder 4000)
  trap 'rm -rf --one-file-system "$temporary"' EXIT
  trap 'exit 1' INT TERM
  chmod 755 "$temporary" # containers run as other users
  export TMPDIR=$temporary
fi
result=0
# The stories wait most of the time, and so do the tests of quotas: two more than there are processors.
"${run[@]}" ctest --preset "$preset" -j "$(($(nproc) + 2))" --no-tests=error "$@" || result=$?

# doctest's own totals, one line per program, but for the skipped ones: it also counts what a run was
# not asked for, and a program may run in parts.
log=$(sed 's/\x1b\[[0-9;]*m//g' "$build/Testing/Temporary/LastTest.log")
# What every machine may lack: no package has promtool or a new Go, kernels and their settings differ, and what is not
# for a sanitizer runs without.
may_lack=': (promtool|Go 1\.24|IPv6 on loopback|a time namespace|a hard limit of 4096 descriptors|root in a sandbox|a build without sanitizers)$'
lacking=$(grep -a '^not here: ' <<<"$log" | grep -v 'test/quota' | sort -u || true)
grep -E "$may_lack" <<<"$lacking" || true
skips=$({ grep -a '^skipped: ' <<<"$log"; grep -vE "$may_lack|^$" <<<"$lacking"; } | sort -u || true)
skipped=0
if [ -n "$skips" ]; then
  printf '%s\n' "$skips"
  skipped=$(wc -l <<<"$skips")
  if [ "${CI:-}" = true ] && [ "$result" = 0 ]; then result=1; fi
fi
awk -v preset="$preset" -v result="$result" -v skipped="$skipped" '
  /^\[doctest\] test cases:/ {
    gsub(/[^0-9]+/, " ")
    passed += $2; failed += $3
  }
  END {
    # A program that crashed has no totals; ctest still knows.
    if (result != 0 && failed == 0) failed = 1
    printf "%s: %d passed, %d failed, %d skipped\n", preset, passed, failed, skipped
  }' <<<"$log"
exit "$result"
