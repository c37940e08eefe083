#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh TESTS [PROGRAM]: runs the tests of src/node and the commands of docs/sizes.md (without PROGRAM the
# tests only) on XFS and ext4 with project quota and on btrfs, in user-mode Linux kernels: as any user,
# without a disk and whatever kernel the machine has. One kernel for each file system and one for the
# page, beside each other: one has one processor. On btrfs in the machine's own kernel, where that can.
# LPP_QUOTA_TYPES=btrfs or xfs,ext4: the tests only there. LPP_QUOTA_CASES: only the test cases of that
# pattern. LPP_QUOTA_KERNEL=process: btrfs, too, in a kernel that is a process; guest: all in Debian's own
# kernel, in a virtual machine (guest.sh says what that takes).
# Exit: 0 all passed, 1 not, 3 it cannot be done here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/temporary.sh
. "$here/../../scripts/temporary.sh"
# shellcheck source=test/quota/kernel.sh
. "$here/kernel.sh"
# shellcheck source=test/quota/guest.sh
. "$here/guest.sh"
# shellcheck source=test/quota/own_kernel.sh
. "$here/own_kernel.sh"

if [ $# != 1 ] && [ $# != 2 ]; then
  echo "usage: run.sh TESTS [PROGRAM]" >&2
  exit 2
fi
tests=$(realpath "$1")
program=${2:+$(realpath "$2")}
PATH=$PATH:/usr/sbin:/sbin

case ${LPP_QUOTA_KERNEL:=} in
  '' | process) run=run_kernel memory=256M disks=ubd ;;
  guest)
    run=run_guest memory=1024M disks=vd
    if why=$(guest_lacks); then
      echo "skipped: quota: $why"
      exit 3
    fi
    ;;
  *)
    echo "LPP_QUOTA_KERNEL is neither process nor guest" >&2
    exit 2
    ;;
esac
for tool in c++ linux.uml mkfs.xfs mkfs.ext4 mkfs.btrfs insmod setpriv; do
  if [ "$run" = run_guest ]; then break; fi
  if command -v "$tool" >/dev/null; then continue; fi
  echo "skipped: quota: there is no $tool; scripts/install-deps.sh quota installs it"
  exit 3
done

parts=()
for name in $(echo "${LPP_QUOTA_TYPES:-xfs,ext4,btrfs}" | tr , ' '); do
  case $name in
    xfs | ext4 | btrfs) parts+=("$name") ;;
    *)
      echo "LPP_QUOTA_TYPES is of xfs, ext4 and btrfs, with commas" >&2
      exit 2
      ;;
  esac
done
if [ -n "$program" ]; then parts+=(page); fi

