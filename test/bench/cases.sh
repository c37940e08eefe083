# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2153  # PROGRAM, FLAGS, MEASURED and AUDIT_USER are set by bed.sh
# The cases of run.sh; sourced after bed.sh. Each writes its results with record().

record() { # CASE KIND REPEAT <JSON    one line for the report
  jq -c --arg case "$1" --arg kind "$2" --argjson repeat "$3" --arg commit "$(commit)" \
    '{case: $case, kind: $kind, repeat: $repeat, commit: $commit, result: .}' >>"$RUNS"
}

commit() { git -C "$ROOT" rev-parse --short HEAD 2>/dev/null || echo unknown; }

kinds() { # what can be compared with
  echo floor floor-pod ours
  if [ -n "${PEER_BIN:-}" ]; then echo tuned; fi
}

# The first requests after a start are slow for everybody.
warm_up() {
  hollow_start 2 0
  provisioner_start floor
  load --claims 100 --nodes 2 >/dev/null
  provisioner_stop
}

compare() { # CASE REPEATS LOAD_FLAGS...    each kind in turn, and again
  local name=$1 repeats=$2 i kind
  shift 2
  for ((i = 1; i <= repeats; i++)); do
    for kind in $(kinds); do
      provisioner_start "$kind"
      load "$@" | record "$name" "$kind" "$i"
      provisioner_stop
    done
  done
}

case_size() {
  local work
  work=$(mktemp -d)
  strip -o "$work/daemon" "$DAEMON"
  "$ROOT/scripts/collect-runtime.sh" "$work/daemon" "$work/root"
  jq -n --argjson binary "$(stat -c %s "$work/daemon")" \
    --argjson image "$(du -sb "$work/root" | cut -f 1)" '{binary: $binary, image: $image}' |
    record size ours 1
  rm -rf "$work"
  if [ -n "${PEER_BIN:-}" ]; then
    jq -n --argjson binary "$(stat -c %s "$PEER_BIN")" '{binary: $binary}' | record size peer 1
  fi
}

case_one() {
  hollow_start 2 0
  compare one "$REPEAT" --claims 1 --rounds 10
  [ -n "${PEER_BIN:-}" ] || return 0
  provisioner_start peer
  load --claims 1 --rounds 3 | record one peer 1
  provisioner_stop
}

case_claims() { # N
  local repeats=$REPEAT
  if [ "$1" -gt 1000 ]; then repeats=1; fi
  hollow_start 2 0
  compare "claims-$1" "$repeats" --claims "$1" --nodes 2
}

case_delay() { # MILLISECONDS
  hollow_start 2 "$1"
  compare "delay-$1" 1 --claims 100 --nodes 2
}

# A control plane as it comes: the limits of its controllers set the pace of whatever they do.
case_stock() {
  hollow_stop
  LPP_E2E_CONTROLLER_QPS=stock bed_again
  hollow_start 2 0
  compare stock "$REPEAT" --claims 100 --nodes 2 --limit-s 120
  bed_again
}

case_pods() {
  hollow_start 2 0
  compare pods 1 --claims 100 --nodes 2 --mode pods
}

case_peer_default() { # four minutes
  [ -n "${PEER_BIN:-}" ] || return 0
  hollow_start 2 0
  provisioner_start peer
  load --claims 100 --nodes 2 --limit-s 600 | record claims-100 peer 1
  provisioner_stop
}

# A helper pod that fails at once; and six claims of which every third helper pod fails.
case_failure() {
  local i
  for ((i = 1; i <= REPEAT; i++)); do
    hollow_start 2 0 --fail-every 1
    provisioner_start ours
    "$BENCH" failure --kubeconfig "$ADMIN_KUBECONFIG" --namespace "bench-fail$i" --limit-s 150 |
      record failure ours "$i"
    hollow_start 2 0
    kctl delete namespace "bench-fail$i" --timeout 60s >/dev/null
    provisioner_stop
  done
  hollow_start 2 0 --fail-every 3
  provisioner_start ours
  load --claims 6 --nodes 2 | record failure-six ours 1
  provisioner_stop
}

