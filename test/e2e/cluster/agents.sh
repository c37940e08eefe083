# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Node agents as processes of this machine, with tokens of pods that are objects only; sourced after
# process.sh, with PROGRAM set to the program of the agents.
AGENTS_NAMESPACE=local-path-storage
AGENTS_ACCOUNT=local-path-provisioner-agent

# What the daemon needs for agents, and their account.
agents_allow() { # ROOT of the repository
  kctl apply -f "$1/deploy/agents/rbac.yaml" >>"$LOG/apply.log"
}

# Names the nodes' agents to the controller: a pod of their account on each node.
agents_pods() { # NODE...
  local node
  for node in "$@"; do
    cat <<YAML
---
apiVersion: v1
kind: Pod
metadata:
  name: agent-$node
  namespace: $AGENTS_NAMESPACE
  labels:
    app: local-path-provisioner-agent
spec:
  nodeName: $node
  serviceAccountName: $AGENTS_ACCOUNT
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  tolerations: [{operator: Exists}]
  containers: [{name: agent, image: "rancher/library-busybox:1.32.1", command: [sleep, "1000000"]}]
YAML
  done | kctl apply -f - >>"$LOG/apply.log"
}

agents_token() { # NODE FILE
  (umask 077 && kctl --namespace "$AGENTS_NAMESPACE" create token "$AGENTS_ACCOUNT" \
    --audience local-path-provisioner-agent --bound-object-kind Pod \
    --bound-object-name "agent-$1" --duration 12h >"$2")
}

agents_take_ca() {
  kctl --namespace "$AGENTS_NAMESPACE" get configmap local-path-provisioner-agents-ca \
    -o jsonpath='{.data.ca\.crt}' >"$LPP_E2E_STATE/agents-ca.crt" && [ -s "$LPP_E2E_STATE/agents-ca.crt" ]
}

agents_start() { # NODE ROOT PORT [FLAGS...]
  local node=$1 root=$2 port=$3
  shift 3
  [ -s "$LPP_E2E_STATE/$node.token" ] || agents_token "$node" "$LPP_E2E_STATE/$node.token"
  start "agent-$node" "$PROGRAM" agent --controller "https://127.0.0.1:$port" \
    --ca-file "$LPP_E2E_STATE/agents-ca.crt" --token-file "$LPP_E2E_STATE/$node.token" \
    --root "$root" --node-name "$node" "$@"
}

agents_wait() { # NODE...
  local node
  for node in "$@"; do
    wait_until 90 "the session of $node" "agent-$node" grep -q 'connected to the controller' \
      "$LOG/agent-$node.log"
  done
}
