#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: tests the alerts of deploy/monitoring with promtool.
# Exit: 0 all is well, 1 a test failed, 3 this machine cannot run it: there is no promtool (Debian
# package prometheus).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! command -v promtool >/dev/null; then
  echo 'monitoring: cannot be tested: promtool is not here (Debian package prometheus)' >&2
  exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What stands below "spec:" is a rules file.
awk 'on { sub(/^  /, ""); print } /^spec:/ { on = 1 }' ../../deploy/monitoring/prometheusrule.yaml \
  >"$work/rules.yaml"
cp rules_test.yaml "$work/"
promtool check rules --lint-fatal "$work/rules.yaml" || exit 1
promtool test rules "$work/rules_test.yaml" || exit 1
