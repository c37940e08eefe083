#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the machine that node_guest.sh starts: BENCH on a disk in memory, once for each of TYPES, with
# the words of ARGUMENTS, which commas separate.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

end() {
  echo "node: $*"
  echo o >/proc/sysrq-trigger
  read -r _ </dev/zero
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /mnt
mkdir /mnt/disk
echo "node: Linux $(uname -r), clock $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"

for type in $(echo "$TYPES" | tr , ' '); do
  echo "node: on $type"
  options=prjquota
  case $type in
    xfs) mkfs.xfs -qf -K /dev/ram0 ;;
    # As many inodes as there are blocks for: a tree of small files takes them.
    ext4) mkfs.ext4 -qF -E nodiscard,quotatype=prjquota -O quota,project -i 4096 /dev/ram0 ;;
    btrfs) mkfs.btrfs -qfK /dev/ram0 && options=commit=30 ;;
    tmpfs) options=rw ;;
  esac >/mnt/out 2>&1 || end "no $type is made"
  mount -t "$type" -o "$options" /dev/ram0 /mnt/disk || end "$type cannot be mounted"
  if [ "$type" = btrfs ]; then
    btrfs quota enable /mnt/disk && btrfs quota rescan -w /mnt/disk >/mnt/out
  fi || end "btrfs has no quota"
  rm -rf /mnt/nothing # from now on it is in memory
  # shellcheck disable=SC2046 # words, none of them quoted
  LPP_NODE_TEST_DIR=/mnt/disk "$BENCH" --benchmark_color=false $(echo "$ARGUMENTS" | tr , ' ') 2>/mnt/errors || {
    cat /mnt/errors
    end "failed on $type"
  }
  umount /mnt/disk
done
end "done"
