# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced: Debian's own kernel, in a virtual machine whose root is the machine's, read-only. It takes root.
# LPP_GUEST_KERNEL: a folder with boot/vmlinuz-VERSION and lib/modules/VERSION; without it the package of
# Debian's kernel for clouds is downloaded to build/guest-kernel, and unpacked there only.
# LPP_GUEST_CPU: kvm; emulated, where KVM is not there or not of the processor, at a fraction of its speed; or
# counted, the same with a clock that goes on by 1 ns with each instruction.

guest_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -w /dev/kvm ] && grep -qw 'vmx\|svm' /proc/cpuinfo; then guest_cpu=kvm; else guest_cpu=emulated; fi
guest_cpu=${LPP_GUEST_CPU:-$guest_cpu}
guest_kernel=${LPP_GUEST_KERNEL:-$guest_dir/../../build/guest-kernel}

# guest_lacks    Says what is missing; 1 when nothing is.
guest_lacks() {
  local tool
  for tool in qemu-system-x86_64 busybox depmod modprobe mkfs.xfs mkfs.ext4 mkfs.btrfs setpriv dpkg-deb; do
    if command -v "$tool" >/dev/null; then continue; fi
    echo "there is no $tool; scripts/install-deps.sh guest installs it"
    return
  done
  if [ ! -x /usr/lib/qemu/virtiofsd ]; then
    echo "there is no /usr/lib/qemu/virtiofsd, which Debian 12 has in qemu-system-common"
  elif [ "$guest_cpu" = kvm ] && [ ! -w /dev/kvm ]; then
    echo "there is no /dev/kvm for this user"
  elif [ "$(id -u)" != 0 ]; then
    echo "virtiofsd takes root"
  elif ! guest_version >/dev/null && ! fetch_guest_kernel; then
    echo "there is no kernel in $guest_kernel, and apt-get downloads none: see LPP_GUEST_KERNEL"
  else
    return 1
  fi
}

guest_version() {
  local found
  found=$(find "$guest_kernel/boot" -name 'vmlinuz-*' 2>/dev/null | sort -V | tail -n 1)
  [ -n "$found" ] || return 1
  echo "${found##*/vmlinuz-}"
}

fetch_guest_kernel() {
  [ -z "${LPP_GUEST_KERNEL:-}" ] || return 1
  local package
  package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
    sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
  [ -n "$package" ] || return 1
  mkdir -p "$guest_kernel"
  (cd "$guest_kernel" && apt-get download "$package" && dpkg-deb -x "$package"_*.deb . &&
    rm "$package"_*.deb) >"$guest_kernel/log" 2>&1
}

# What finds the root, and starts INIT there. Modules go in the order in which they need each other.
guest_initramfs() { # WORK RAMDISK
  local version root=$1/initramfs name
  version=$(guest_version)
  depmod -b "$guest_kernel" "$version"
  mkdir -p "$root/bin" "$root/modules" "$root/dev" "$root/proc" "$root/root"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for name in virtio_pci virtio_blk virtiofs xfs btrfs ext4 quota_v2 brd; do
    modprobe -d "$guest_kernel" -S "$version" --show-depends "$name"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$root/order"
  while read -r name; do cp "$name" "$root/modules/"; done <"$root/order"
  sed -i "s|.*/|/modules/|; /brd.ko/s|\$| rd_nr=1 rd_size=$2|" "$root/order"
  cat >"$root/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t proc proc /proc
while read -r module; do /bin/busybox insmod $module; done </order
/bin/busybox mount -t virtiofs -o ro root /root || echo "guest: its root is not found"
/bin/busybox mount --move /dev /root/dev
init=$(/bin/busybox sed 's/.* INIT=\([^ ]*\).*/\1/' /proc/cmdline)
/bin/busybox umount /proc
exec /bin/busybox switch_root /root "$init"
END
  chmod +x "$root/init"
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$1/initramfs.cpio"
}

# run_guest WORK MEMORY INIT ARGUMENT...    As run_kernel does: an argument ubdNs=FILE is a disk, /dev/vda, /dev/vdb
# and so on there; RAMDISK=KIB makes /dev/ram0; the others are in its environment.
run_guest() {
  local work=$1 memory=$2 init=$3 argument arguments='' ramdisk=4 options=()
  shift 3
  for argument in "$@"; do
    case $argument in
      ubd*) options+=(-drive "file=${argument#*=},if=virtio,format=raw,cache=unsafe") ;;
      RAMDISK=*) ramdisk=${argument#*=} ;;
      *) arguments+=" $argument" ;;
    esac
  done
  case $guest_cpu in
    # Another hypervisor below may not take what the processor says of its faults.
    kvm) options+=(-accel kvm -cpu "host,-arch-capabilities" -smp 2) ;;
    emulated)
      options+=(-accel "tcg,thread=multi" -cpu max -smp 2)
      # Where others run, too, timers come too late for it to believe in them.
      arguments+=" no_timer_check"
      ;;
    counted)
      options+=(-accel tcg -icount shift=0 -cpu max -smp 1)
      # rep_good, erms, fsrm: an instruction that repeats itself counts each time, and this kernel clears
      # all memory that it gives out by such ones.
      arguments+=" tsc=reliable clearcpuid=112,297,580"
      ;;
    *) echo "guest: LPP_GUEST_CPU is not kvm, emulated or counted: $guest_cpu" && return 1 ;;
  esac
  guest_initramfs "$work" "$ramdisk"
  /usr/lib/qemu/virtiofsd --socket-path="$work/root.sock" -o source=/ -o cache=always \
    -o sandbox=chroot >"$work/virtiofsd.log" 2>&1 &
  local server=$!
  timeout -k 5 "${LIMIT:-1700}" qemu-system-x86_64 -name "${kernel_name:-lpp-$$}" -nodefaults -no-user-config \
    -display none -no-reboot -machine q35,memory-backend=mem -m "$memory" \
    -object memory-backend-memfd,id=mem,size="$memory",share=on \
    -chardev socket,id=root,path="$work/root.sock" -device vhost-user-fs-pci,chardev=root,tag=root \
    "${options[@]}" -serial stdio \
    -kernel "$guest_kernel/boot/vmlinuz-$(guest_version)" -initrd "$work/initramfs.cpio" \
    -append "console=ttyS0 quiet loglevel=1 panic=-1 INIT=$init$arguments" </dev/null 2>&1 || true
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
}
