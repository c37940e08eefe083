# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The tools of XFS as far as the scripts of examples/quota use them, on a table beside the volumes:
# directory, project, limit. The real ones need a filesystem with quotas, which few machines have
# for a test. Put in front of the scripts.

# The busybox of Debian has neither of these. A folder is a lock: only one mkdir makes it. The lock of
# a script goes with the script, as flock's does.
lock() { until mkdir "$1" 2>/dev/null; do sleep 0.1; done; }
flock() {
  lock "$(table).script"
  trap 'rmdir "$(table).script"' EXIT
}
cksum() { echo "$((0x$(md5sum | cut -c 1-7))) 0"; }

table() { printf '%s/.projects' "${base:-$(dirname "$VOL_DIR")}"; }

xfs_io() { # -r -c lsproj DIRECTORY
  [ "$1 $2 $3" = "-r -c lsproj" ] && [ -d "$4" ] || exit 90
  touch "$(table)"
  echo "projid = $(awk -v d="$4" '$1 == d { n = $2 } END { print n + 0 }' "$(table)")"
}

xfs_quota() { # -x -c COMMAND BASE
  [ "$1 $2" = "-x -c" ] && [ -d "$4" ] || exit 91
  # As in the kernel, one change at a time: the helper pods of two volumes may run together.
  lock "$(table).change"
  touch "$(table)"
  # shellcheck disable=SC2086 # words of a command
  set -- $3
  case $1 in
    report) awk '{ print "#" $2, 0, 0, $3 }' "$(table)" ;;
    project) echo "$4 $5 0" >>"$(table)" ;; # -s -p DIRECTORY PROJECT
    limit)                                  # -p bhard=BYTES PROJECT
      awk -v n="$4" -v l="${3#bhard=}" '$2 == n { $3 = l } { print }' "$(table)" >"$(table).new"
      mv "$(table).new" "$(table)"
      ;;
    *) exit 92 ;;
  esac
  rmdir "$(table).change"
}
