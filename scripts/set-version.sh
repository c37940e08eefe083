#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# set-version.sh X.Y.Z [DATE]    Put the next version wherever the present one stands, as a release
# begins (docs/release.md): CMakeLists.txt, manifests, chart and its golden files, docs. What is
# Unreleased in the changelog becomes that version's, of today or DATE. Look at the difference.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
date=${2:-$(date -u +%F)}
if [ $# = 0 ] || [ $# -gt 2 ] || ! grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' <<<"$version"; then
  echo 'usage: set-version.sh X.Y.Z [YYYY-MM-DD]' >&2
  exit 2
fi
before=$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
if [ "$version" = "$before" ]; then
  echo "set-version: it is $version already" >&2
  exit 1
fi
if ! grep -qx '## Unreleased' CHANGELOG.md; then
  echo 'set-version: nothing is Unreleased in CHANGELOG.md' >&2
  exit 1
fi
old=${before//./\\.}
sed -i -E "/^project\(/s/ VERSION $old / VERSION $version /" CMakeLists.txt
sed -i -E "s/^(version: |appVersion: v)$old$/\1$version/" deploy/chart/local-path-provisioner/Chart.yaml
sed -i -E "s/(local-path-provisioner:v|newTag: v|app\.kubernetes\.io\/version: v|helm\.sh\/chart: local-path-provisioner-)$old\b/\1$version/g" \
  deploy/*.yaml deploy/*/*.yaml README.md docs/install.md docs/sizes.md test/docs/*.sh test/chart/golden/* \
  test/chart/kustomize/* test/chart/helm/kustomize_test.go
sed -i "s/^## Unreleased$/## $version ($date)/" CHANGELOG.md
left=$(grep -nF "v$before" -r deploy docs test/docs test/chart --exclude=go.sum --exclude=go.mod README.md || true)
if [ -n "$left" ]; then
  printf 'set-version: still there:\n%s\n' "$left" >&2
  exit 1
fi
echo "set-version: $before is now $version"
