#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the user-mode Linux kernel that run.sh starts. Its root is the machine's own,
# read-only; TESTS is the test program, PROGRAM the one that is shipped, DOCS the page whose commands
# are run; TYPES and CASES as in run.sh.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

end() {
  echo "quota: $*"
  echo o >/proc/sysrq-trigger
  # The kernel is gone before this ends.
  read -r _ </dev/zero
}

mount -t proc proc /proc
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /mnt
modules=/usr/lib/uml/modules/$(uname -r)/kernel/fs/quota
for module in quota_tree quota_v2; do
  insmod "$modules/$module.ko" || end "the kernel's module $module is missing: ext4 needs it"
done

on() { # NAME DEVICE OPTIONS
  mkdir "/mnt/$1"
  mount -o "$3" "/dev/$2" "/mnt/$1" || end "$1 cannot be mounted"
}
on xfs ubda prjquota
on ext4 ubdb prjquota
on xfs-off ubdc rw
on ext4-off ubdd rw
on ext4-counts ubde rw
# What is removed is taken apart once per commit, else every 30 s.
on btrfs ubdf commit=5
on btrfs-off ubdg rw
btrfs quota enable /mnt/btrfs || end "btrfs has no quota"
btrfs quota rescan -w /mnt/btrfs >/mnt/out

LPP_QUOTA_OFF="/mnt/xfs-off=mount -o prjquota /dev/ubdc /mnt/xfs-off"
LPP_QUOTA_OFF="$LPP_QUOTA_OFF;/mnt/ext4-off=tune2fs -O project,quota -Q prjquota /dev/ubdd"
LPP_QUOTA_OFF="$LPP_QUOTA_OFF;/mnt/ext4-counts=quotaon -P /mnt/ext4-counts"
LPP_QUOTA_OFF="$LPP_QUOTA_OFF;/mnt/btrfs-off=btrfs quota enable /mnt/btrfs-off"
export LPP_QUOTA_OFF

for type in $(echo "$TYPES" | tr , ' '); do
  echo "quota: on $type"
  # Nobody is held to limits on ext4 who has that right. The output goes by a file: the terminal of
  # this kernel is not made for programs that look at it.
  if LPP_NODE_TEST_DIR=/mnt/$type setpriv --bounding-set -sys_resource --inh-caps -sys_resource \
    "$TESTS" --test-case="$CASES" >/mnt/out 2>&1; then
    cat /mnt/out
  else
    cat /mnt/out
    end "failed on $type"
  fi
  for left in "/mnt/$type"/* "/mnt/$type"/.[!.]*; do
    case $left in
      */lost+found | */\* | */.\[*) ;;
      *) end "left on $type: $left" ;;
    esac
  done
done

# The commands of the page, after those of its table have turned limits on.
page() { # TYPE DEVICE OPTIONS
  echo "quota: the commands of the page on $1"
  mkdir -p /mnt/disk
  mount -o "$3" "/dev/$2" /mnt/disk || end "$1 cannot be mounted"
  if [ "$1" = btrfs ]; then
    btrfs quota enable /mnt/disk >/mnt/out || end "btrfs quota enable fails"
    btrfs quota rescan -w /mnt/disk >/mnt/out || end "btrfs quota rescan fails"
    btrfs subvolume create /mnt/disk/old >/mnt/out || end "no subvolume"
  fi
  mkdir -p /mnt/disk/old/folder
  dd if=/dev/zero of=/mnt/disk/old/folder/full bs=1M count=60 2>/mnt/out
  sync
  while read -r _ command; do
    echo "# local-path-provisioner $command"
    # shellcheck disable=SC2086 # words, none of them quoted
    "$PROGRAM" $command >/mnt/out 2>&1 || {
      cat /mnt/out
      end "failed: $command"
    }
    cat /mnt/out
    case $command in
      *" make "*)
        fill /mnt/disk/data/full && end "the limit does not hold"
        size=$(stat -c %s /mnt/disk/data/full)
        # What the file system needs for itself counts, too.
        if [ "$size" -gt 67108864 ] || [ "$size" -lt 65000000 ]; then end "it does not hold 64Mi"; fi
        ;;
      *" adopt "*)
        fill /mnt/disk/old/more && end "the limit does not hold"
        [ "$(stat -c %s /mnt/disk/old/more)" -le 4194304 ] || end "what was there does not count"
        ;;
      *" resize "*)
        if [ "$1" = btrfs ]; then
          dd if=/dev/zero of=/mnt/disk/data/more bs=1M count=32 2>/mnt/out || end "it has not grown"
        elif [ "$(df -B1 --output=size /mnt/disk/data | tail -n 1)" != 134217728 ]; then
          end "it has not grown"
        fi
        ;;
    esac
  done </mnt/commands
  if [ ! -s /mnt/commands ] || [ -e /mnt/disk/data ]; then end "it was not removed"; fi
  umount /mnt/disk
}
fill() { # FILE
  setpriv --bounding-set -sys_resource --inh-caps -sys_resource \
    dd if=/dev/zero of="$1" bs=1M count=100 2>/mnt/out
}
grep '^local-path-provisioner node ' "$DOCS" >/mnt/commands
umount /mnt/xfs-off /mnt/ext4-off /mnt/btrfs-off
page xfs ubdc prjquota
tune2fs -O project,quota -Q prjquota /dev/ubdd >/mnt/out 2>&1 || {
  cat /mnt/out
  end "tune2fs fails"
}
page ext4 ubdd prjquota
page btrfs ubdg rw
end "all passed"
