#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-rules.sh: the rules of CONTRIBUTING.md that a search can judge. Each finding is one line.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh

MAX_LINES=500
MAX_BYTES=300000
found=0
finding() {
  printf '%s\n' "$*" >&2
  found=1
}

# only_in PATTERN "ALLOWED FILES" WHY FILE...   The pattern may stand in the allowed files only.
only_in() {
  local pattern=$1 allowed=" $2 " why=$3 hit
  shift 3
  while read -r hit; do
    if [ -z "$hit" ]; then continue; fi
    case $allowed in *" ${hit%%:*} "*) ;; *) finding "$hit: $why" ;; esac
  done < <(grep -HnE "$pattern" "$@" | cut -c 1-200)
}

mapfile -t source < <(list_files 'src/*.cpp' 'src/*.h')
mapfile -t unit < <(list_files 'test/unit/*.cpp' 'test/unit/*.h')
mapfile -t cpp < <(list_files '*.cpp' '*.h')
mapfile -t text < <(list_files '*' | grep -vE '\.(sum|png|svg)$')

only_in '#include <httplib\.h>' "src/k8s/httplib_transport.cpp src/k8s/wire_stream.h" \
  "httplib.h stays behind the transport" "${source[@]}"
only_in '#include <cxxopts\.hpp>' "src/flags/parser.cpp" "flags are read by flags/parser.h" "${source[@]}"
only_in '(system|steady)_clock::now\(|this_thread::sleep|\b(u|nano)?sleep\(' \
  "src/base/clock.cpp" "time comes from the injected Clock" "${source[@]}"
only_in 'this_thread::sleep|\b(u|nano)?sleep\(' "" "unit tests wait for conditions, not for time" \
  "${unit[@]}"
only_in 'std::(mutex|condition_variable|lock_guard|unique_lock|scoped_lock)\b' "src/base/sync.h" \
  "locks are Mutex, MutexLock and CondVar of base/sync.h" "${source[@]}"
mapfile -t cmake < <(list_files '*CMakeLists.txt' '*.cmake')
only_in 'SKIP_UNITY_BUILD_INCLUSION' "" "names that clash are mended, no file is left out of unity builds" "${cmake[@]}"
mapfile -t scripts < <(list_files '*.sh' '.ci/run')
only_in '(^|[^|])\| *grep ([^|]* )?-[a-zA-Z]*q' "" "grep -q ends before what is piped into it, which pipefail takes for a failure: give it a file or <<<" \
  "${scripts[@]}"
only_in '\b(TO''DO|FIX''ME|XX''X|HA''CK)\b' "CONTRIBUTING.md" "unfinished work belongs into an issue" "${text[@]}"

for file in "${cpp[@]}"; do
  lines=$(wc -l <"$file")
  if [ "$lines" -gt $MAX_LINES ]; then
    finding "$file: $lines lines; a file is one thing and has at most $MAX_LINES"
  fi
done
# What a header declares and its source file defines is one thing, too.
for header in "${cpp[@]}"; do
  body=${header%.h}.cpp
  if [ "$header" = "$body" ] || [ ! -e "$body" ]; then continue; fi
  lines=$(cat "$header" "$body" | wc -l)
  if [ "$lines" -gt $MAX_LINES ]; then
    finding "$header and $body: $lines lines; together they have at most $MAX_LINES"
  fi
done
while read -r file; do
  if [ "$(stat -c %s "$file")" -gt $MAX_BYTES ]; then
    finding "$file: more than $MAX_BYTES bytes; what is made or downloaded stays out of the repository"
  fi
done < <(list_files '*')
# A check that is not switched on needs no exception, and one that is has a reason.
while read -r hit; do
  checks=${hit#*NOLINT*(}
  case $hit in
    *NOLINT*\(*\):\ ?* | *NOLINTEND\(*) ;;
    *) finding "$hit: NOLINT(CHECK): REASON"; continue ;;
  esac
  for check in $(tr ',' ' ' <<<"${checks%%)*}"); do
    if ! grep -qE "^ +(${check%%-*}-\*|$check),?$" .clang-tidy || grep -qE "^ +-$check,?$" .clang-tidy; then
      finding "$hit: $check is not switched on"
    fi
  done
