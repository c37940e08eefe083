# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What a node changes on its host, and how it is undone; sourced after env.sh and cgroups.sh.
#
# The nodes of all instances share the host, so the state before the first of them is kept in one
# place and restored when the last of them goes. Whether that is so is asked under a lock, and nobody comes
# before it is done.

HOST_BEFORE=/run/lpp-e2e

# Set by the kubelet and by the network plugins.
SYSCTLS=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
  kernel.keys.root_maxkeys kernel.keys.root_maxbytes net.ipv4.ip_forward)
# Wired into the kubelet, the shims and the network library; inner directories first.
LINKS_DIR=/var/log/containers
CNI_RESULTS=/var/lib/cni/results
WIRED_DIRS=("$LINKS_DIR" /var/lib/kubelet/device-plugins /var/lib/kubelet
  /run/containerd/s /run/containerd "$CNI_RESULTS" /var/lib/cni)

on_host_alone() { # COMMAND...
  (flock 9 && "$@") 9</run
}

# Remembers the host, and makes the cgroups by which other instances know that there is a node.
take_host() { # fails with a sentence on stdout
  remember_host
  make_cgroups
}

remember_host() {
  if ! mkdir "$HOST_BEFORE" 2>/dev/null; then return 0; fi
  sysctl "${SYSCTLS[@]}" >"$HOST_BEFORE/sysctl" 2>/dev/null || true
  ls -d "${WIRED_DIRS[@]}" >"$HOST_BEFORE/dirs" 2>/dev/null || true
}

# The files of this node in the wired-in places, while its directory still tells which they are.
remove_wired_files() { # NODE_DIRECTORY CNI_NETWORK
  local file id
  for file in "$LINKS_DIR"/*.log; do
    case $(readlink "$file") in "$LOG/pods/"*) rm -f "$file" ;; esac
  done
  for file in "$1"/containerd-run/io.containerd.runtime.v2.task/k8s.io/*/address; do
    if [ -f "$file" ]; then rm -f "$(sed 's#^unix://##' "$file")"; fi # the socket of a shim
  done
  for file in "$CNI_RESULTS/$2"-*-eth0; do
    id=${file#"$CNI_RESULTS/$2-"}
    rm -f "$file" "$CNI_RESULTS/cni-loopback-${id%-eth0}-lo"
  done
}

restore_host() {
  local dir
  if [ ! -d "$HOST_BEFORE" ] || other_nodes; then return 0; fi
  for dir in "${WIRED_DIRS[@]}"; do
    if [ -d "$dir" ] && ! grep -qxF "$dir" "$HOST_BEFORE/dirs"; then
      rm -f "$dir"/kubelet.sock "$dir"/kubelet_internal_checkpoint
      rmdir --ignore-fail-on-non-empty "$dir"
    fi
  done
  if ! sysctl -q -p "$HOST_BEFORE/sysctl" >/dev/null; then
    say "the kernel parameters in $HOST_BEFORE/sysctl cannot be restored"
    return 1
  fi
  restore_controllers
  rm -rf "$HOST_BEFORE"
}
