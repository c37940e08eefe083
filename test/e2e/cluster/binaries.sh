#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# binaries.sh    Print the directory that holds kube-apiserver, kube-controller-manager,
#                kube-scheduler, kubelet and kubectl; build them when they cannot be found.
#
# The order: $LPP_E2E_BIN (must be complete when it is set), $KUBEBUILDER_ASSETS, the cache
# ${XDG_CACHE_HOME:-~/.cache}/lpp-e2e/<key of the sources>, a build into that cache.
# Exit: 0, 1 $LPP_E2E_BIN is incomplete or the build failed, 3 they cannot be had here.
set -euo pipefail

PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl)
BUILD=$(cd "$(dirname "${BASH_SOURCE[0]}")/../controlplane" && pwd)/build.sh

say() { printf 'binaries: %s\n' "$*" >&2; }

missing_in() { # DIRECTORY -> names
  local program
  for program in "${PROGRAMS[@]}"; do
    if [ ! -x "$1/$program" ]; then printf ' %s' "$program"; fi
  done
}

found() { (cd "$1" && pwd); exit 0; }

if [ -n "${LPP_E2E_BIN:-}" ]; then
  missing=$(missing_in "$LPP_E2E_BIN")
  [ -z "$missing" ] || { say "LPP_E2E_BIN=$LPP_E2E_BIN lacks$missing"; exit 1; }
  found "$LPP_E2E_BIN"
fi

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  missing=$(missing_in "$KUBEBUILDER_ASSETS")
  [ -n "$missing" ] || found "$KUBEBUILDER_ASSETS"
  say "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks$missing; looking further"
fi

caches=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}
cache=$caches/lpp-e2e/$("$BUILD" --key)
# build.sh returns at once when the cache holds the build of these sources.
"$BUILD" "$cache" >&2
found "$cache"