done < <(grep -Hn 'NOLINT' "${cpp[@]}")
for file in $(list_files '*.h'); do
  if ! grep -q '^#pragma once$' "$file"; then finding "$file: no #pragma once"; fi
done

# What users read speaks of directories and permissions, and a configuration takes effect: the words of
# Kubernetes' own documentation, which people search for.
mapfile -t read_by_users < <(list_files '*.md' 'deploy/*' 'examples/*')
# Of the program: what stands in quotes, and text of several lines between R"( and )".
messages() {
  awk '
    raw || /R"\([^)]*$/ { print FILENAME ":" FNR ":" $0; raw = !index($0, ")\""); next }
    { for (line = $0; match(line, /"([^"\\]|\\.)*"/); line = substr(line, RSTART + RLENGTH))
        print FILENAME ":" FNR ":" substr(line, RSTART, RLENGTH) }' "${source[@]}"
}
text_of_users=$(mktemp)
# test/rights, integration.rights and check_rights are names.
{ grep -Hn '' "${read_by_users[@]}"; messages; } |
  sed -E 's/(test\/|integration\.|check_)rights//g' >"$text_of_users"
while IFS=';' read -r pattern instead; do
  while read -r hit; do
    finding "$hit: say \"$instead\""
  done < <(grep -iE "$pattern" "$text_of_users" | cut -c 1-200)
done <<'WORDS'
\bfolders?\b;directory
\brights\b|\b(a|no|the|any|without) right to\b;permission
\b(config(uration)?|files?|values?|settings?|options?|changes?) ([a-z]+ ){0,3}(is|are|was|were|be) taken over\b;takes effect
\b(takes?|took) over (a |the |its )?(new )?(config(uration)?|files?|values?|settings?|options?|changes?)\b;takes effect
WORDS
rm -f "$text_of_users"

# Every test case, with its file in front and without. Names may be split over lines in the source.
declare -A is_case is_case_of
mapfile -t tests < <(list_files 'test/*_test.cpp')
while IFS=$'\t' read -r file name; do
  is_case[$name]=1
  is_case_of["$file $name"]=1
done < <(for file in "${tests[@]}"; do
  tr '\n' ' ' <"$file" | sed 's/" *"//g' | grep -oE 'TEST_CASE(_FIXTURE\([A-Za-z]+, *|\( *)"[^"]*"' |
    sed "s|^[^\"]*\"|$file\t|; s/\"\$//"
done)

# Stories that are not told by agents stand in test/README.md with the reason, and no others: those of a plain
# TEST_CASE in a file without agents, unless their name speaks of them.
declare -A is_told is_plain
while IFS=$'\t' read -r file name; do
  is_told["$file $name"]=1
done < <(sed -n '/^## Not by agents/,/^## Where/p' test/README.md |
  awk -F ' *[|] *' '/^\| `/ { gsub(/`/, "", $2); print $2 "\t" $3 }')
mapfile -t stories < <(list_files 'test/integration/*_test.cpp' 'test/e2e/node_*_test.cpp' |
  grep -E '/(story|crash|fault|load|executor|node)_[^/]*$')
