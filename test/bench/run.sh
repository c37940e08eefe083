#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--full] [--repeat N] [--out DIR] [--keep] [CASE...]
#
# Measures the daemon on a real control plane with hollow nodes, against the floor (the least API
# calls for the same work) and, if PEER_BIN names one, against another provisioner. Each case is
# measured with each program in turn, several times. Writes DIR/runs.jsonl and DIR/report.md and
# prints the report.
#
#   cases      size one claims-20 claims-100 claims-500 claims-2000 stock delay-500 delay-3000 pods
#              peer-default failure startup idle scale notready tenants node agents agents-idle
#   default    those that fit into ten minutes; --full: all
#   --repeat N rounds of the alternating comparisons (3)
#   --out DIR  where the results go (build/bench); runs.jsonl there is continued
#   --keep     use the cluster that runs, and leave it running
#
# The settings are those of bed.sh and of test/e2e/cluster. The client limits of the controllers are
# raised but in the case stock: as they come they set the pace of what controllers do. Nothing else should run on the
# machine; the report names measurements during which something did.
# Exit: 0 measured, 1 failed, 2 usage, 3 it cannot be done on this machine (says why).
. "$(dirname "${BASH_SOURCE[0]}")/bed.sh"
. "$BENCH_DIR/cases.sh"

ALL=(size one claims-20 claims-100 claims-500 claims-2000 stock delay-500 delay-3000 pods peer-default
  failure startup idle scale notready tenants node agents agents-idle)
QUICK=(size one claims-20 claims-100 claims-500 stock delay-500 pods failure startup idle)
REPEAT=3 OUT=$ROOT/build/bench KEEP='' chosen=()

usage() { sed -n '2,/^# Exit/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case $1 in
    --full) chosen=("${ALL[@]}") ;;
    --keep) KEEP=1 ;;
    --repeat | --out)
      [ $# -ge 2 ] || usage
      if [ "$1" = --repeat ]; then REPEAT=$2; else OUT=$2; fi
      shift ;;
    -*) usage ;;
    *)
      case " ${ALL[*]} " in *" $1 "*) chosen+=("$1") ;; *) usage ;; esac ;;
  esac
  shift
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${QUICK[@]}")
case $REPEAT in '' | *[!0-9]* | 0) usage ;; esac

for program in "$DAEMON" "$HOLLOW" "$BENCH"; do
  [ -x "$program" ] || { say "$program is missing: make bench builds it, or set LPP_BUILD_DIR"; exit 1; }
done
mkdir -p "$OUT"
RUNS=$OUT/runs.jsonl

# shellcheck disable=SC2317 # the trap calls it
finish() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$KEEP" ]; then
    provisioner_stop
    say "the cluster is left running; end it with $CLUSTER/down.sh --wipe"
  else
    bed_down || true
  fi
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

if [ -z "$KEEP" ] || ! alive kube-apiserver || [ ! -f "$LPP_E2E_STATE/peer.kubeconfig" ]; then
  if [ "${LPP_E2E_NO_INSTALL:-}" != 1 ]; then "$CLUSTER/install-deps.sh" controlplane; fi
  bed_up
  warm_up
fi
for name in "${chosen[@]}"; do
  say "$name"
  "case_$(tr - _ <<<"${name%%-[0-9]*}")" "${name##*-}"
done
python3 "$BENCH_DIR/report.py" "$RUNS" | tee "$OUT/report.md"