startup() { # CASE KIND...
  local name=$1 kind
  shift
  hollow_ready_or_start
  for kind in "$@"; do
    provisioner_command "$kind"
    local words=() word
    for word in "${FLAGS[@]}"; do words+=(--arg "$word"); done
    "$BENCH" startup --audit-log "$LOG/audit.log" --audit-user "$AUDIT_USER" \
      --log-file "$LOG/startup.log" --program "$PROGRAM" "${words[@]}" --rounds 3 \
      --env "HEALTH_PORT=$HEALTH_PORT" | record "$name" "$kind" 1
  done
}

hollow_ready_or_start() { if ! alive hollow; then hollow_start 2 0; fi; }

real_kinds() { echo ours; if [ -n "${PEER_BIN:-}" ]; then echo peer; fi; }

case_startup() {
  # shellcheck disable=SC2046  # words
  startup startup $(real_kinds)
}

idle() { # CASE KIND SECONDS
  measured
  sleep 3 # what a start leaves to do
  "$BENCH" sample --seconds "$3" "${MEASURED[@]}" | record "$1" "$2" 1
}

case_idle() {
  local kind
  hollow_ready_or_start
  for kind in $(real_kinds); do
    provisioner_start "$kind"
    idle idle "$kind" 60
    provisioner_stop
  done
}

storm() { # CASE KIND REPEAT    the API server is restarted under the provisioner
  local sampler out
  out=$(mktemp)
  measured
  # The API server of these flags will be gone: only the daemon is measured.
  "$BENCH" sample --seconds 60 --until-watching true --audit-log "$LOG/audit.log" \
    --audit-user "$AUDIT_USER" --process "daemon=$(pid_of provisioner)" >"$out" &
  sampler=$!
  sleep 0.5
  stop kube-apiserver 1 quietly # it would wait for those who watch
  "$CLUSTER/up.sh" 2>/dev/null
  wait "$sampler"
  record "$1" "$2" "$3" <"$out"
  rm -f "$out"
}

# 500 nodes, 10,000 claims and volumes of which 5,000 belong to another provisioner.
fill_elsewhere() { # NUMBER of claims and volumes of another provisioner
  kctl create -f - >/dev/null <<'YAML'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: elsewhere
provisioner: example.com/elsewhere
YAML
  "$BENCH" fill --kubeconfig "$ADMIN_KUBECONFIG" --claims "$1" --class elsewhere \
    --provisioner example.com/elsewhere --namespace fill-other
}

case_scale() {
  local kind i
  hollow_start 500 0 --lease-s 30
  # shellcheck disable=SC2046  # words
  startup startup-500-nodes $(real_kinds)
  fill_elsewhere 5000
  # shellcheck disable=SC2046  # words
  startup startup-5000-other $(real_kinds)
  "$BENCH" fill --kubeconfig "$ADMIN_KUBECONFIG" --claims 5000 --namespace fill-ours
  # shellcheck disable=SC2046  # words
  startup startup-10000-half $(real_kinds)
  for kind in $(real_kinds); do
    provisioner_start "$kind"
    idle idle-10000 "$kind" 60
    if [ "$kind" = ours ]; then load --claims 100 --nodes 2 | record claims-100-of-10000 ours 1; fi
    for i in 1 2 3; do storm storm "$kind" "$i"; done
    provisioner_stop
  done
  bed_again
  fill_elsewhere 10000
  # shellcheck disable=SC2046  # words
  startup startup-10000-other $(real_kinds)
  bed_again
}

bed_again() { # everything that was filled in goes with the cluster
  provisioner_stop
  hollow_stop
  bed_up
  warm_up
}

