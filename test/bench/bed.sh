# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034  # the settings are used by the scripts that source this
# What every measurement stands on: control plane, hollow nodes, a provisioner; sourced.
#
#   LPP_BUILD_DIR   CMake's build directory (build/release)
#   PEER_BIN        another provisioner to compare with: same flags, its own ServiceAccount
#   PEER_ARGS       its flags in the first comparison (none: as it comes)
#   PEER_TUNED_BIN, PEER_TUNED_ARGS   the same, set up for speed, for a second comparison
set -euo pipefail
BENCH_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$BENCH_DIR/../.." && pwd)
CLUSTER=$ROOT/test/e2e/cluster
# shellcheck source=test/e2e/cluster/env.sh
. "$CLUSTER/env.sh"
# shellcheck source=test/e2e/cluster/process.sh
. "$CLUSTER/process.sh"
# shellcheck source=test/e2e/cluster/agents.sh
. "$CLUSTER/agents.sh"

BUILD=${LPP_BUILD_DIR:-$ROOT/build/release}
DAEMON=$BUILD/src/local-path-provisioner
HOLLOW=$BUILD/test/hollow/lpp-hollow-kubelet
BENCH=$BUILD/test/bench/lpp-bench
HEALTH_PORT=$((LPP_E2E_PORT_BASE + 10))
AGENTS_PORT=$((LPP_E2E_PORT_BASE + 11))
RELAY_PORT=$((LPP_E2E_PORT_BASE + 12))
PEER_TUNED_ARGS=${PEER_TUNED_ARGS:---worker-threads 100 --kube-client-qps 1000 --kube-client-burst 2000}
PROVISIONER= # what runs: ours, agents, peer, tuned, a floor or nothing

say() { printf 'bench: %s\n' "$*" >&2; }

pid_of() { # NAME -> process id, of a process that lives
  local pid=
  if alive "$1"; then read -r pid _ <"$RUN/$1.pid"; fi
  printf '%s' "$pid"
}

bed_up() { # control plane, manifest, users
  "$CLUSTER/up.sh" --fresh
  kctl apply -f "$ROOT/deploy/local-path-storage.yaml" >"$LOG/apply.log"
  kctl --namespace local-path-storage scale deployment local-path-provisioner --replicas 0 >/dev/null
  # The peer asks for more than our manifest grants.
  kctl --namespace local-path-storage create serviceaccount bench-peer >/dev/null
  kctl create clusterrolebinding bench-peer --clusterrole cluster-admin \
    --serviceaccount local-path-storage:bench-peer >/dev/null
  # Real pods, if any, make their directories with everything else of this cluster.
  jq -n --arg folder "$LPP_E2E_STATE/volumes" '{nodePathMap:
    [{node: "DEFAULT_PATH_FOR_NON_LISTED_NODES", paths: [$folder]}]}' >"$LPP_E2E_STATE/config.json"
  "$CLUSTER/serviceaccount-kubeconfig.sh" local-path-storage \
    local-path-provisioner-service-account "$LPP_E2E_STATE/ours.kubeconfig"
  "$CLUSTER/serviceaccount-kubeconfig.sh" local-path-storage bench-peer \
    "$LPP_E2E_STATE/peer.kubeconfig"
}

bed_down() {
  provisioner_stop
  stop hollow-dead
  hollow_stop
  "$CLUSTER/down.sh" --wipe >/dev/null
}

hollow_stop() { stop hollow 20; }

hollow_start() { # NODES DELAY_MS [FLAGS...]
  local nodes=$1 delay=$2
  shift 2
  hollow_stop
  start hollow "$HOLLOW" --kubeconfig "$ADMIN_KUBECONFIG" --nodes "$nodes" --delay-ms "$delay" "$@"
  wait_until 120 "hollow nodes" hollow grep -q '^ready' "$LOG/hollow.log"
}

ready() { [ "$(curl -s -o /dev/null -w '%{http_code}' --max-time 1 "http://127.0.0.1:$HEALTH_PORT/ready")" = 200 ]; }

provisioner_stop() {
  stop provisioner 20
  PROVISIONER=
}

# Sets PROGRAM, FLAGS (of that kind of provisioner) and AUDIT_USER.
provisioner_command() { # ours|agents|peer|tuned|floor|floor-pod|floor-volumes|floor-bound
  local user=bench-peer words=()
  FLAGS=(start --config "$LPP_E2E_STATE/config.json" --namespace local-path-storage)
  case $1 in
    ours | agents)
      user=local-path-provisioner-service-account
      PROGRAM=$DAEMON
      FLAGS+=(--kubeconfig "$LPP_E2E_STATE/ours.kubeconfig" --health-port "$HEALTH_PORT")
      if [ "$1" = agents ]; then FLAGS+=(--agents --agents-port "$AGENTS_PORT"); fi ;;
    peer)
      PROGRAM=${PEER_BIN:?names no program}
      read -ra words <<<"${PEER_ARGS:-}"
      FLAGS+=(--kubeconfig "$LPP_E2E_STATE/peer.kubeconfig" "${words[@]}") ;;
    tuned)
      PROGRAM=${PEER_TUNED_BIN:-${PEER_BIN:?names no program}}
      read -ra words <<<"$PEER_TUNED_ARGS"
      FLAGS+=(--kubeconfig "$LPP_E2E_STATE/peer.kubeconfig" "${words[@]}") ;;
    floor*)
      PROGRAM=$BENCH
      FLAGS=(floor --kubeconfig "$LPP_E2E_STATE/peer.kubeconfig" --base "$LPP_E2E_STATE/volumes")
      if [ "$1" = floor-pod ]; then
        kctl --namespace local-path-storage get configmap local-path-config \
          -o jsonpath='{.data.helperPod\.yaml}' >"$LPP_E2E_STATE/helperPod.yaml"
        FLAGS+=(--pod-template "$LPP_E2E_STATE/helperPod.yaml")
      fi
      case $1 in floor-volumes | floor-bound) FLAGS+=(--work "${1#floor-}") ;; esac ;;
  esac
  AUDIT_USER=system:serviceaccount:local-path-storage:$user
}

provisioner_start() { # KIND [FLAGS...]    as for provisioner_command
  local kind=$1
  shift
  provisioner_stop
  provisioner_command "$kind"
  HEALTH_PORT=$HEALTH_PORT start provisioner "$PROGRAM" "${FLAGS[@]}" "$@"
  case $kind in
    ours) wait_until 60 "the daemon's readiness" provisioner ready ;;
    agents)
      wait_until 60 "the daemon's readiness" provisioner ready
      wait_until 60 "the authority of the agents" provisioner agents_take_ca ;;
    floor*) wait_until 60 "the floor" provisioner grep -q '^ready' "$LOG/provisioner.log" ;;
    *) sleep 3 ;; # it has no sign of readiness that all versions share
  esac
  PROVISIONER=$kind
}

measured() { # sets MEASURED: flags of lpp-bench for what runs
  local name
  MEASURED=(--audit-log "$LOG/audit.log" --audit-user "$AUDIT_USER" --log-file "$LOG/provisioner.log")
  for name in provisioner kube-apiserver etcd kube-controller-manager kube-scheduler hollow; do
    if alive "$name"; then MEASURED+=(--process "${name/provisioner/daemon}=$(pid_of "$name")"); fi
  done
}

load() { # FLAGS...    JSON of one load to stdout
  measured
  "$BENCH" load --kubeconfig "$ADMIN_KUBECONFIG" "${MEASURED[@]}" "$@"
}
