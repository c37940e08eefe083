#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of the user-mode Linux kernel that demo.sh starts. Its root is the machine's own,
# read-only; DEMO is the demo, PROGRAM the daemon, IMAGE the file system of its image, DOCS the page
# whose commands prepare the disk.
called=quota-demo
# shellcheck source=test/quota/first_process.sh
. "${0%/*}/first_process.sh"
mkdir /mnt/cluster
busybox ip link set lo up || end "the loopback device does not come up"
echo "quota-demo: $(uname -sr), started as a process; the nodes' disks are on an XFS, mounted with prjquota"
# What docs/sizes.md says under "Try it", as it stands there but for the names.
sed -n '/^## Try it/,/^kubectl/s/^sudo //p' "$DOCS" |
  sed 's| *#.*||; s|/dev/sdb|/dev/ubda|; s|/opt/local-path-provisioner|/mnt/cluster/nodes|' >/mnt/commands
while read -r command; do
  echo "            \$ $command"
  sh -c "$command" >/mnt/out 2>&1 || end "that failed: $(cat /mnt/out)"
done </mnt/commands
grep -q ' /mnt/cluster/nodes xfs .*prjquota' /proc/mounts || end "the disk is not mounted as the page says"
TMPDIR=/mnt HOME=/mnt "$DEMO" --dir /mnt/cluster --daemon "$PROGRAM" --quota-image "$IMAGE" \
  >/mnt/out 2>&1 &
shown=$!
# The output goes by a file: the terminal of this kernel is not made for programs that look at it.
tail -n +1 -f --pid=$shown -s 0.1 /mnt/out
if wait $shown; then end "done"; else end "it went wrong"; fi
