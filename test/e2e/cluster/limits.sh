#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limits.sh up      Mount a file system that holds limits at $LPP_E2E_STATE/limits, on a file of 600 MiB:
#                   XFS with project quota if this machine's kernel has that, else btrfs with quota.
#                   Prints which one.
# limits.sh down    Take it away again.
#
# Exit: 0 done, 1 failed, 2 usage, 3 this machine can mount neither (says why).
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

disk=$LPP_E2E_STATE/limits
image=$disk.image

# try MKFS OPTIONS    As the loop device of an image file; both go with the mount.
try() {
  truncate -s 0 "$image"
  truncate -s 600M "$image"
  "$1" -q "$image" >>"$LOG/limits.log" 2>&1 && mount -o "loop,$2" "$image" "$disk" >>"$LOG/limits.log" 2>&1 &&
    # Agents' pods are to see what is mounted below it, as on every machine whose init is systemd.
    mount --make-shared "$disk" >>"$LOG/limits.log" 2>&1
}

up() {
  [ "$(id -u)" = 0 ] || cannot "a file system with limits needs root"
  make_state
  down
  mkdir -p "$disk"
  if try mkfs.xfs prjquota; then
    echo xfs
  elif try mkfs.btrfs commit=1; then
    btrfs quota enable "$disk" >>"$LOG/limits.log" 2>&1 || { down; cannot "btrfs has no quota here"; }
    echo btrfs
  else
    down
    cannot "this machine mounts neither XFS with project quota nor btrfs, see $LOG/limits.log"
  fi
}

down() {
  local device
  if mountpoint -q "$disk"; then umount "$disk" || umount --lazy "$disk" || return 1; fi
  # One that a suite has made of the file itself.
  for device in $(losetup --noheadings --output NAME --associated "$image" 2>/dev/null); do
    losetup --detach "$device" 2>/dev/null || true
  done
  rm -rf --one-file-system "$disk" "$image"
}

case ${1:-} in
  up) up ;;
  down) down ;;
  *) say "usage: limits.sh up|down"; exit 2 ;;
esac
