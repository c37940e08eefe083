#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# promtool.sh: prints where promtool is, which tests alerts and metrics: on PATH, or out of the Debian
# package prometheus in build/tools. The package is not installed: it would start a Prometheus.
# Exit: 0, 3 it cannot be had here (says why).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if command -v promtool; then exit 0; fi
tools=$PWD/build/tools
if [ -x "$tools/promtool" ]; then echo "$tools/promtool" && exit 0; fi

cannot() { printf 'promtool: cannot be had: %s\n' "$*" >&2; exit 3; }
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  cannot 'it is not on PATH, and this is not a Debian system'
fi
mkdir -p "$tools"
work=$(mktemp -d "$tools/promtool-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
fetch() { apt-get -qq -o Acquire::http::Timeout=20 download prometheus >log 2>&1; }
# A fresh machine has no lists of packages yet.
update() { if [ "$(id -u)" = 0 ]; then apt-get -qq update; else sudo -n apt-get -qq update; fi >/dev/null 2>&1; }
fetch || { update && fetch; } || cannot "the package prometheus is not fetched: $(tail -n 1 log)"
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool || cannot 'the package has no promtool'
mv usr/bin/promtool "$tools/promtool"
echo "$tools/promtool"
