#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install-deps.sh [--check] GROUP...
#
# Installs the Debian packages of the groups that are missing; says nothing and does nothing when
# all are there. --check only says what is missing.
# Groups: build (the daemon), test (to compile the tests), lint, demo, bench, image, sanitizers (and what
# fuzzes), quota, guest (a virtual machine). (The end-to-end tests bring their own list, see
# test/e2e/cluster/install-deps.sh.)
# Exit: 0 nothing is missing, 1 the installation failed, 2 usage, 3 it cannot be done here.
set -euo pipefail

BUILD=(g++ cmake ninja-build ccache pkgconf libcpp-httplib-dev libcxxopts-dev libssl-dev libfmt-dev
  libspdlog-dev libyaml-cpp-dev libprotozero-dev nlohmann-json3-dev)
TEST=(doctest-dev)
LINT=(clang clang-format clang-tidy shellcheck)
DEMO=(bubblewrap proot busybox-static)
BENCH=(libbenchmark-dev python3 jq curl)
IMAGE=(buildah debootstrap)
SANITIZERS=(clang libclang-rt-14-dev llvm)
QUOTA=(user-mode-linux xfsprogs e2fsprogs btrfs-progs kmod procps util-linux)
GUEST=(qemu-system-x86 xfsprogs e2fsprogs btrfs-progs kmod busybox-static util-linux)

say() { printf 'install-deps: %s\n' "$*" >&2; }
usage() {
  say "usage: install-deps.sh [--check] build|test|lint|demo|bench|image|sanitizers|quota|guest..."
  exit 2
}

check=
packages=()
for argument in "$@"; do
  case $argument in
    --check) check=1 ;;
    build) packages+=("${BUILD[@]}") ;;
    test) packages+=("${TEST[@]}") ;;
    lint) packages+=("${LINT[@]}") ;;
    demo) packages+=("${DEMO[@]}") ;;
    bench) packages+=("${BENCH[@]}") ;;
    image) packages+=("${IMAGE[@]}") ;;
    sanitizers) packages+=("${SANITIZERS[@]}") ;;
    quota) packages+=("${QUOTA[@]}") ;;
    guest) packages+=("${GUEST[@]}") ;;
    *) usage ;;
  esac
done
if [ ${#packages[@]} = 0 ]; then usage; fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is not a Debian system: nothing is checked or installed. What is needed, by the names"
  say "of Debian 12: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  # One line per architecture that knows the package.
  grep -qx installed <<<"$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null)" ||
    missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then exit 0; fi

install="apt-get install --no-install-recommends ${missing[*]}"
if [ -n "$check" ]; then
  say "missing packages: ${missing[*]}"
  exit 3
fi
if [ "$(id -u)" = 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  # Where bubblewrap can make a sandbox, proot does not have to stand in for it.
  if [ "${missing[*]}" = proot ] &&
    bwrap --unshare-user --unshare-pid --ro-bind / / true 2>/dev/null; then
    exit 0
  fi
  say "missing packages, and neither root nor sudo to install them. As root: $install"
  exit 3
fi

say "installing ${missing[*]}"
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
"${as_root[@]}" "${apt[@]}" update || say "apt-get update failed; trying with the lists at hand"
"${as_root[@]}" "${apt[@]}" -y --no-install-recommends install "${missing[@]}" >/dev/null || {
  say "apt-get failed. By hand, as root: $install"
  exit 1
}
