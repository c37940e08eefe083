#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# node_guest.sh [ARGUMENT...]: lpp_node_bench on XFS and ext4 with project quota and on btrfs with quota, each on a disk
# in memory, on Debian's own kernel in a virtual machine (test/quota/guest.sh). Arguments are Google Benchmark's.
# Without KVM it runs on an emulated processor whose clock goes on by 1 ns with each instruction: times are then what the
# work takes in instructions, whatever else the machine does, and not its own.
#   LPP_BUILD_DIR    CMake's build directory (build/release)
#   LPP_BENCH_TYPES  xfs,ext4,btrfs, or some of them, or tmpfs: what the same takes without limits, and so, beside
#                    lpp_node_bench itself, what an instruction takes of this machine's time
#   LPP_TREE_FILES   of the tree that is removed (100,000); each takes 5 KiB of the disk
# Exit: 0 measured, 1 not, 3 it cannot be done here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/quota/guest.sh
. "$here/../quota/guest.sh"

bench=$(realpath "${LPP_BUILD_DIR:-$here/../../build/release}")/test/bench/lpp_node_bench
files=${LPP_TREE_FILES:-100000}
if [ ! -x "$bench" ]; then
  echo "skipped: node_guest: there is no $bench: build the target lpp_node_bench"
  exit 3
fi
if why=$(guest_lacks); then
  echo "skipped: node_guest: $why"
  exit 3
fi
if [ -z "${LPP_GUEST_CPU:-}" ] && [ "$guest_cpu" != kvm ]; then guest_cpu=counted; fi
disk=$((400 + files * 5 / 1024))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

arguments=$*
echo "node: processor: $guest_cpu"
LIMIT=${LIMIT:-7200} run_guest "$work" "$((1536 + disk))M" "$here/node_guest_init.sh" RAMDISK=$((disk * 1024)) \
  BENCH="$bench" TYPES="${LPP_BENCH_TYPES:-xfs,ext4,btrfs}" LPP_TREE_FILES="$files" \
  ARGUMENTS="${arguments// /,}" | sed -u 's|\r||g' | tee "$work/out"
if grep -aq '^node: done' "$work/out"; then exit 0; fi
if ! grep -aq '^node: on ' "$work/out"; then
  echo "skipped: node_guest: the machine does not start"
  cat "$work/virtiofsd.log"
  exit 3
fi
exit 1
