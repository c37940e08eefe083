#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# down.sh [--wipe]    Stop the node and the control plane; --wipe also removes all state and logs.
#
# Also stops what a suite started with a pid file in the same directory. Running it twice is fine.
# Exit: 0 nothing runs any more, 1 something is left (says what), 2 usage.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
. "$CLUSTER_DIR/process.sh"

wipe=
case ${1:-} in
  '') ;;
  --wipe) wipe=1 ;;
  *) say "usage: down.sh [--wipe]"; exit 2 ;;
esac
if [ ! -e "$LPP_E2E_STATE" ]; then exit 0; fi
[ -e "$MARKER" ] || die "$LPP_E2E_STATE was not made by up.sh; it is left alone"

for file in "$RUN"/*.pid; do # the suite's own processes first
  name=$(basename "$file" .pid)
  case $name in
    '*' | containerd | kubelet | etcd | kube-*) ;;
    *) stop "$name" ;;
  esac
done
if [ -e "$LPP_E2E_STATE/node" ]; then "$CLUSTER_DIR/node.sh" down; fi
if [ -e "$LPP_E2E_STATE/limits" ]; then "$CLUSTER_DIR/limits.sh" down; fi
stop kube-scheduler
stop kube-controller-manager
# After its last answer the API server may still wait some ten seconds for its own statistics.
stop kube-apiserver 2 quietly
stop etcd

if [ -n "$wipe" ]; then
  if grep -qF " $LPP_E2E_STATE/" /proc/mounts; then
    die "something is mounted below $LPP_E2E_STATE"
  fi
  rm -rf --one-file-system "$LPP_E2E_STATE"
fi
say "down${wipe:+ and wiped}"
