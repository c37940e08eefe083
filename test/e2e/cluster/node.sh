#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# node.sh check    Say whether this machine can run a real node.
# node.sh up       Start containerd and a kubelet, and wait until pods can be scheduled to the node.
# node.sh image NAME PROGRAM    Give the node an image that holds nothing but a static program, or what a
#                               directory holds.
# node.sh down     Stop them and remove every trace: processes, mounts, cgroups, interfaces.
#
# Exit: 0 done, 1 failed, 2 usage, 3 this machine cannot run a node (says why).
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
. "$CLUSTER_DIR/process.sh"
. "$CLUSTER_DIR/pki.sh"
. "$CLUSTER_DIR/images.sh"
. "$CLUSTER_DIR/cgroups.sh"
. "$CLUSTER_DIR/host.sh"

NODE=$LPP_E2E_STATE/node
SOCKET=$NODE/containerd.sock
CNI_NETWORK=$NODE_CGROUP # names the network's files in a place that is shared
CNI_BIN=${LPP_E2E_CNI_BIN:-/usr/lib/cni}

check() {
  local reason
  [ "$(id -u)" = 0 ] || cannot "a node needs root"
  "$CLUSTER_DIR/install-deps.sh" --check node || exit $?
  [ -r /dev/kmsg ] || cannot "there is no /dev/kmsg, which the kubelet reads"
  (echo "$(</proc/sys/vm/overcommit_memory)" >/proc/sys/vm/overcommit_memory) 2>/dev/null ||
    cannot "/proc/sys cannot be written, the kubelet sets kernel parameters"
  unshare --mount --pid --net --ipc --uts --fork true 2>/dev/null ||
    cannot "no new namespaces can be made (mount, pid, net, ipc, uts)"
  unshare --mount mount -t tmpfs none /mnt 2>/dev/null ||
    cannot "nothing can be mounted, not even in a namespace of its own"
  ip link set dev lo up 2>/dev/null || cannot "network devices cannot be configured"
  if [ -z "$(_cgroup_dirs)" ]; then
    make_state
    reason=$(on_host_alone take_host) || { remove_cgroups; on_host_alone restore_host; cannot "$reason"; }
    remove_cgroups
    on_host_alone restore_host
  fi
}

snapshotter() { # overlayfs does not work on top of itself, as in a container
  local try=$NODE/try
  mkdir -p "$try"/{lower,upper,work,merged}
  if unshare --mount mount -t overlay none "$try/merged" \
    -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" 2>/dev/null; then
    echo overlayfs
  else
    echo native
  fi
  rm -rf "$try"
}

write_containerd_config() { # SNAPSHOTTER
  cat >"$NODE/containerd.toml" <<TOML
version = 2
root = "$NODE/containerd"
state = "$NODE/containerd-run"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "$SOCKET"
[ttrpc]
  address = "$SOCKET.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$CNI_BIN"
    conf_dir = "$NODE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$1"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$(command -v runc)"
        Root = "$NODE/runc"
        SystemdCgroup = false
TOML
  # One veth pair for each pod: it goes with the pod, no bridge stays.
  mkdir -p "$NODE/cni"
  cat >"$NODE/cni/10-e2e.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "$CNI_NETWORK", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "$NODE/cni-state",
    "ranges": [[{"subnet": "$POD_SUBNET"}]]}}]}
JSON
}

write_kubelet_config() {
  cat >"$NODE/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
port: $PORT_KUBELET
healthzBindAddress: 127.0.0.1
healthzPort: $PORT_KUBELET_HEALTH
tlsCertFile: $PKI/kubelet.crt
tlsPrivateKeyFile: $PKI/kubelet.key
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $PKI/ca.crt}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://$SOCKET
cgroupDriver: cgroupfs
cgroupRoot: /$NODE_CGROUP
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
oomScoreAdj: 0
resolvConf: ""
clusterDNS: [10.96.0.10] # nobody answers there; without one every pod gets a Warning event
podLogsDir: $LOG/pods
volumePluginDir: $NODE/plugins
maxPods: 250
# The disk of a developer's machine may be nearly full; the images must stay, they cannot be pulled.
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
volumeStatsAggPeriod: 5s
YAML
}

node_is() { # JQ_CONDITION on the Node object
  api_get "/api/v1/nodes/$LPP_E2E_NODE" | jq -e "$1"
}

# The API server gives every new Node the taint, and the controllers take it away some time after
# the node is ready.
untaint() {
  kctl taint node "$LPP_E2E_NODE" node.kubernetes.io/not-ready:NoSchedule- >/dev/null 2>&1 || true
  wait_until 90 "a node without taints" kubelet node_is '(.spec.taints // []) == []'
}

ctrd() { ctr --address "$SOCKET" --namespace k8s.io "$@"; }

import_images() { # TAR SNAPSHOTTER
  ctrd images import --snapshotter "$2" "$1" >>"$LOG/import.log" 2>&1 ||
    die "the images cannot be imported, see $LOG/import.log"
}

