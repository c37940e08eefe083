#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# up.sh [--fresh]    Start etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
#
# All of them listen on 127.0.0.1 only. What runs already is left alone; --fresh first stops and
# wipes everything. When something does not start, whatever did is stopped again; the logs stay.
# Exit: 0 up and healthy, 1 failed, 2 usage, 3 something is missing on this machine (says what).
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
. "$CLUSTER_DIR/process.sh"
. "$CLUSTER_DIR/pki.sh"

SERVICE_RANGE=10.96.0.0/16
ETCD_URL=https://127.0.0.1:$PORT_ETCD
ETCD_PEER_URL=https://127.0.0.1:$PORT_ETCD_PEER

find_etcd() {
  local candidate
  for candidate in "${LPP_E2E_ETCD:-}" "$BIN/etcd" "${KUBEBUILDER_ASSETS:-/nowhere}/etcd" etcd; do
    if [ -n "$candidate" ] && command -v "$candidate"; then return 0; fi
  done
  cannot "there is no etcd (run install-deps.sh, or set LPP_E2E_ETCD or KUBEBUILDER_ASSETS)"
}

check_ports() { # NAME PORT...    a foreign process there would be taken for ours
  local name=$1 port
  shift
  if alive "$name"; then return 0; fi
  for port in "$@"; do
    port_free "$port" || die "port $port is taken; stop what uses it or set LPP_E2E_PORT_BASE"
  done
}

health() { # PORT PATH    the same client certificate opens all of them
  curl -sf --max-time 2 --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" \
    "https://127.0.0.1:$1$2"
}

write_credentials() {
  # The second address is where pods find the machine.
  local names=IP:${SERVICE_RANGE%.*}.1,IP:${POD_SUBNET%.*}.1,DNS:localhost
  names+=,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
  make_ca
  make_token_key
  make_cert etcd /CN=etcd
  make_cert apiserver /CN=kube-apiserver "$names"
  make_cert apiserver-client /O=system:masters/CN=kube-apiserver # towards etcd and kubelets
  make_cert admin /O=system:masters/CN=e2e-admin
  make_cert controllers /CN=system:kube-controller-manager
  make_cert scheduler /CN=system:kube-scheduler
  write_kubeconfig "$ADMIN_KUBECONFIG" admin
  write_kubeconfig "$LPP_E2E_STATE/controllers.kubeconfig" controllers
  write_kubeconfig "$LPP_E2E_STATE/scheduler.kubeconfig" scheduler
}

start_etcd() {
  check_ports etcd "$PORT_ETCD" "$PORT_ETCD_PEER"
  start etcd "$ETCD" --name e2e --data-dir "$LPP_E2E_STATE/etcd" \
    --unsafe-no-fsync --log-level warn \
    --listen-client-urls "$ETCD_URL" --advertise-client-urls "$ETCD_URL" \
    --listen-peer-urls "$ETCD_PEER_URL" --initial-advertise-peer-urls "$ETCD_PEER_URL" \
    --initial-cluster "e2e=$ETCD_PEER_URL" \
    --cert-file "$PKI/etcd.crt" --key-file "$PKI/etcd.key" \
    --trusted-ca-file "$PKI/ca.crt" --client-cert-auth \
    --peer-cert-file "$PKI/etcd.crt" --peer-key-file "$PKI/etcd.key" \
    --peer-trusted-ca-file "$PKI/ca.crt" --peer-client-cert-auth
  wait_until 90 "etcd's health" etcd health "$PORT_ETCD" /health
}

start_apiserver() {
  # One line for each request, when it is done. Bodies are left out: they may hold secrets.
  cat >"$LPP_E2E_STATE/audit-policy.yaml" <<'YAML'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
YAML
  check_ports kube-apiserver "$PORT_API"
  start kube-apiserver "$BIN/kube-apiserver" \
    --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$PORT_API" \
    --endpoint-reconciler-type none --service-cluster-ip-range "$SERVICE_RANGE" \
    --etcd-servers "$ETCD_URL" --etcd-cafile "$PKI/ca.crt" \
    --etcd-certfile "$PKI/apiserver-client.crt" --etcd-keyfile "$PKI/apiserver-client.key" \
    --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" \
    --client-ca-file "$PKI/ca.crt" \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$PKI/tokens.pub" \
    --service-account-signing-key-file "$PKI/tokens.key" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --allow-privileged \
    --kubelet-certificate-authority "$PKI/ca.crt" \
    --kubelet-client-certificate "$PKI/apiserver-client.crt" \
    --kubelet-client-key "$PKI/apiserver-client.key" \
    --kubelet-preferred-address-types InternalIP \
    --audit-policy-file "$LPP_E2E_STATE/audit-policy.yaml" \
    --audit-log-path "$LOG/audit.log" --audit-log-mode blocking --audit-log-maxsize 4096
  wait_until 90 "the API server's readiness" kube-apiserver api_ready
}

