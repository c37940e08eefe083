#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dry-run.sh    Ask a real API server whether it would take the examples, the manifest and the chart.
#
# Uses the cluster of KUBECONFIG, with LPP_KUBECTL (kubectl). Namespaces are really made, because
# what is in them can be judged only then; those that were not there before are removed at the end.
# Exit: 0 it takes all, 1 it refuses something, 3 there is no cluster to ask.
set -eEuo pipefail
trap 'echo "dry-run: line $LINENO failed" >&2' ERR
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
  for namespace in "${made[@]}"; do # what comes next may want one of the same name
    "$kubectl" wait --for=delete --timeout=60s "namespace/$namespace" >/dev/null || true
  done
}
trap clean_up EXIT
for namespace in local-path-storage local-path-provisioner node-storage storage kube-system; do
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
for file in deploy/local-path-storage.yaml deploy/network-policy.yaml deploy/admission-policy.yaml \
  deploy/monitoring/kube-prometheus.yaml examples/*.yaml; do
  takes "$file" -f "$file"
done
# Without what is of kinds that this API server does not know: of the Prometheus Operator, of OpenShift.
known() {
  awk '
    function flush() {
      if (text !~ /\napiVersion: (monitoring\.coreos\.com|security\.openshift\.io)\//) printf "%s", text
      text = ""
    }
    /^---/ { flush() }
    { text = text (text == "" ? "\n" : "") $0 "\n" }
    END { flush() }'
}
golden=test/chart/golden
for file in "$golden"/*.yaml; do takes "$file" -f - < <(known <"$file"); done
for file in "$golden"/*.diff; do
  takes "$file" -f - < <(patch --quiet --output=- "$golden/default.yaml" "$file" | known)
done
for folder in examples/*/; do takes "$folder" -f - < <("$kubectl" kustomize "$folder" | known); done

# The helper pod with quota: it adds a capability and forbids privilege escalation.
helper=$("$kubectl" apply --dry-run=client -o json -k examples/hard-quota 2>/dev/null |
  jq -r '.items[] | select(.kind == "ConfigMap") | .data["helperPod.yaml"]' |
  sed 's/^    - name: helper-pod$/&\n      image: a/')
takes 'the helper pod of examples/hard-quota' --namespace default -f - <<<"$helper"

# Pod Security: the daemon's pods keep to the level "restricted", helper pods do not. Asked about
# the pods themselves: of a Deployment the API server would only warn.
restricted=lpp-restricted
"$kubectl" create namespace "$restricted" >/dev/null
made+=("$restricted")
"$kubectl" label namespace "$restricted" pod-security.kubernetes.io/enforce=restricted >/dev/null
for _ in $(seq 100); do
  if "$kubectl" -n "$restricted" get serviceaccount default >/dev/null 2>&1; then break; fi
  sleep 0.1
done

objects() { # -f FILE or -k FOLDER: as a stream of JSON
  "$kubectl" apply --dry-run=client -o json "$@" 2>/dev/null | jq -c 'if .kind == "List" then .items[] else . end'
}
try_restricted() { # POD (JSON)
  jq -c --arg namespace "$restricted" '{apiVersion: "v1", kind: "Pod", spec: .spec,
      metadata: {name: "asked", namespace: $namespace}}
      | del(.spec.serviceAccountName, .spec.serviceAccount, .spec.priorityClassName, .spec.imagePullSecrets)' <<<"$1" |
    "$kubectl" create --dry-run=server -f - 2>&1
}
is_restricted() { # WHAT OPTION...
  local what=$1 pod output
  shift
  pod=$(objects "$@" | jq -c 'select(.kind == "Deployment") | .spec.template')
  if [ -n "$pod" ] && output=$(try_restricted "$pod"); then
    passed=$((passed + 1))
  else
    printf 'dry-run: %s: the daemon is refused by Pod Security "restricted"\n%s\n' "$what" "$output" >&2
    failed=$((failed + 1))
  fi
}
is_restricted deploy -k deploy
is_restricted examples/separate-namespace -k examples/separate-namespace
is_restricted "$golden/default.yaml" -f "$golden/default.yaml"
is_restricted "$golden/helper-namespace.diff" -f - \
  < <(patch --quiet --output=- "$golden/default.yaml" "$golden/helper-namespace.diff")
# The question can be answered with no.
helper='{"spec": {"containers": [{"name": "a", "image": "b"}], "volumes": [{"name": "data", "hostPath": {"path": "/opt"}}]}}'
if output=$(try_restricted "$helper") || [[ $output != *'violates PodSecurity "restricted'* ]]; then
  printf 'dry-run: a pod with a hostPath volume is not refused by Pod Security: %s\n' "$output" >&2
  failed=$((failed + 1))