image() { # NAME PROGRAM
  alive containerd || die "there is no node; run node.sh up first"
  [ -x "$2" ] || die "$2 is neither a program nor a directory"
  if [ ! -d "$2" ] && ldd "$2" >/dev/null 2>&1; then die "$2 is not static"; fi
  make_program_image "$NODE/program.tar" "$1" "$2"
  import_images "$NODE/program.tar" "$(snapshotter)"
  rm -f "$NODE/program.tar"
}

stop_when_failed() {
  local code=$?
  if [ "$code" != 0 ]; then
    down || true
    say "the logs are in $LOG"
  fi
  exit "$code"
}

up() {
  local began reason kind
  api_ready || die "the control plane is not up; run up.sh first"
  if alive containerd && alive kubelet && node_is '(.spec.taints // []) == []' >/dev/null 2>&1; then
    return 0
  fi
  check
  began=$(now_ms)
  down
  trap stop_when_failed EXIT
  trap 'exit 130' INT TERM
  mkdir -p "$NODE/plugins" "$LOG/pods"
  reason=$(on_host_alone take_host) || cannot "$reason"
  ip address add "$NODE_IP/32" dev lo || cannot "the loopback device takes no address"
  make_cert kubelet "/O=system:nodes/CN=system:node:$LPP_E2E_NODE" "IP:$NODE_IP,DNS:$LPP_E2E_NODE"
  write_kubeconfig "$NODE/kubelet.kubeconfig" kubelet
  kind=$(snapshotter)
  write_containerd_config "$kind"
  write_kubelet_config

  make_images "$NODE/images.tar"
  start containerd containerd --config "$NODE/containerd.toml" --log-level info
  wait_until 90 "containerd" containerd ctrd version
  import_images "$NODE/images.tar" "$kind"
  port_free "$NODE_IP:$PORT_KUBELET" || die "port $PORT_KUBELET is taken; set LPP_E2E_PORT_BASE"
  start kubelet "$BIN/kubelet" \
    --config "$NODE/kubelet.yaml" --kubeconfig "$NODE/kubelet.kubeconfig" \
    --root-dir "$NODE/kubelet" --cert-dir "$NODE/kubelet-pki" \
    --hostname-override "$LPP_E2E_NODE" --node-ip "$NODE_IP"
  wait_until 90 "the node's readiness" kubelet \
    node_is 'any(.status.conditions[]; .type == "Ready" and .status == "True")'
  untaint
  say "$LPP_E2E_NODE is ready after $(($(now_ms) - began)) ms"
}

# The shims of our containerd name its socket in their command line.
shims() { pgrep -f -- "containerd-shim.* -address $SOCKET( |\$)" || true; }

end_shims() { # with their containers dead they end by themselves, if containerd lives
  local began=$SECONDS pids
  while pids=$(shims) && [ -n "$pids" ]; do
    if [ $((SECONDS - began)) -ge "$END_SECONDS" ]; then
      say "these shims do not end: ${pids//$'\n'/ }"
      return 1
    fi
    # shellcheck disable=SC2086  # a list of numbers
    if [ $((SECONDS - began)) -ge 2 ] || ! alive containerd; then kill -KILL $pids 2>/dev/null || true; fi
    sleep 0.05
  done
}

unmount_all() {
  local point
  while read -r point; do
    umount "$point" 2>/dev/null || umount --lazy "$point" || return 1
  done < <(awk -v below="$NODE/" -v volumes="$LPP_E2E_STATE/volumes" \
    'index($2, below) == 1 || $2 == volumes {print $2}' /proc/mounts | tac)
}

# The node vanishes as by a power cut, which needs no help of the API server and works whatever
# state the node is in; its objects are removed from the API afterwards.
down() {
  local failed=
  [ -e "$MARKER" ] || return 0
  stop kubelet
  kill_cgroup || failed=1
  end_shims || failed=1
  stop containerd
  unmount_all || failed=1
  remove_cgroups || failed=1
  ip address delete "$NODE_IP/32" dev lo 2>/dev/null || true
  remove_wired_files "$NODE" "$CNI_NETWORK"
  on_host_alone restore_host || failed=1
  if [ -d "$NODE" ]; then
    rm -rf --one-file-system "$NODE" || failed=1
    if api_ready; then
      kctl delete node "$LPP_E2E_NODE" --ignore-not-found --wait=false >/dev/null || true
      kctl delete pods --all-namespaces --field-selector "spec.nodeName=$LPP_E2E_NODE" \
        --force --grace-period=0 --wait=false >/dev/null 2>&1 || true
    fi
  fi
  [ -z "$failed" ] || die "something of the node is left, see above"
}

case ${1:-} in
  check) check ;;
  up) up ;;
  image)
    [ $# = 3 ] || { say "usage: node.sh image NAME PROGRAM"; exit 2; }
    image "$2" "$3"
    ;;
  down)
    [ "$(id -u)" = 0 ] || { [ ! -e "$NODE" ] || cannot "a node needs root"; exit 0; }
    down
    ;;
  *) say "usage: node.sh check|up|image|down"; exit 2 ;;
esac
