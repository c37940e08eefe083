#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--update]    Render deploy/chart with Helm's own packages and check what comes out.
#
# values/*.yaml are rendered and compared with golden/ (golden_test.go says how); the objects must be those of
# deploy/local-path-storage.yaml; every value of values.schema.json must have an effect
# (effects.yaml), those of the former chart must be among them (former-values.yaml), and what cannot
# work must be refused (refused.yaml). Each `--set` of the docs must render and do something, and the
# Role of docs/sizes.md grant what the command beside it asks for. --update copies the scripts of the manifest into the chart and
# writes the golden files anew.
# Exit: 0 all is well, 1 a check failed, 2 usage, 3 this machine cannot run it (no Go, or its
# modules cannot be fetched), with the reason on stderr.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/helm"

say() { printf 'chart: %s\n' "$*" >&2; }
cannot() { say "cannot be tested: $*"; exit 3; }

check_go() {
  local want have
  want=$(awk '$1 == "go" {print $2; exit}' go.mod)
  command -v go >/dev/null || cannot "there is no 'go' on PATH; Go $want or newer is needed"
  # Asked outside of the module: inside, a Go that is too old refuses to answer at all.
  have=$(cd / && go env GOVERSION 2>/dev/null) || have=
  have=${have#go}
  have=${have%%[- ]*}
  # Since 1.21 Go fetches the toolchain that a module wants by itself, unless that is forbidden.
  if [ "$(printf '%s\n' 1.21 "${have:-0}" | sort -V | head -n 1)" != 1.21 ]; then
    cannot "Go ${have:-of unknown version} is too old; Go $want or newer is needed"
  fi
  if [ "$(printf '%s\n' "$want" "$have" | sort -V | head -n 1)" != "$want" ] &&
    [ "$(cd / && go env GOTOOLCHAIN)" = local ]; then
    cannot "Go $have is too old; Go $want or newer is needed"
  fi
}

fetch_modules() {
  local log
  log=$(go list -mod=readonly -deps -test . 2>&1 >/dev/null) && return 0
  printf '%s\n' "$log" | tail -n 20 >&2
  case $log in
    *'checksum mismatch'* | *'SECURITY ERROR'* | *'updates to go.'* | *'missing go.sum entry'*)
      say "the modules are not those that go.sum names"
      exit 1 ;;
  esac
  cannot "the Go modules cannot be fetched (see above); look at 'go env GOPROXY' and the network"
}

flags=()
case ${1:-} in
  '') ;;
  --update) flags=(-update) ;;
  *) say "usage: run.sh [--update]"; exit 2 ;;
esac

check_go
export CGO_ENABLED=0
fetch_modules
# Go builds what changed only; -count=1 because it does not know which files the tests read.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
result=0
go test -mod=readonly -count=1 -v . "${flags[@]}" >"$log" 2>&1 || result=1
if [ $result != 0 ]; then cat "$log" >&2; fi
# Tests and their cases; one that never came to its end, as when the build failed, counts too.
awk -v result=$result '
  $1 == "---" && $2 == "PASS:" { passed++ }
  $1 == "---" && $2 == "FAIL:" { failed++ }
  $1 == "---" && $2 == "SKIP:" { skipped++ }
  END { if (result != 0 && failed == 0) failed = 1
        printf "chart: %d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
exit $result
