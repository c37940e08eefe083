# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by what makes and removes many files, or has them on the disk all the time.

can_run_from() { # FOLDER    Not from a mount with noexec.
  local probe
  probe=$(mktemp "$1/lpp-XXXXXX") || return 1
  printf '#!/bin/sh\n' >"$probe"
  chmod +x "$probe"
  "$probe" 2>/dev/null
  local result=$?
  rm -f "$probe"
  return "$result"
}

# temporary_folder MEGABYTES    Makes one, in memory where there is so much of it, and says its name. Who
# makes files and removes them on ext4 waits: it looks past what went within the last seconds, file by file.
temporary_folder() {
  local free parent=${TMPDIR:-/tmp}
  free=$(df --output=avail -m /dev/shm 2>/dev/null | tail -n 1 || echo 0)
  if [ "${free:-0}" -gt "$1" ] && can_run_from /dev/shm; then parent=/dev/shm; fi
  mktemp -d "$parent/lpp-XXXXXX"
}
