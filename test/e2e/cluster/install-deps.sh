#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install-deps.sh [--check] [controlplane] [node] [docs]
#
# Install the Debian packages that the control plane and the node need and that are missing (these two
# groups when none is named), or those that ../../docs/walk.sh needs besides; --check only says what is missing. Services that a package brings
# along are kept from starting: the scripts here run their own copies.
# Exit: 0 nothing is missing, 1 the installation failed, 2 usage, 3 it cannot be installed here.
set -euo pipefail

CONTROLPLANE_PACKAGES=(etcd-server openssl curl jq patch)
NODE_PACKAGES=(containerd runc containernetworking-plugins busybox-static iproute2 procps
  xfsprogs btrfs-progs)
DOCS_PACKAGES=(buildah socat jq)
POLICY=/usr/sbin/policy-rc.d # asked by maintainer scripts before they start a service
policy_made=

say() { printf 'install-deps: %s\n' "$*" >&2; }
cannot() { say "cannot: $*"; exit 3; }

# The thing itself is looked for, not the package: it may come from elsewhere.
present() { # PACKAGE
  case $1 in
    etcd-server)
      command -v "${LPP_E2E_ETCD:-etcd}" || [ -x "${KUBEBUILDER_ASSETS:-/nowhere}/etcd" ] ;;
    containernetworking-plugins) [ -x "${LPP_E2E_CNI_BIN:-/usr/lib/cni}/ptp" ] ;;
    busybox-static) static_busybox ;;
    iproute2) command -v ip ;;
    procps) command -v sysctl ;;
    xfsprogs) command -v mkfs.xfs ;;
    btrfs-progs) command -v mkfs.btrfs ;;
    *) command -v "$1" ;;
  esac >/dev/null 2>&1
}

static_busybox() {
  local busybox
  busybox=$(command -v "${LPP_E2E_BUSYBOX:-busybox}") && ! ldd "$busybox" >/dev/null 2>&1
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

remove_policy() { if [ -n "$policy_made" ]; then as_root rm -f "$POLICY"; policy_made=; fi; }

install_packages() { # PACKAGE...
  command -v apt-get >/dev/null || cannot "there is no apt-get here; install by other means: $*"
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || cannot "neither root nor sudo; missing: $*"

  # An existing policy is the administrator's: it stays, and it decides.
  if [ ! -e "$POLICY" ]; then
    policy_made=1
    trap remove_policy EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY" >/dev/null
    as_root chmod 755 "$POLICY"
  fi
  as_root apt-get -qq update || say "apt-get update failed; trying with the lists at hand"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y --no-install-recommends install "$@" >/dev/null ||
    { say "apt-get failed"; exit 1; }
  remove_policy

  # Nor may they start at the next boot. (Without a running systemd this only removes links.)
  local package now=
  command -v systemctl >/dev/null || return 0
  if [ -d /run/systemd/system ]; then now=--now; fi
  for package in "$@"; do
    case $package in
      etcd-server) as_root systemctl --quiet $now disable etcd.service || true ;;
      containerd) as_root systemctl --quiet $now disable containerd.service || true ;;
    esac
  done
}

check=
packages=()
for argument in "$@"; do
  case $argument in
    --check) check=1 ;;
    controlplane) packages+=("${CONTROLPLANE_PACKAGES[@]}") ;;
    node) packages+=("${NODE_PACKAGES[@]}") ;;
    docs) packages+=("${DOCS_PACKAGES[@]}") ;;
    *) say "usage: install-deps.sh [--check] [controlplane] [node] [docs]"; exit 2 ;;
  esac
done
if [ ${#packages[@]} = 0 ]; then packages=("${CONTROLPLANE_PACKAGES[@]}" "${NODE_PACKAGES[@]}"); fi

PATH=$PATH:/usr/sbin:/sbin
missing=()
for package in "${packages[@]}"; do present "$package" || missing+=("$package"); done
if [ ${#missing[@]} = 0 ]; then exit 0; fi
if [ -n "$check" ]; then cannot "missing packages: ${missing[*]} (run install-deps.sh)"; fi

say "installing ${missing[*]}"
install_packages "${missing[@]}"
for package in "${missing[@]}"; do
  present "$package" || { say "$package was installed, but is not usable"; exit 1; }
done
