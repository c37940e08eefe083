# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034  # the settings are used by the scripts that source this
# Settings and small helpers of the end-to-end cluster; sourced by the other scripts.
# README.md lists the variables. Exit codes: 0 done, 1 failed, 2 usage, 3 cannot be had here.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# A second cluster beside the first: other ports, addresses, cgroup, node and state directory.
LPP_E2E_INSTANCE=${LPP_E2E_INSTANCE:-0}
case $LPP_E2E_INSTANCE in
  [0-9] | [1-9][0-9]) ;;
  *) printf 'e2e-cluster: LPP_E2E_INSTANCE=%s is not a number from 0 to 99\n' "$LPP_E2E_INSTANCE" >&2; exit 2 ;;
esac
_suffix=$LPP_E2E_INSTANCE
if [ "$_suffix" = 0 ]; then _suffix=; fi

LPP_E2E_STATE=${LPP_E2E_STATE:-${TMPDIR:-/tmp}/lpp-e2e$_suffix}
case $LPP_E2E_STATE in
  /*) ;;
  *) LPP_E2E_STATE=$PWD/$LPP_E2E_STATE ;;
esac
case $LPP_E2E_STATE in
  *[!A-Za-z0-9._/-]*) # it goes into many configuration files, unquoted
    printf 'e2e-cluster: LPP_E2E_STATE=%s has more than letters, digits and ._/-\n' \
      "$LPP_E2E_STATE" >&2
    exit 2 ;;
esac
LPP_E2E_NODE=${LPP_E2E_NODE:-e2e-node$_suffix}

# Twenty ports for each instance, below the range of ephemeral ports. The cluster takes the
# first ten, the rest is for what a test suite runs beside it.
LPP_E2E_PORT_BASE=${LPP_E2E_PORT_BASE:-$((21400 + LPP_E2E_INSTANCE * 20))}
PORT_ETCD=$LPP_E2E_PORT_BASE
PORT_ETCD_PEER=$((LPP_E2E_PORT_BASE + 1))
PORT_API=$((LPP_E2E_PORT_BASE + 2))
PORT_CONTROLLERS=$((LPP_E2E_PORT_BASE + 3))
PORT_SCHEDULER=$((LPP_E2E_PORT_BASE + 4))
PORT_KUBELET=$((LPP_E2E_PORT_BASE + 5))
PORT_KUBELET_HEALTH=$((LPP_E2E_PORT_BASE + 6))

# A kubelet refuses 127/8 as its address, so the node gets one of its own on the loopback device.
NODE_IP=10.77.$((LPP_E2E_INSTANCE * 2)).1
POD_SUBNET=10.77.$((LPP_E2E_INSTANCE * 2 + 1)).0/24
NODE_CGROUP=lpp-e2e$_suffix

# Client limits of the controllers and the scheduler; "stock" leaves them as they come, 20/30 and
# 50/100, which set the pace of every test with many claims: the volume binder alone makes about
# five writes a volume.
LPP_E2E_CONTROLLER_QPS=${LPP_E2E_CONTROLLER_QPS:-1000}

for _number in "$LPP_E2E_PORT_BASE" "${LPP_E2E_CONTROLLER_QPS/#stock/20}"; do
  case $_number in
    '' | *[!0-9]*)
      printf 'e2e-cluster: "%s" is no number (LPP_E2E_PORT_BASE, LPP_E2E_CONTROLLER_QPS)\n' \
        "$_number" >&2
      exit 2 ;;
  esac
done

PKI=$LPP_E2E_STATE/pki
RUN=$LPP_E2E_STATE/run
LOG=$LPP_E2E_STATE/log
BIN=$LPP_E2E_STATE/bin # link to the directory that binaries.sh found
ADMIN_KUBECONFIG=$LPP_E2E_STATE/admin.kubeconfig
MARKER=$LPP_E2E_STATE/.lpp-e2e # only a directory that holds it is ever wiped
export KUBECACHEDIR=$LPP_E2E_STATE/kubectl-cache # what kubectl remembers of a cluster ends with it
export LPP_E2E_INSTANCE LPP_E2E_STATE LPP_E2E_NODE LPP_E2E_PORT_BASE

say() { printf 'e2e-cluster: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
cannot() { say "cannot: $*"; exit 3; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

make_state() {
  if [ ! -e "$LPP_E2E_STATE" ]; then (umask 077 && mkdir -p "$LPP_E2E_STATE"); fi
  [ -O "$LPP_E2E_STATE" ] || die "$LPP_E2E_STATE belongs to somebody else; set LPP_E2E_STATE"
  if [ ! -e "$MARKER" ] && [ -n "$(ls -A "$LPP_E2E_STATE")" ]; then
    die "$LPP_E2E_STATE is in use for something else; set LPP_E2E_STATE to a new directory"
  fi
  mkdir -p "$PKI" "$RUN" "$LOG"
  : >"$MARKER"
}

# Asks the API server without kubectl, which takes ten times as long to start.
api_get() { # PATH
  curl -sf --max-time 5 --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" \
    "https://127.0.0.1:$PORT_API$1"
}
api_ready() { api_get /readyz >/dev/null 2>&1; }

kctl() { "$BIN/kubectl" --kubeconfig "$ADMIN_KUBECONFIG" "$@"; }