else
  passed=$((passed + 1))
fi
# The admission policy lets through the helper pods that the daemon makes, and nothing that could leave
# the base path. The pods are those of the golden files, below the base path of the policy.
policy=lpp-admission
"$kubectl" create namespace "$policy" >/dev/null
made+=("$policy")
policy_objects() { # PATTERNS
  sed "s|kubernetes.io/metadata.name: local-path-storage|kubernetes.io/metadata.name: $policy|
    s|expression: \"false\"|expression: \"$1\"|; s|name: local-path-provisioner-helper-pods|name: $policy|
    s|policyName: .*|policyName: $policy|" deploy/admission-policy.yaml
}
trap 'policy_objects false | "$kubectl" delete --ignore-not-found -f - >/dev/null || true; clean_up' EXIT
# A case of test/data/golden/pod.json as a whole: what it has other than the one it is "like", see
# test/fakes/golden.h.
# shellcheck disable=SC2016 # jq's variables
whole='def way: ltrimstr("/") | split("/")
    | map(gsub("~1"; "/") | gsub("~0"; "~") | if test("^[0-9]+$") then tonumber else . end);
  def whole($all; $name): $all[$name] as $one
    | if $one.like == null then $one else
        reduce ($one.removed // [])[] as $gone (whole($all; $one.like); delpaths([$gone | way]))
        | reduce (($one.set // {}) | to_entries[]) as $new (.; setpath($new.key | way; $new.value))
      end;'
helper_pod() { # CASE JQ-FILTER
  jq -c --arg namespace "$policy" --arg case "$1" "$whole"' . as $all | whole($all; $case)
      | .metadata = {name: "asked", namespace: $namespace}
      | del(.spec.serviceAccountName, .spec.priorityClassName, .spec.nodeName)
      | (.spec.volumes[]? | .hostPath? // empty | .path) |= sub("^/opt/lp"; "/opt/local-path-provisioner")
      | '"${2:-.}" test/data/golden/pod.json
}
asked() { # CASE JQ-FILTER
  helper_pod "$@" | "$kubectl" create --dry-run=server -f - 2>&1
}
allows() {
  local output
  if output=$(asked "$@"); then
    passed=$((passed + 1))
  else
    printf 'dry-run: the admission policy refuses %s\n%s\n' "$*" "$output" >&2
    failed=$((failed + 1))
  fi
}
forbids() { # SAYS CASE JQ-FILTER
  local says=$1 output
  shift
  if output=$(asked "$@") || [[ $output != *ValidatingAdmissionPolicy*"$says"* ]]; then
    printf 'dry-run: the admission policy does not refuse with "%s": %s\n%s\n' "$says" "$*" "$output" >&2
    failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
}
root_path='.spec.volumes |= map(if .hostPath then .hostPath.path = "/" else . end)'
policy_objects false | "$kubectl" apply -f - >/dev/null
for _ in $(seq 100); do # until the API server has it
  if ! asked create "$root_path" >/dev/null; then break; fi
  sleep 0.1
done
allows create
allows delete
allows create 'del(.spec.volumes, .spec.containers[].volumeMounts)'
allows create '.spec.containers[0].securityContext.capabilities.add = ["SYS_ADMIN", "CHOWN"]'
forbids 'host path / is not' create "$root_path"
for path in /opt /opt/local-path-provisioner-2 /opt/local-path-provisioner/a; do
  forbids "host path $path/ is not" create "(.spec.volumes[] | .hostPath? // empty | .path) |= \"$path\""
done
forbids 'host path' create-nested
forbids 'host path' create '.spec.volumes += [{name: "more", hostPath: {path: "/etc"}}]'
forbids 'may use the network' create '.spec.hostNetwork = true'
forbids 'may use the network' create '.spec.hostPID = true'
forbids 'may use the network' create '.spec.hostIPC = true'
forbids 'may be privileged' create '.spec.containers[0].securityContext = {privileged: true}'
forbids 'may be privileged' create \
  '.spec.initContainers = [{name: "first", image: "a", securityContext: {privileged: true}}]'
forbids 'may be privileged' create '.spec.containers[0].securityContext.capabilities.add = ["SYS_PTRACE"]'
policy_objects true | "$kubectl" apply -f - >/dev/null
for _ in $(seq 100); do
  if asked create-nested >/dev/null; then break; fi
  sleep 0.1
done
allows create
allows create-nested
forbids 'host path /opt/ is not' create '(.spec.volumes[] | .hostPath? // empty | .path) |= "/opt"'
forbids 'host path' create '(.spec.volumes[] | .hostPath? // empty | .path) |= "/opt/local-path-provisioner-2/a"'
echo "dry-run: $passed passed, $failed failed"
[ $failed = 0 ]