# A hundred claims of a node that is dead must not slow those of another node.
case_notready() {
  hollow_start 1 0
  start hollow-dead "$HOLLOW" --kubeconfig "$ADMIN_KUBECONFIG" --prefix dead- --keep-nodes true
  wait_until 60 "the node that will die" hollow-dead grep -q '^ready' "$LOG/hollow-dead.log"
  stop hollow-dead
  kctl patch node dead-0 --subresource status --type merge -p '{"status": {"conditions": [
    {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}' >/dev/null
  provisioner_start ours
  local i
  for ((i = 1; i <= REPEAT; i++)); do load --claims 100 | record notready-before ours "$i"; done
  "$BENCH" claims --kubeconfig "$ADMIN_KUBECONFIG" --namespace bench-dead --node dead-0 --claims 100
  sleep 3
  for ((i = 1; i <= REPEAT; i++)); do load --claims 100 | record notready-with ours "$i"; done
  start hollow-dead "$HOLLOW" --kubeconfig "$ADMIN_KUBECONFIG" --prefix dead- --delay-ms 0
  kctl delete namespace bench-dead --timeout 120s >/dev/null
  provisioner_stop
  stop hollow-dead
}

# 5,000 claims of one namespace fail, half of them with a helper pod each time and half at once, and
# all are changed in a loop: what becomes of another namespace's claims, one after another?
case_tenants() {
  local changer
  hollow_start 1 0
  start hollow-bad "$HOLLOW" --kubeconfig "$ADMIN_KUBECONFIG" --prefix bad- --fail-every 1 --delay-ms 0
  wait_until 60 "the node whose helper pods fail" hollow-bad grep -q '^ready' "$LOG/hollow-bad.log"
  kctl apply -f - >/dev/null <<'YAML'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: refused
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
mountOptions: [noatime] # which hostPath volumes do not have
YAML
  provisioner_start ours
  load --claims 1 --rounds 100 --namespace bench-quiet | record tenants-alone ours 1
  "$BENCH" claims --kubeconfig "$ADMIN_KUBECONFIG" --namespace bench-loud --node bad-0 --claims 2500
  "$BENCH" claims --kubeconfig "$ADMIN_KUBECONFIG" --namespace bench-loud --node bad-0 --claims 2500 \
    --class refused --name refused
  while :; do
    kctl annotate pvc --all --namespace bench-loud --overwrite "changed=$RANDOM" >/dev/null 2>&1 || sleep 1
  done &
  changer=$!
  load --claims 1 --rounds 100 --namespace bench-quiet --name beside --beside-others true |
    record tenants-beside ours 1
  kill "$changer"
  wait "$changer" 2>/dev/null || true
  provisioner_stop
  stop hollow-bad
  bed_again
}

# The real node: the kubelet and containerd take most of the time.
case_node() {
  local kind i code=0
  hollow_stop
  "$CLUSTER/install-deps.sh" node || return 0
  "$CLUSTER/node.sh" up || code=$?
  if [ "$code" = 3 ]; then say "no real node can be had here: left out"; return 0; fi
  [ "$code" = 0 ] || return 1
  for ((i = 1; i <= REPEAT; i++)); do
    for kind in $(kinds) floor-volumes floor-bound agents; do
      case $kind in
        floor) continue ;; # its pods do nothing
        agents) node_agent ;;
        *) provisioner_start "$kind" ;;
      esac
      load --claims 1 --node "$LPP_E2E_NODE" | record node-1 "$kind" "$i"
      load --claims 20 --node "$LPP_E2E_NODE" | record node-20 "$kind" "$i"
      stop "agent-$LPP_E2E_NODE"
      provisioner_stop
    done
  done
  "$CLUSTER/node.sh" down
}

# The real node's agent is a process beside its kubelet: what is measured is its work, not its pod's start.
node_agent() {
  mkdir -p "$LPP_E2E_STATE/volumes"
  agents_begin "$LPP_E2E_NODE"
  agents_start "$LPP_E2E_NODE" / "$AGENTS_PORT"
  agents_wait "$LPP_E2E_NODE"
}

