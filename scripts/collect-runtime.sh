#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# collect-runtime.sh PROGRAM ROOT: makes ROOT a file system that can run the program and holds
# nothing more: the program in /usr/bin by its two names, its shared libraries with their copyright files, a user.
# Of a program that is shipped, which is one without symbols: refuses one that has grown by more than a tenth since
# docs/performance.md told its size, and to make more than 16 MiB.
set -euo pipefail
LIMIT_MIB=16
PROGRAM_LIMIT_KIB=2950

if [ $# != 2 ] || [ ! -x "$1" ]; then
  echo 'usage: collect-runtime.sh PROGRAM ROOT' >&2
  exit 2
fi
program=$1
root=$2
if [ -e "$root" ]; then
  echo "collect-runtime: $root exists already" >&2
  exit 1
fi

install -D -m 755 "$program" "$root/usr/bin/$(basename "$program")"
# Under this name it does the work of helper pods, whose commands have no arguments of their own.
ln -s "$(basename "$program")" "$root/usr/bin/local-path-node"

# "libx.so.1 => /lib/.../libx.so.1 (0x...)" and "/lib64/ld-linux-x86-64.so.2 (0x...)"
libraries=$(ldd "$program")
if grep 'not found' <<<"$libraries" >&2; then exit 1; fi
grep -oE '(/[^ ]+) \(0x' <<<"$libraries" | cut -d ' ' -f 1 | while read -r library; do
  install -D -m 755 "$library" "$root$library" # a link becomes the file it points to
  # The package database may know it by either side of the link /lib -> /usr/lib.
  package=$(dpkg-query -S "$library" "/usr$library" 2>/dev/null | cut -d : -f 1 | head -n 1 || true)
  copyright=/usr/share/doc/$package/copyright
  if [ -f "$copyright" ]; then install -D -m 644 "$copyright" "$root$copyright"; fi
done

install -d -m 755 "$root/etc" "$root/proc" "$root/dev" "$root/sys"
install -d -m 1777 "$root/tmp"
echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >"$root/etc/passwd"
echo 'nonroot:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

size=$(du --apparent-size --bytes --summarize "$root" | cut -f 1)
symbols=$(readelf --wide --sections "$program" | grep -cF ' .symtab ' || true)
if [ "$symbols" = 0 ]; then
  mib() { awk -v n="$1" 'BEGIN { printf "%.2f", n / 1048576 }'; }
  program_size=$(stat -c %s "$program")
  echo "collect-runtime: $(mib "$size") MiB, $LIMIT_MIB at most; the program $(mib "$program_size") MiB, $(mib $((PROGRAM_LIMIT_KIB << 10))) at most"
  if [ "$program_size" -gt $((PROGRAM_LIMIT_KIB << 10)) ]; then
    echo 'collect-runtime: the program is too large: see what has grown, or tell its size anew in docs/performance.md and here' >&2
    exit 1
  fi
  if [ "$size" -gt $((LIMIT_MIB << 20)) ]; then
    echo 'collect-runtime: that is too much' >&2
    exit 1
  fi
fi
