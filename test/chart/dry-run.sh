#!/usr/bin/env bash
# dry-run.sh    Ask a real API server whether it would take the examples, the manifest and the chart.
#
# Uses the cluster of KUBECONFIG, with LPP_KUBECTL (kubectl). Namespaces are really made, because
# what is in them can be judged only then; those that were not there before are removed at the end.
# Exit: 0 it takes all, 1 it refuses something, 3 there is no cluster to ask.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

kubectl=${LPP_KUBECTL:-kubectl}
if [ -z "${KUBECONFIG:-}" ] || ! "$kubectl" get --raw /readyz >/dev/null; then
  echo 'dry-run: no cluster answers; set KUBECONFIG (and LPP_KUBECTL)' >&2
  exit 3
fi

made=()
# shellcheck disable=SC2317 # run by the trap
clean_up() {
  for namespace in "${made[@]}"; do
    "$kubectl" delete --wait=false namespace "$namespace" >/dev/null
  done
}
trap clean_up EXIT
for namespace in local-path-storage node-storage storage kube-system; do
  if ! "$kubectl" get namespace "$namespace" >/dev/null 2>&1; then
    "$kubectl" create namespace "$namespace" >/dev/null
    made+=("$namespace")
  fi
done

passed=0 failed=0
takes() { # WHAT OPTION...
  local what=$1 output
  shift
  if output=$("$kubectl" apply --dry-run=server --validate=strict "$@" 2>&1); then
    passed=$((passed + 1))
  else
    printf 'dry-run: %s: refused\n%s\n' "$what" "$output" >&2
    failed=$((failed + 1))
  fi
}

takes deploy -k deploy
for file in deploy/local-path-storage.yaml deploy/network-policy.yaml examples/*.yaml test/chart/golden/*.yaml; do
  takes "$file" -f "$file"
done
for folder in examples/*/; do takes "$folder" -k "$folder"; done
echo "dry-run: $passed passed, $failed failed"
[ $failed = 0 ]
