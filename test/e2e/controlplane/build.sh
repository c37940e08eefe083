#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT_DIR    Build hyperk8s into OUT_DIR and link the five program names to it.
# build.sh --key      Print the key of the present sources; a cache directory can be named by it.
#
# Nothing is done when OUT_DIR already holds the build of these very sources.
# Exit: 0 built or up to date, 1 the build failed, 2 usage, 3 this machine cannot build (no Go, or
# one that is too old), with the reason on stderr.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl)

say() { printf 'controlplane: %s\n' "$*" >&2; }
cannot() { say "cannot build: $*"; exit 3; }
fail() { say "$*"; exit 1; }

# What the binary is made from: sources and linker flags.
key() { { cat go.mod go.sum main.go; linker_flags; uname -m; } | sha256sum | cut -c1-16; }

older() { # A B: is version A older than B?
  [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

check_go() {
  local want have
  want=$(awk '$1 == "go" {print $2; exit}' go.mod)
  command -v go >/dev/null || cannot "there is no 'go' on PATH; Go $want or newer is needed"
  # Asked outside of the module: inside, a Go that is too old refuses to answer at all.
  have=$(cd / && go env GOVERSION 2>/dev/null) || have=
  have=${have#go}
  have=${have%%[- ]*}
  # Since 1.21 Go fetches the toolchain that a module wants by itself, unless that is forbidden.
  if older "${have:-0}" 1.21 ||
    { older "$have" "$want" && [ "$(cd / && go env GOTOOLCHAIN)" = local ]; }; then
    cannot "Go ${have:-of unknown version} is too old; Go $want or newer is needed"
  fi
}

fetch_modules() {
  local log
  log=$(go list -mod=readonly -deps . 2>&1 >/dev/null) && return 0
  printf '%s\n' "$log" | tail -n 20 >&2
  case $log in
    *'checksum mismatch'* | *'SECURITY ERROR'* | *'updates to go.'* | *'missing go.sum entry'*)
      fail "the modules are not those that go.sum names" ;;
  esac
  cannot "the Go modules cannot be fetched (see above); look at 'go env GOPROXY' and the network"
}

# Without a version kubectl cannot parse what the servers answer.
linker_flags() {
  local version major minor pkg flags='-s -w'
  version=$(awk '$1 == "k8s.io/kubernetes" {print $2; exit}' go.mod)
  IFS=. read -r major minor _ <<<"${version#v}"
  for pkg in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $pkg.gitVersion=$version -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor"
    flags+=" -X $pkg.gitTreeState=clean -X $pkg.gitCommit=unknown"
    flags+=" -X $pkg.buildDate=1970-01-01T00:00:00Z"
  done
  printf '%s' "$flags"
}

build() { # OUT_DIR
  local out=$1 program
  if [ "$(cat "$out/.key" 2>/dev/null)" != "$(key)" ] || [ ! -x "$out/hyperk8s" ]; then
    check_go
    say "building the Kubernetes programs (4 to 6 minutes on 2 cores when nothing is cached)"
    rm -f "$out/.key"
    export CGO_ENABLED=0
    fetch_modules
    go build -mod=readonly -trimpath -buildvcs=false -ldflags "$(linker_flags)" \
      -o "$out/hyperk8s.new" . ||
      fail "the build failed, see above"
    mv -f "$out/hyperk8s.new" "$out/hyperk8s"
  fi
  for program in "${PROGRAMS[@]}"; do ln -sfn hyperk8s "$out/$program"; done
  key >"$out/.key"
}

case ${1:-} in
  --key) key ;;
  '' | -*) say "usage: build.sh OUT_DIR | --key"; exit 2 ;;
  *)
    mkdir -p "$1"
    out=$(cd "$1" && pwd)
    # One builder at a time; whoever waited finds the work done.
    exec {lock}>"$out/.lock"
    flock "$lock"
    build "$out"
    ;;
esac
