#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh DEMO PROGRAM: `make quota-demo`. Shows sizes that hold: the embedded cluster with its nodes'
# disks on an XFS with project quota, in a user-mode Linux kernel, as any user, without a disk and
# whatever kernel the machine has.
# Exit: 0 shown, 1 something went wrong, 3 it cannot be done here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/temporary.sh
. "$here/../../scripts/temporary.sh"
# shellcheck source=test/quota/kernel.sh
. "$here/kernel.sh"

if [ $# != 2 ]; then
  echo "usage: demo.sh DEMO PROGRAM" >&2
  exit 2
fi
demo=$(realpath "$1")
program=$(realpath "$2")
PATH=$PATH:/usr/sbin:/sbin

for tool in c++ linux.uml mkfs.xfs bwrap busybox; do
  if command -v "$tool" >/dev/null; then continue; fi
  echo "skipped: quota-demo: there is no $tool; scripts/install-deps.sh demo quota installs it"
  exit 3
done

work=$(temporary_folder 1000) # from where that kernel maps its memory, and is given a library
image=$(TMPDIR=/tmp mktemp -d) # below /dev that kernel sees its own files
trap 'rm -rf "$work" "$image"' EXIT
truncate -s 600M "$work/disk" # what is on it the page makes
"$here/../../scripts/collect-runtime.sh" "$program" "$image/root"

# What is written is shown at once; the verdict is the last line.
LIMIT=${LIMIT:-300} run_kernel "$work" 1024M "$here/demo-init.sh" ubd0s="$work/disk" \
  DEMO="$demo" PROGRAM="$program" IMAGE="$image/root" DOCS="$(realpath "$here/../../docs/sizes.md")" |
  tr -d '\r' | tee "$work/out" |
  grep -av --line-buffered '^Core dump\|^Checking\|^SELinux\|^mmapper\|^Warning: tempdir\|^$\|^sysrq\|^reboot\|^operation not supported\|^quota-demo: done' || true

if grep -aq '^quota-demo: done' "$work/out"; then exit 0; fi
if ! grep -aq '^quota-demo: ' "$work/out"; then
  echo "skipped: quota-demo: the user-mode Linux kernel does not start on this machine"
  exit 3
fi
echo "quota-demo: FAILED" >&2
exit 1
