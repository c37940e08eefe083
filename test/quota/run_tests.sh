# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Sourced by init.sh and own_init.sh, which say how to end: what the tests stand on, and how they are run.

on() { # NAME SOURCE OPTIONS    Mounts a device, or a file that is made one, at /mnt/NAME.
  mkdir "/mnt/$1"
  mount -o "$3" "$2" "/mnt/$1" || end "$1 cannot be mounted"
}

on_btrfs() { # SOURCE OTHER    With quota, and one where tests turn it on.
  # What is removed is taken apart once per commit, else every 30 s.
  on btrfs "$1" commit=5
  on btrfs-off "$2" rw
  btrfs quota enable /mnt/btrfs || end "btrfs has no quota"
  btrfs quota rescan -w /mnt/btrfs >/mnt/out
  export LPP_QUOTA_OFF="${LPP_QUOTA_OFF:+$LPP_QUOTA_OFF;}/mnt/btrfs-off=btrfs quota enable /mnt/btrfs-off"
}

# Runs the test cases $CASES of the program $TESTS on each of $TYPES, which are mounted.
run_tests() {
  for type in $(echo "$TYPES" | tr , ' '); do
    echo "quota: on $type"
    # Nobody is held to limits on ext4 who has that right. The output goes by a file: the terminal of
    # this kernel is not made for programs that look at it.
    if LPP_NODE_TEST_DIR=/mnt/$type setpriv --bounding-set -sys_resource --inh-caps -sys_resource \
      stdbuf -oL "$TESTS" --duration=true --test-case="$CASES" >/mnt/out 2>&1; then
      grep -av '^[0-9.]* s: ' /mnt/out
    else
      grep -av '^[0-9.]* s: ' /mnt/out
      end "failed on $type"
    fi
    for left in "/mnt/$type"/* "/mnt/$type"/.[!.]*; do
      case $left in
        */lost+found | */\* | */.\[*) ;;
        *) end "left on $type: $left" ;;
      esac
    done
  done
}
