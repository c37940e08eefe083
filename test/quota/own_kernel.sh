# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by run.sh: the kernel of this machine, where it has btrfs and this is root. It is six times as quick
# as one in a process, and never waits for ever for itself. XFS and ext4 with project quota few kernels of
# containers and virtual machines have.

# can_own IMAGE    Whether a btrfs that is on this file can be mounted, with quota.
can_own() {
  # shellcheck disable=SC2016 # it is expanded there
  [ "$(id -u)" = 0 ] && unshare --mount sh -c '
    mount -t tmpfs tmpfs /mnt && mkdir /mnt/disk && mount -o loop "$1" /mnt/disk && btrfs quota enable /mnt/disk
  ' sh "$1" >/dev/null 2>&1
}

# run_own WORK MEMORY INIT ARGUMENT...    As run_kernel does: an argument ubdNs=FILE is a file, the others are in
# the environment of INIT, with namespaces of its own that take what it mounts and starts with them.
run_own() {
  local init=$3
  shift 3
  timeout -k 5 "${LIMIT:-1700}" env "$@" unshare --mount --pid --fork --kill-child --mount-proc \
    sh "$init" -name "${kernel_name:-lpp-$$}" </dev/null 2>&1 || true
}
