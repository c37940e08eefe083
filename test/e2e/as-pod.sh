#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# as-pod.sh FOLDER PROGRAM [ARGUMENT...]    Run a program where it sees what a pod's container sees.
#
# FOLDER/config is at /etc/config and FOLDER/token (token, ca.crt, namespace) at the place of the
# ServiceAccount's token; of this machine there are its libraries and nothing else. The network is
# the machine's. Needs root. The environment is passed on.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
  exec unshare --mount --propagation private "$0" --inside "$@"
fi
shift
folder=$1 program=$2
shift 2

root=$folder/root
token=$root/var/run/secrets/kubernetes.io/serviceaccount
mkdir -p "$root"
mount -t tmpfs -o mode=755 none "$root"
mkdir -p "$root"/{usr,etc/config,proc,tmp} "$token"
for link in bin lib lib64; do
  if [ -e "/$link" ]; then ln -s "usr/$link" "$root/$link"; fi
done
touch "$root/program"
mount --rbind /proc "$root/proc"
mount --rbind -o ro /usr "$root/usr"
mount --bind -o ro "$program" "$root/program"
mount --bind -o ro "$folder/config" "$root/etc/config"
mount --bind -o ro "$folder/token" "$token"
exec chroot "$root" /program "$@"
