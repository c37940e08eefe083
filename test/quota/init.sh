#!/bin/sh
# The first process of the user-mode Linux kernel that run.sh starts. Its root is the machine's own,
# read-only; PROGRAM is the test program.
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
insmod "$modules/quota_tree.ko" && insmod "$modules/quota_v2.ko" ||
  end "the kernel's quota modules are missing: ext4 cannot be mounted"

on() { # NAME DEVICE OPTIONS
  mkdir "/mnt/$1"
  mount -o "$3" "/dev/$2" "/mnt/$1" || end "$1 cannot be mounted"
}
on xfs ubda prjquota
on ext4 ubdb prjquota
on xfs-off ubdc rw
on ext4-off ubdd rw
on ext4-counts ubde rw

# Nobody is held to limits on ext4 who has this right.
run() {
  setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$PROGRAM" $ARGUMENTS "$@"
}

LPP_QUOTA_OFF="/mnt/xfs-off=mount -o prjquota /dev/ubdc /mnt/xfs-off"
LPP_QUOTA_OFF="$LPP_QUOTA_OFF;/mnt/ext4-off=tune2fs -O project,quota -Q prjquota /dev/ubdd"
LPP_QUOTA_OFF="$LPP_QUOTA_OFF;/mnt/ext4-counts=quotaon -P /mnt/ext4-counts"
export LPP_QUOTA_OFF

for type in xfs ext4; do
  echo "quota: on $type"
  # By a file: the terminal of this kernel is not made for programs that look at it.
  LPP_NODE_TEST_DIR=/mnt/$type run >/mnt/out 2>&1 && failed= || failed=yes
  cat /mnt/out
  [ -z "$failed" ] || end "failed on $type"
  left=$(ls -A "/mnt/$type" | grep -vx 'lost+found')
  [ -z "$left" ] || end "left on $type: $left"
done
end "all passed"