agents_stop() { # NUMBER
  local i
  for ((i = 0; i < $1; i++)); do stop "agent-hollow-$i"; done
}

# Of processes: what is resident, their own memory, and their share of what several have mapped.
memory_of() { # NAME...
  local name pid
  for name in "$@"; do
    pid=$(pid_of "$name")
    awk -v OFS= '/^VmRSS:/ {r = $2} /^RssAnon:/ {a = $2} /^Pss:/ {p = $2}
      END {print "{\"rss\":", r, ",\"anon\":", a, ",\"pss\":", p, "}"}' "/proc/$pid/status" "/proc/$pid/smaps_rollup"
  done | jq -s '{agent_kib: map(.rss), agent_anon_kib: map(.anon), agent_pss_kib: map(.pss)}'
}

# Ten nodes, each with the disk of an agent that is a process of its own, the same with helper pods,
# and the floors without pods.
case_agents() {
  local i n kind nodes=()
  for ((n = 0; n < 10; n++)); do nodes+=("hollow-$n"); done
  for ((i = 1; i <= REPEAT; i++)); do
    hollow_start 10 0
    for kind in floor-volumes floor-bound; do
      provisioner_start "$kind"
      load --claims 500 --nodes 10 | record agents-500 "$kind" "$i"
    done
    provisioner_start ours
    load --claims 500 --nodes 10 | record agents-500 ours "$i"
    agents_begin "${nodes[@]}"
    for n in "${nodes[@]}"; do agents_start "$n" "$LPP_E2E_STATE/disk-of-$n" "$AGENTS_PORT"; done
    agents_wait "${nodes[@]}"
    memory_of "${nodes[@]/#/agent-}" | record agents-before ours "$i"
    load --claims 500 --nodes 10 | record agents-500 agents "$i"
    memory_of "${nodes[@]/#/agent-}" | record agents-after ours "$i"
    agents_stop 10
  done
}

# What idle agents cost. With 500 nodes the agents only hold their polls.
case_agents_idle() {
  agents_idle
  agents_many 500
  bed_again
}

agents_begin() { # NODE...    the daemon for agents, and what they need
  local node
  provisioner_stop
  agents_allow "$ROOT"
  agents_pods "$@"
  for node in "$@"; do
    rm -f "$LPP_E2E_STATE/$node.token" # it was of another pod
    mkdir -p "$LPP_E2E_STATE/disk-of-$node$LPP_E2E_STATE/volumes"
  done
  provisioner_start agents
}

agents_idle() {
  hollow_start 1 0
  agents_begin hollow-0
  start relay python3 "$BENCH_DIR/agents.py" relay --port "$RELAY_PORT" --to "$AGENTS_PORT" --seconds 300
  wait_until 20 "the relay" relay grep -q '^ready' "$LOG/relay.log"
  agents_start hollow-0 "$LPP_E2E_STATE/disk-of-hollow-0" "$RELAY_PORT"
  agents_wait hollow-0
  wait_until 400 "the relay's count" relay grep -q seconds "$LOG/relay.log"
  jq -R 'fromjson? // empty' "$LOG/relay.log" |
    jq --argjson memory "$(memory_of agent-hollow-0)" '. + $memory' | record agents-idle ours 1
  agents_stop 1
  stop relay
}

agents_many() { # NODES
  local n nodes=()
  for ((n = 0; n < $1; n++)); do nodes+=("hollow-$n"); done
  hollow_start "$1" 0 --lease-s 30
  agents_begin "${nodes[@]}"
  idle "idle-no-agents-of-$1" agents 30
  start agents-many python3 "$BENCH_DIR/agents.py" hold --port "$AGENTS_PORT" --api "$PORT_API" \
    --pki "$PKI" --namespace "$AGENTS_NAMESPACE" --nodes "$1"
  wait_until 120 "the agents' polls" agents-many grep -q '^ready' "$LOG/agents-many.log"
  idle "idle-agents-$1" agents 60
  stop agents-many
}
