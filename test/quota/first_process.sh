# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Sourced by the first process of a kernel, which sets $called: how to end, and the file systems that all
# need.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

end() {
  echo "$called: $*"
  echo o >/proc/sysrq-trigger
  # The kernel is gone before this ends.
  read -r _ </dev/zero
}

mount -t proc proc /proc
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /mnt
