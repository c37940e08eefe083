#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the kernel that run.sh starts. Its root is the machine's own, read-only, its disks
# are /dev/$DISKS with a letter; TESTS is the test program, PROGRAM the one that is shipped or nothing, DOCS the
# page whose commands are run; TYPES and CASES as in run.sh.
called=quota
# shellcheck source=test/quota/first_process.sh
. "${0%/*}/first_process.sh"
# shellcheck source=test/quota/run_tests.sh
. "${0%/*}/run_tests.sh"

modules=/usr/lib/uml/modules/$(uname -r)/kernel/fs/quota
for module in quota_tree quota_v2; do
  if [ "$DISKS" != ubd ]; then continue; fi # all are there before the root is
  insmod "$modules/$module.ko" || end "the kernel's module $module is missing: ext4 needs it"
done

on xfs "/dev/${DISKS}a" prjquota
on ext4 "/dev/${DISKS}b" prjquota
on xfs-off "/dev/${DISKS}c" rw
on ext4-off "/dev/${DISKS}d" rw
on ext4-counts "/dev/${DISKS}e" rw
LPP_QUOTA_OFF="/mnt/xfs-off=mount -o prjquota /dev/${DISKS}c /mnt/xfs-off"
LPP_QUOTA_OFF="$LPP_QUOTA_OFF;/mnt/ext4-off=tune2fs -O project,quota -Q prjquota /dev/${DISKS}d"
LPP_QUOTA_OFF="$LPP_QUOTA_OFF;/mnt/ext4-counts=quotaon -P /mnt/ext4-counts"
on_btrfs "/dev/${DISKS}f" "/dev/${DISKS}g"