for file in "${stories[@]}"; do
  if grep -q 'support/agent_story\.h' "$file"; then continue; fi
  for kind in TEST_CASE LPP_EXECUTORS_TEST_CASE; do
    while read -r name; do
      story=${file##*/}
      whole="$story all"
      if [ $kind != TEST_CASE ]; then whole="$whole with $kind"; fi
      is_plain["$whole"]=1 is_plain["$story $name"]=1
      if [[ $name = *agent* ]] || [ -n "${is_told["$whole"]:-}${is_told["$story $name"]:-}" ]; then continue; fi
      finding "$file: \"$name\" is not told by agents, and test/README.md does not say why"
    done < <(tr '\n' ' ' <"$file" | sed 's/" *"//g' | grep -oE "(^| )$kind\( *\"[^\"]*\"" | sed 's/^[^"]*"//; s/"$//')
  done
done
for told in "${!is_told[@]}"; do
  if [ -z "${is_plain["$told"]:-}" ]; then finding "test/README.md: not by agents: there is no plain case \"$told\""; fi
done

# docs/compatibility.md and docs/rules.md name a test case and its file in the last cells of each line.
while IFS=$'\t' read -r page file name; do
  if [ -z "${is_case_of["$file $name"]:-}" ]; then finding "$page: no test case \"$name\" in $file"; fi
done < <(awk -F ' *[|] *' '/^\|.*\|.*\|.*\|/ && !/^[-|]*$/ && $(NF - 1) != "Test case" {
  gsub(/`/, "", $(NF - 2)); print FILENAME "\t" $(NF - 2) "\t" $(NF - 1) }' docs/compatibility.md docs/rules.md)

# A number of a rule in a comment, the name of a test, a script or a page stands in docs/rules.md, in the first
# cell of a line or in a heading, once.
number='[A-Z][0-9]{1,2}(\.[0-9]{1,2})?'
rules=$({ grep -oE "^\| $number" docs/rules.md; grep '^#' docs/rules.md; } | grep -oE "\b$number\b")
for rule in $(sort <<<"$rules" | uniq -d); do finding "docs/rules.md: rule $rule stands there twice"; done
while IFS=: read -r file line text; do
  while read -r rule; do
    if ! grep -qxF "$rule" <<<"$rules"; then finding "$file:$line: docs/rules.md has no rule $rule"; fi
  done < <(grep -oE "\b$number\b" <<<"$text")
done < <(
  cited="\b[Rr]ules? $number((,| and| to|-) ?$number)*"
  grep -HnoE "\b[A-Z][0-9]{1,2}\.[0-9]{1,2}\b|$cited" "${cpp[@]}"
  printf '%s\n' "${text[@]}" | grep -vE '\.(cpp|h)$' | xargs grep -HnoE "$cited"
)

# docs/security.md, docs/failure-modes.md and the examples of CONTRIBUTING.md name test cases or files in the last
# cell of each line; a line without is a limit that is told, not a promise.
while IFS=: read -r file line; do
  cell=${line%|*}
  cell=${cell##*|}
  while read -r name; do
    if [ -z "$name" ] || [ -e "$name" ] || [ -n "${is_case[$name]:-}" ]; then continue; fi
    finding "$file: there is no test case or file \"$name\""
  done < <(grep -oE "\`[^\`]+\`" <<<"$cell" | tr -d '\`')
done < <(grep -H '^| .*|$' docs/security.md docs/failure-modes.md
  sed -n '/^## Worked examples/,/^## What we refuse/ s/^| .*|$/CONTRIBUTING.md:&/p' CONTRIBUTING.md)

# Each directory is on one of the two maps.
while read -r map directory; do
  if ! grep -qF "| \`${directory%/}\` |" "$map"; then finding "$map: says nothing of ${directory%/}"; fi
done < <(printf 'ARCHITECTURE.md %s\n' src/*/; printf 'CONTRIBUTING.md %s\n' test/*/)
# A debugger shows threads by these names.
while read -r name; do
  if ! grep -qF "\`$name" <(sed -n '/^## Threads/,/^## /p' ARCHITECTURE.md | grep '^|'); then
    finding "ARCHITECTURE.md: the table of threads lacks \"$name\""
  fi
done < <(grep -rhoE 'set_thread_name\("[^"]+' src | sed 's/.*"//' | sort -u)

# doctest goes on to the next subcase only where it has met it: after a return it does not.
while read -r hit; do
  finding "$hit: a return in a SUBCASE above hides this one"
done < <(awk '
  FNR == 1 || /^}/ { delete returns; inside = -1 }
  match($0, /^ *SUBCASE\(/) { inside = RLENGTH; if (inside in returns) print FILENAME ":" FNR }
  match($0, /^ *return;$/) && RLENGTH == inside + 1 { returns[inside] = 1 }' "${cpp[@]}")

# What turns the tests red, and is to be found in the source.
test/mutants/run.sh --check || found=1
scripts/check-layers.sh || found=1
scripts/check-excerpts.sh || found=1
scripts/add-spdx.sh --check || found=1
exit $found
