#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh SECONDS [TARGET...]    Fuzz with libFuzzer under the address and undefined sanitizers.
#
# Each target (all by default) starts from its corpus and from what earlier runs found in
# build/fuzz/found. An input that breaks a promise is left in build/fuzz/crash-TARGET-*: fix the
# code and put the input, cut down with the program's -minimize_crash=1, into corpus/TARGET, where
# the usual tests run it. JOBS=2 runs so many targets at once. Installs clang where it is missing.
# Exit: 0 nothing found, 1 something was, 2 usage, 3 cannot be built here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

case ${1:-} in
  '' | *[!0-9]*) echo 'usage: run.sh SECONDS [TARGET...]' >&2; exit 2 ;;
esac
seconds=$1
shift
if [ $# = 0 ]; then
  set -- config template kubeconfig watch protobuf status pattern quantity said record node quota \
    messages disk
fi

scripts/install-deps.sh build test sanitizers || exit 3
cmake --preset fuzz --log-level=WARNING >/dev/null
cmake --build --preset fuzz --target "${@/#/fuzz_}" -- --quiet

fuzz() { # TARGET
  local target=$1 log=build/fuzz/$1.log
  mkdir -p "build/fuzz/found/$target"
  if build/fuzz/test/fuzz/targets/fuzz_"$target" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crash-$target-" \
    "build/fuzz/found/$target" "test/fuzz/corpus/$target" >"$log" 2>&1; then
    printf 'fuzz: %s: nothing found, %s\n' "$target" \
      "$(awk '/stat::number_of_executed_units/ {n = $2} /DONE/ {c = $4} END {print n " runs, cover " c}' "$log")"
  else
    printf 'fuzz: %s: FAILED\n' "$target"
    tail -n 30 "$log"
    return 1
  fi
}

result=0
running=0
for target in "$@"; do
  if [ "$running" -ge "${JOBS:-1}" ]; then
    wait -n || result=1
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || result=1
  running=$((running - 1))
done
exit "$result"