# When nothing gets on any more: at which case, and where in the kernel everybody waits.
watch_over() {
  last='' silent=0
  while sleep 10; do
    now=$(stat -c %s.%Y /mnt/out)
    if [ "$now" = "$last" ]; then silent=$((silent + 10)); else silent=0; fi
    last=$now
    [ $silent = 80 ] || continue
    echo "quota: silent since: $(grep -a ' s: ' /mnt/out | tail -n 1)"
    for task in /proc/[0-9]*/task/*; do
      name=$(tr '\0' ' ' <"$task/cmdline" | cut -c 1-80)
      [ -n "$name" ] || continue
      echo "quota: $name: $(grep State "$task/status")" \
        "$(cat "$task/wchan") $(cat "$task/syscall" 2>/dev/null)"
      cat "$task/stack" 2>/dev/null
    done
  done
}
watch_over &

run_tests

[ -n "$PROGRAM" ] || end "all passed"

# Directories that had limits, and a mount without: refused is what they would have to hold, the rest works.
tagged() { # NAME DEVICE HOW_TO_TURN_IT_ON
  echo "quota: off on $1"
  on "$1" "/dev/$2" prjquota
  node "$1" 0 make --path data --size 64Mi --quota hard
  echo kept >"/mnt/$1/data/file"
  chown 1000 "/mnt/$1/data"
  # As the pod of a tenant with hostUsers: false, even as root of its user namespace.
  if (cd "/mnt/$1/data" &&
    setpriv --reuid 1000 --clear-groups unshare --user --map-root-user chattr -p 0 .) >/mnt/out 2>&1; then
    end "the owner takes the directory out of its project, in a user namespace of its own"
  fi
  grep -q '^chattr: Invalid argument' /mnt/out || end "it is refused otherwise: $(cat /mnt/out)"
  node "$1" 0 usage
  if grep -q 'out of their limit' /mnt/out; then end "it is out of its limit all the same"; fi
  (cd "/mnt/$1/data" && setpriv --reuid 1000 --clear-groups --bounding-set=-all chattr -p 0 .) ||
    end "the owner cannot take the directory out of its project"
  node "$1" 0 usage
  grep -qF "1 of 1 volumes are out of their limit" /mnt/out || end "usage says nothing of it: $(cat /mnt/out)"
  node "$1" 0 adopt --path data --size 64Mi
  node "$1" 0 usage
  if grep -qF limit /mnt/out; then end "adopt has not set the limit again: $(cat /mnt/out)"; fi
  umount "/mnt/$1"
  mount -o rw "/dev/$2" "/mnt/$1" || end "$1 cannot be mounted"
  for command in "4 make --path data --size 64Mi --quota hard" "4 make --path more --size 64Mi --quota hard" \
    "3 resize --path data --size 128Mi --quota hard"; do
    # shellcheck disable=SC2086 # words, none of them quoted
    node "$1" $command
    grep -qF "$3" /mnt/out || end "it does not say how to turn limits on: $(cat /mnt/out)"
  done
  node "$1" 0 usage
  grep -qF "1 of 1 volumes have a limit on record that does not hold now" /mnt/out || end "usage says nothing of limits that are off"
  grep -qF "$3" /mnt/out || end "usage does not say how to turn limits on: $(cat /mnt/out)"
  node "$1" 0 list
  grep -q data /mnt/out || end "the volume is not listed"
  [ "$(cat "/mnt/$1/data/file")" = kept ] || end "the volume has lost its file"
  LPP_QUOTA_TAGGED="/mnt/$1=$3" "$TESTS" --test-case="where limits are off by now*" >/mnt/out 2>&1 || {
    cat /mnt/out
    end "failed where limits are off by now, on $1"
  }
  grep -q '^\[doctest\] test cases: *[1-9]' /mnt/out || end "there is no test of limits that are off by now"
  tail -n 3 /mnt/out
}
node() { # NAME EXIT_CODE COMMAND ARGUMENT...
  base=/mnt/$1 wanted=$2 command=$3
  shift 3
  code=0
  "$PROGRAM" node "$command" --base "$base" "$@" >/mnt/out 2>&1 || code=$?
  [ $code = "$wanted" ] || end "node $command $* ended with $code, not $wanted: $(cat /mnt/out)"
}
tagged xfs-tagged "${DISKS}h" "mount -o prjquota /dev/${DISKS}h /mnt/xfs-tagged"
tagged ext4-tagged "${DISKS}i" "quotaon -P /mnt/ext4-tagged"

# The commands of the page, as they stand there: those for the file system from a disk that holds nothing,
# and those that are the same for all. Only the disk has another name here.
page() { # TYPE DEVICE
  type=$1
  disk=/dev/$2
  echo "quota: the commands of the page on $type"
  wipefs -aq "$disk" || end "$disk cannot be made as new"
  commands=0 tuned=
  { section "$type"; section "the commands"; } >/mnt/commands
  while read -r command <&3; do
    prepare "$command"
    run_command "$command"
    look_at "$command"
    commands=$((commands + 1))
  done 3</mnt/commands
  # make, dd and how full it is; usage, resize, list, remove, adopt
  if [ $commands -lt 12 ] || [ -e /mnt/disk/data ]; then end "only $commands commands, or the directory is left"; fi
  if [ "$type" != btrfs ]; then held; fi
  umount /mnt/disk
  by_fstab
}
by_fstab() { # at the next start of the node the limits hold
  awk -v heading="### $type" '/^##/ { on = tolower($0) == heading } on && /^\/dev\/sdb / { print }' "$DOCS" |
    sed "s|/dev/sdb|$disk|" >/mnt/fstab
  mount -T /mnt/fstab /mnt/disk || end "the page's line for /etc/fstab does not mount it"
  if [ "$type" != btrfs ]; then
    findmnt /mnt/disk >/mnt/out
    says prjquota
  fi
  "$PROGRAM" node usage --base /mnt/disk >/mnt/out || end "usage fails"
  says '^old *64Mi'
  if grep -q 'does not hold now' /mnt/out; then end "its limits do not hold: $(cat /mnt/out)"; fi
  umount /mnt/disk
}
held() { # a volume of the provisioner that had no limit, with the page's command
  mkdir /mnt/disk/base
  "$PROGRAM" node make --base /mnt/disk/base --path volume --size 128Mi >/mnt/out 2>&1 || end "it is not made"
  section "volumes that are there already" | grep '^local-path-provisioner node adopt ' |
    sed 's|/opt/local-path-provisioner|/mnt/disk/base|; s|DIRECTORY|volume|' >/mnt/commands
  [ -s /mnt/commands ] || end "the page does not say how"
  read -r command </mnt/commands
  run_command "$command"
  "$PROGRAM" node resize --base /mnt/disk/base --path volume --size 192Mi --quota hard >/mnt/out 2>&1 ||
    end "it does not grow: $(cat /mnt/out)"
  [ "$(df -B1 --output=size /mnt/disk/base/volume | tail -n 1)" = 201326592 ] || end "its limit is another"
}
section() { # HEADING, in lower case: the commands of its sh blocks, without comments
  awk -v heading="### $1" '
    /^##/ { on = tolower($0) == heading }
    /^```/ { block = $0 == "```sh"; next }
    on && block { sub(/(^| +)# .*$/, ""); if ($0 != "") print }' "$DOCS"
}
prepare() { # COMMAND    what it finds
  case $1 in
    tune2fs*) # a file system without quota, and with a file
      mkfs.ext4 -qF "$disk"
      mount "$disk" /mnt/disk || end "no plain ext4"
      echo kept >/mnt/disk/kept
      umount /mnt/disk
      ;;
    *" adopt "*)
      if [ "$type" = btrfs ]; then btrfs subvolume create /mnt/disk/old >/mnt/out || end "no subvolume"; fi
      mkdir -p /mnt/disk/old/folder
      dd if=/dev/zero of=/mnt/disk/old/folder/full bs=1M count=60 2>/mnt/out
      sync
      ;;
  esac
}
run_command() { # COMMAND
  echo "# $1"
  wanted=0 code=0
  # What is to fill the directory is to be stopped.
  case $1 in *count=200) wanted=1 ;; esac
  # English, whatever the machine speaks: the page says what they say.
  (
    export LC_ALL=C
    eval "$(echo "$1" | sed "s|/dev/sdb|$disk|; s|^local-path-provisioner |\"$PROGRAM\" |")"
  ) >/mnt/out 2>&1 || code=$?
  cat /mnt/out
  [ $code = $wanted ] || end "it ended with $code, not $wanted: $1"
}
says() { grep -q -- "$1" /mnt/out || end "it does not say '$1'"; }
look_at() { # COMMAND    whether it has done what the page says
  case $1 in
    findmnt*) says prjquota ;;
    tune2fs*) tuned=1 ;;
    mount*)
      if [ -n "$tuned" ]; then rm /mnt/disk/kept || end "the file is lost"; fi
      tuned=
      ;;
    *" of=/mnt/disk/data/full "* | *" of=/mnt/disk/data/full")
      if [ "$type" = xfs ]; then says 'No space left on device'; else says 'Disk quota exceeded'; fi
      size=$(stat -c %s /mnt/disk/data/full)
      # What the file system needs for itself counts, too.
      if [ "$size" -gt 67108864 ] || [ "$size" -lt 65000000 ]; then end "it does not hold 64Mi"; fi
      ;;
    "df "*) says ' 64M .* 100% ' ;;
    *"qgroup show"*) says ' 64.00MiB' ;;
    *" adopt "*)
      fill /mnt/disk/old/more && end "the limit does not hold"
      [ "$(stat -c %s /mnt/disk/old/more)" -le 4194304 ] || end "what was there does not count"
      ;;
    *" usage "*) says 'data.*64' ;;
    *" resize "*)
      if [ "$type" = btrfs ]; then
        dd if=/dev/zero of=/mnt/disk/data/more bs=1M count=32 2>/mnt/out || end "it has not grown"
      elif [ "$(df -B1 --output=size /mnt/disk/data | tail -n 1)" != 134217728 ]; then
        end "it has not grown"
      fi
      ;;
  esac
}
fill() { # FILE
  setpriv --bounding-set -sys_resource --inh-caps -sys_resource \
    dd if=/dev/zero of="$1" bs=1M count=100 2>/mnt/out
}
umount /mnt/xfs-off /mnt/ext4-off /mnt/btrfs-off
page xfs "${DISKS}c"
page ext4 "${DISKS}d"
page btrfs "${DISKS}g"
end "all passed"
