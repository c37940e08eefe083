#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# chart.sh: packs the Helm chart into build/local-path-provisioner-<version>.tgz, the same bytes for the
# same commit. `helm package` would make an archive with the same files. SOURCE=https://..., where this
# repository is hosted, becomes home and sources of the chart.
set -euo pipefail
cd "$(dirname "$0")/.."

chart=deploy/chart/local-path-provisioner
version=$(sed -nE 's/^version: (.*)/\1/p' "$chart/Chart.yaml")
program=$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
if [ "$(sed -nE 's/^appVersion: (.*)/\1/p' "$chart/Chart.yaml")" != "v$program" ]; then
  echo "chart: appVersion in $chart/Chart.yaml is not v$program" >&2
  exit 1
fi
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
archive=build/local-path-provisioner-$version.tgz
mkdir -p build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$chart" "$work/"
if [ -n "${SOURCE:-}" ]; then
  printf 'home: %s\nsources: [%s]\n' "$SOURCE" "$SOURCE" >>"$work/local-path-provisioner/Chart.yaml"
fi
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$epoch" \
  --exclude='*.swp' --exclude='*.tmp' --exclude='*~' -C "$work" -cf - local-path-provisioner |
  gzip -9n >"$archive"
echo "packed: $archive"
