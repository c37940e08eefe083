#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dashboard.sh [SECONDS]    Every panel of the dashboard has something to show, and what it looks like.
#
# Starts a control plane with hollow nodes (../e2e/cluster), two replicas of the daemon, a Prometheus
# that scrapes them with the labels of deploy/monitoring/podmonitor.yaml, and a load of claims of
# which some fail, for SECONDS (90). Then asks Prometheus every query of the dashboard
# (dashboard.py). The panels, drawn from the answers, and the status page on a telephone are in
# build/monitoring/: dashboard.html, and with chromium dashboard.png and statusz.png: look at them.
# That is not Grafana: the same queries and legends in the same places, in simpler drawing.
#
#   LPP_BUILD_DIR   CMake's build directory (build/dev)
#
# Exit: 0 all panels show something, 1 one does not, 3 this machine cannot run it (says why).
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=test/e2e/cluster/env.sh
. "$root/test/e2e/cluster/env.sh"
# shellcheck source=test/e2e/cluster/process.sh
. "$CLUSTER_DIR/process.sh"

seconds=${1:-90}
build=${LPP_BUILD_DIR:-$root/build/dev}
out=$root/build/monitoring
daemon=$build/src/local-path-provisioner
hollow=$build/test/hollow/lpp-hollow-kubelet
for program in "$daemon" "$hollow"; do
  [ -x "$program" ] || die "$program is missing: build it, or set LPP_BUILD_DIR"
done
command -v prometheus >/dev/null || cannot 'there is no prometheus (Debian package prometheus)'
command -v python3 >/dev/null || cannot 'there is no python3'

PORT_PROMETHEUS=$((LPP_E2E_PORT_BASE + 10))
PORT_FIRST=$((LPP_E2E_PORT_BASE + 11))
PORT_SECOND=$((LPP_E2E_PORT_BASE + 12))
result=1
# shellcheck disable=SC2317 # the trap calls it
finish() {
  trap - EXIT
  if [ "$result" = 0 ]; then
    "$CLUSTER_DIR/down.sh" --wipe
  else
    "$CLUSTER_DIR/down.sh"
    say "failed; the logs are in $LOG"
  fi
  exit "$result"
}
trap finish EXIT
trap 'exit 130' INT TERM

"$CLUSTER_DIR/up.sh" --fresh
mkdir -p "$out"
kctl apply -f "$root/deploy/local-path-storage.yaml" >"$LOG/apply.log"
kctl -n local-path-storage scale deployment local-path-provisioner --replicas 0 >/dev/null
"$CLUSTER_DIR/serviceaccount-kubeconfig.sh" local-path-storage \
  local-path-provisioner-service-account "$LPP_E2E_STATE/daemon.kubeconfig"
start hollow "$hollow" --kubeconfig "$ADMIN_KUBECONFIG" --nodes 12 --start-delay-ms 200 \
  --delay-ms 800 --fail-every 9
wait_until 60 'hollow nodes' hollow grep -q '^ready' "$LOG/hollow.log"

for port in "$PORT_FIRST" "$PORT_SECOND"; do
  start "daemon-$port" "$daemon" start --kubeconfig "$LPP_E2E_STATE/daemon.kubeconfig" \
    --leader-elect --health-port "$port"
done
cat >"$LPP_E2E_STATE/prometheus.yml" <<YAML
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: local-path-provisioner
    static_configs:
      - {targets: ["127.0.0.1:$PORT_FIRST"], labels: {namespace: local-path-storage, pod: first}}
      - {targets: ["127.0.0.1:$PORT_SECOND"], labels: {namespace: local-path-storage, pod: second}}
YAML
start prometheus prometheus --config.file "$LPP_E2E_STATE/prometheus.yml" \
  --storage.tsdb.path "$LPP_E2E_STATE/prometheus" --web.listen-address "127.0.0.1:$PORT_PROMETHEUS"

claim() { # NAME NODE MODE
  printf '%s\n' --- 'apiVersion: v1' 'kind: PersistentVolumeClaim' "metadata: {name: $1, annotations: {
    volume.kubernetes.io/selected-node: $2}}" "spec: {storageClassName: local-path,
    accessModes: [$3], resources: {requests: {storage: 1Mi}}}"
}
claims() { # ROUND
  local i
  for ((i = 0; i < 12; i++)); do claim "c$1-$i" "hollow-$i" ReadWriteOnce; done
  if (($1 % 4 == 1)); then claim "refused-$1" hollow-0 ReadWriteMany; fi
}
say "a load of claims for $seconds s"
end=$((SECONDS + seconds))
for ((round = 0; SECONDS < end; round++)); do
  claims "$round" | kctl apply -f - >>"$LOG/load.log"
  if ((round > 2)); then
    claims $((round - 3)) | kctl delete --wait=false -f - >>"$LOG/load.log" 2>&1
  fi
  sleep 3
done

picture() { # NAME URL WIDTH HEIGHT
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$LPP_E2E_STATE/chromium" \
    --window-size="$3,$4" --screenshot="$out/$1" "$2" >"$LOG/chromium.log" 2>&1 ||
    say "no picture $1, see $LOG/chromium.log"
}
leader=$PORT_FIRST
if ! grep -q '^local_path_provisioner_active 1' <<<"$(curl -s "127.0.0.1:$leader/metrics")"; then
  leader=$PORT_SECOND
fi
curl -s "127.0.0.1:$leader/statusz" >"$out/statusz.html"
if command -v chromium >/dev/null; then
  # A window cannot be narrower than 500, and the page refuses to be framed: a copy of it stands in
  # a frame of a telephone's width.
  printf '<body style="margin:0"><iframe src="file://%s" width=390 height=2000 style="border:0">' \
    "$out/statusz.html" >"$LPP_E2E_STATE/telephone.html"
  picture statusz.png "file://$LPP_E2E_STATE/telephone.html" 500 2000
  picture statusz-wide.png "http://127.0.0.1:$leader/statusz" 1280 1600
fi
result=0
"$here/dashboard.py" "$root/deploy/monitoring/dashboard.json" "http://127.0.0.1:$PORT_PROMETHEUS" \
  "$seconds" "$out/dashboard.html" || result=1
if command -v chromium >/dev/null; then
  picture dashboard.png "file://$out/dashboard.html" 1600 2620
fi
say "look at $out"