# In memory where there is enough of it: what is on the images is fsynced all the time. The s of
# "ubd0s" writes at once; without it this kernel waits for ever for flushes of files in memory.
work=$(temporary_folder $((${#parts[@]} * 1000)))
# The kernels do not end with who has started them.
trap 'pkill -KILL -f "(umid=|-name )lpp-$$-" || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

image() { # FILE COMMAND...
  local file=$1
  shift
  truncate -s 0 "$own/$file"
  truncate -s 400M "$own/$file"
  "$@" "$own/$file" >"$own/log" 2>&1 || {
    cat "$own/log" >&2
    exit 1
  }
}
images() {
  # With few inodes: tests use up all.
  image xfs mkfs.xfs -q -i maxpct=5
  image xfs-off mkfs.xfs -q
  image ext4 mkfs.ext4 -q -N 32768 -O quota,project -E quotatype=prjquota
  image ext4-counts mkfs.ext4 -q -O quota,project -E quotatype=prjquota
  image ext4-off mkfs.ext4 -q
  image xfs-tagged mkfs.xfs -q
  image ext4-tagged mkfs.ext4 -q -O quota,project -E quotatype=prjquota
  image btrfs mkfs.btrfs -q
  image btrfs-off mkfs.btrfs -q
}


renice -n 10 $$ >/dev/null
# in_kernel PART    xfs, ext4 or btrfs: the tests; page: the commands of the page. In the directory $own.
in_kernel() {
  local types=$1 shipped='' kernel=$run init=init.sh
  if [ "$1" = page ]; then types='' shipped=$program; fi
  if [ "$1$LPP_QUOTA_KERNEL" = btrfs ] && can_own "$own/btrfs"; then kernel=run_own init=own_init.sh; fi
  kernel_name=lpp-$$-$1 "$kernel" "$own" "$memory" "$here/$init" DISKS=$disks \
    ubd0s="$own/xfs" ubd1s="$own/ext4" ubd2s="$own/xfs-off" ubd3s="$own/ext4-off" \
    ubd4s="$own/ext4-counts" ubd5s="$own/btrfs" ubd6s="$own/btrfs-off" \
    ubd7s="$own/xfs-tagged" ubd8s="$own/ext4-tagged" \
    TESTS="$tests" PROGRAM="$shipped" DOCS="$(realpath "$here/../../docs/sizes.md")" \
    TYPES="$types" CASES="${cases// /?}" >"$own/out"
}
cases=${LPP_QUOTA_CASES:-*}

# Now and then this kernel waits for ever for a write of its own. The tests write all the time: when
# nothing has been written for two minutes it is started anew, with new file systems; what hangs twice
# at the same test is ours. What it said is in PART/out afterwards.
part() { # PART
  local own=$work/$1 hung_at=none attempt kernel hung last
  mkdir "$own"
  : >"$own/out"
  for attempt in 1 2 3; do
    images
    in_kernel "$1" &
    kernel=$!
    hung=
    while kill -0 "$kernel" 2>/dev/null; do
      sleep 2
      last=$(find "$own" -maxdepth 1 -type f -printf '%T@\n' | sort -n | tail -n 1)
      if [ $(($(date +%s) - ${last%.*})) -gt 120 ]; then
        hung=$(tr -d '\r' <"$own/out" | grep -a '^quota: silent since' | tail -n 1 || true)
        hung=${hung:-at the start}
        pkill -KILL -f "(umid=|-name )lpp-$$-$1( |\$)" || true
      fi
    done
    wait "$kernel" || true
    if [ -z "$hung" ]; then return; fi
    echo "quota: the kernel of $1, attempt $attempt, did nothing any more:" >&2
    tail -n 100 "$own/out" >&2
    # Durations differ.
    case $hung in
      *' s: '*) hung=${hung#* s: } ;;
      *) hung="before the first test or after the last one, attempt $attempt" ;;
    esac
    if [ "$hung" = "$hung_at" ] || [ "$attempt" = 3 ]; then
      echo "quota: FAILED: it hangs on $1: $hung" >&2
      return 1
    fi
    hung_at=$hung
  done
}

began=()
for name in "${parts[@]}"; do
  part "$name" &
  began+=($!)
done
hung=0
for pid in "${began[@]}"; do wait "$pid" || hung=1; done

for name in "${parts[@]}"; do
  tr -d '\r' <"$work/$name/out" >"$work/said-$name"
  grep -av '^Core dump\|^Checking\|^SELinux\|^mmapper\|^Warning: tempdir\|^operation not supported error\|^$' \
    "$work/said-$name" || true
done
if [ $hung = 0 ] && ! grep -aq '^quota: ' "$work"/said-*; then
  echo "skipped: quota: its kernel does not start on this machine"
  exit 3
fi
result=$hung
for name in "${parts[@]}"; do
  if grep -aq '^quota: all passed' "$work/said-$name"; then continue; fi
  echo "quota: FAILED: $name" >&2
  result=1
done
if ! grep -aq '^\[doctest\] test cases: *[1-9]' "$work"/said-*; then
  echo "quota: FAILED: no test case is like $cases" >&2
  result=1
fi
# A case that ran on none of them has tested nothing.
if [ $result = 0 ] && [ "${LPP_QUOTA_TYPES:-}" = "" ]; then
  nowhere=$(cat "$work"/said-* | awk '
    /^quota: on / { ++types }
    /^not here: .*, as test\/quota has$/ { ++count[$0] }
    END { for (line in count) if (count[line] == types) print line }')
  if [ -n "$nowhere" ]; then
    printf 'quota: FAILED: on no file system: %s\n' "$nowhere" >&2
    result=1
  fi
fi
exit $result
