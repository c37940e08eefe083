#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: tests the alerts of deploy/monitoring, and the queries of the docs, with promtool. The queries are
# taken from the blocks marked promql: the first one of a page stands for QUERY_1 of its test, and so on.
# Exit: 0 all is well, 1 a test failed, 3 this machine cannot run it: promtool cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

totals() { printf 'monitoring: %s passed, %s failed, %s skipped\n' "$1" "$2" "$3"; }
tests=$(cat ./*_test.yaml | grep -c '^  - name: ')
if ! promtool=$(../../scripts/promtool.sh); then
  echo 'skipped: monitoring: alerts and queries are not tested, there is no promtool (Debian package prometheus)'
  totals 0 0 "$tests"
  exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What stands below "spec:" is a rules file.
awk 'on { sub(/^  /, ""); print } /^spec:/ { on = 1 }' ../../deploy/monitoring/prometheusrule.yaml \
  >"$work/rules.yaml"
cp rules_test.yaml "$work/"
queries() { # PAGE
  awk '/^```/ { on = $0 == "```promql"; next } on && NF' "$1"
}
cp sizes_test.yaml "$work/"
number=0
while read -r query; do
  number=$((number + 1))
  grep -q "QUERY_$number\$" "$work/sizes_test.yaml" || { echo "monitoring: nothing tests $query" >&2; exit 1; }
  sed -i "s@QUERY_$number\$@$query@" "$work/sizes_test.yaml"
done < <(queries ../../docs/sizes.md)

result=0
"$promtool" check rules --lint-fatal "$work/rules.yaml" || result=1
failed=0
for file in "$work"/*_test.yaml; do
  "$promtool" test rules "$file" || failed=$((failed + 1))
done
if grep -q 'QUERY_' "$work/sizes_test.yaml"; then failed=1; fi
if [ "$failed" != 0 ]; then result=1; fi
totals $((tests - failed)) "$((failed > result ? failed : result))" 0
exit "$result"