start_controllers() {
  local limits=()
  if [ "$LPP_E2E_CONTROLLER_QPS" != stock ]; then
    limits=(--kube-api-qps "$LPP_E2E_CONTROLLER_QPS" --kube-api-burst "$((LPP_E2E_CONTROLLER_QPS * 2))")
  fi
  check_ports kube-controller-manager "$PORT_CONTROLLERS"
  start kube-controller-manager "$BIN/kube-controller-manager" \
    --bind-address 127.0.0.1 --secure-port "$PORT_CONTROLLERS" \
    --tls-cert-file "$PKI/controllers.crt" --tls-private-key-file "$PKI/controllers.key" \
    --client-ca-file "$PKI/ca.crt" \
    --kubeconfig "$LPP_E2E_STATE/controllers.kubeconfig" \
    --authentication-kubeconfig "$LPP_E2E_STATE/controllers.kubeconfig" \
    --authorization-kubeconfig "$LPP_E2E_STATE/controllers.kubeconfig" \
    --service-account-private-key-file "$PKI/tokens.key" --root-ca-file "$PKI/ca.crt" \
    --use-service-account-credentials --leader-elect=false \
    "${limits[@]}"
}

start_scheduler() {
  local qps=$LPP_E2E_CONTROLLER_QPS
  if [ "$qps" = stock ]; then qps=50; fi
  cat >"$LPP_E2E_STATE/scheduler.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: $LPP_E2E_STATE/scheduler.kubeconfig
  qps: $qps
  burst: $((qps * 2))
YAML
  check_ports kube-scheduler "$PORT_SCHEDULER"
  start kube-scheduler "$BIN/kube-scheduler" --config "$LPP_E2E_STATE/scheduler.yaml" \
    --bind-address 127.0.0.1 --secure-port "$PORT_SCHEDULER" \
    --tls-cert-file "$PKI/scheduler.crt" --tls-private-key-file "$PKI/scheduler.key" \
    --client-ca-file "$PKI/ca.crt" \
    --authentication-kubeconfig "$LPP_E2E_STATE/scheduler.kubeconfig" \
    --authorization-kubeconfig "$LPP_E2E_STATE/scheduler.kubeconfig"
}

stop_when_failed() {
  local code=$?
  if [ "$code" != 0 ]; then
    "$CLUSTER_DIR/down.sh" || true
    say "the logs are in $LOG"
  fi
  exit "$code"
}

case ${1:-} in
  '') ;;
  --fresh) "$CLUSTER_DIR/down.sh" --wipe ;;
  *) say "usage: up.sh [--fresh]"; exit 2 ;;
esac
if [ -n "${LPP_E2E_ETCD:-}" ] && [ ! -x "$LPP_E2E_ETCD" ]; then
  die "LPP_E2E_ETCD=$LPP_E2E_ETCD cannot be run"
fi
"$CLUSTER_DIR/install-deps.sh" --check controlplane || exit $?
binaries=$("$CLUSTER_DIR/binaries.sh")

began=$(now_ms)
make_state
ln -sfn "$binaries" "$BIN"
ETCD=$(find_etcd)
trap stop_when_failed EXIT
trap 'exit 130' INT TERM
write_credentials
start_etcd
start_apiserver
start_controllers
start_scheduler
wait_until 90 "the controllers' health" kube-controller-manager health "$PORT_CONTROLLERS" /healthz
wait_until 90 "the scheduler's health" kube-scheduler health "$PORT_SCHEDULER" /healthz
# Pods can be made from here on.
wait_until 90 "the default ServiceAccount" kube-controller-manager \
  api_get /api/v1/namespaces/default/serviceaccounts/default
say "up in $(($(now_ms) - began)) ms; KUBECONFIG=$ADMIN_KUBECONFIG $BIN/kubectl"
