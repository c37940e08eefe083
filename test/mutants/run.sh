#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [PATTERN...]    Breaks the promises of the lists beside it one by one, each of which must turn
# its tests red. Works in a copy below build/mutants: your files are not touched.
# run.sh --list [PATTERN...]    Only names them, with what each one breaks.
# run.sh --check [PATTERN...]   Only looks whether what each is about stands in the source, without a build.
#
# A pattern is a list and a name (node/, node/mount, lease). test/README.md says how to write a break.
# The output has a line for each: killed (a test is red), SURVIVED (none is), does not build,
# text not found, or not here (this machine lacks what the test needs).
# Exit: 0 all that were run are killed, 1 not, 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/sources.sh

usage() {
  sed -n '3,6p' "${BASH_SOURCE[0]}" | sed 's/^# //' >&2
  exit 2
}

mode=run
case ${1:-} in
  --list | --check) mode=${1#--}; shift ;;
  -*) usage ;;
esac

# The lists, one array for each member, by number.
names=() lists=() promises=() files=() finds=() withs=() tests=() cases=() quotas=() needs=()
wrong=0
complain() {
  printf '%s\n' "$*" >&2
  wrong=1
}

read_list() { # FILE
  local list=$1 short=${1##*/} line number=0 n
  short=${short%.txt}
  while IFS= read -r line; do
    number=$((number + 1))
    n=$((${#names[@]} - 1))
    case $line in
      '[]' | '[ '*) complain "$list:$number: a break needs a name" ;;
      '['*']')
        line=${line#\[}
        names+=("${line%\]}") lists+=("$short")
        promises+=('') files+=('') finds+=('') withs+=('') tests+=('') cases+=('') quotas+=('') needs+=('')
        ;;
      '#'* | '') ;;
      *)
        if [ "$n" -lt 0 ]; then complain "$list:$number: before the first [name]" && continue; fi
        case $line in
          'promise: '*) promises[n]=${line#promise: } ;;
          'file: '*) files[n]=${line#file: } ;;
          'test: '*) tests[n]=${line#test: } ;;
          'case: '*) cases[n]=${line#case: } ;;
          'quota: '*) quotas[n]=${line#quota: } ;;
          'needs: root') needs[n]=root ;;
          '- '*) finds[n]+=${finds[n]:+$'\n'}${line#- } ;;
          '+ '*) withs[n]+=${withs[n]:+$'\n'}${line#+ } ;;
          *) complain "$list:$number: not understood: $line" ;;
        esac
        ;;
    esac
  done <"$list"
}
for list in test/mutants/*.txt; do read_list "$list"; done

is_wanted() { # NUMBER PATTERN...
  local one="${lists[$1]}/${names[$1]}" pattern
  shift
  if [ $# = 0 ]; then return 0; fi
  for pattern in "$@"; do
    # shellcheck disable=SC2053 # it is a pattern
    if [[ $one == *$pattern* ]]; then return 0; fi
  done
  return 1
}
wanted=()
for n in "${!names[@]}"; do
  if is_wanted "$n" "$@"; then wanted+=("$n"); fi
done
if [ ${#wanted[@]} = 0 ]; then
  printf 'run.sh: no break of that name\n' >&2
  exit 2
fi

# Prints FILE with the text exchanged, which must stand there once: else 1, or 2 when it does more often.
exchanged() { # NUMBER FILE
  FIND=${finds[$1]} WITH=${withs[$1]} LC_ALL=C awk '
    { text = text $0 "\n" }
    END {
      at = index(text, ENVIRON["FIND"])
      if (at == 0) exit 1
      rest = substr(text, at + length(ENVIRON["FIND"]))
      if (index(rest, ENVIRON["FIND"])) exit 2
      ORS = ""
      print substr(text, 1, at - 1) ENVIRON["WITH"] rest
    }' "$2"
}

check() { # NUMBER
  local n=$1 where="test/mutants/${lists[$1]}.txt: ${names[$1]}" file code=0
  if [ -z "${promises[n]}" ]; then complain "$where: say which promise it breaks"; fi
  if [ -z "${tests[n]}" ]; then complain "$where: say which test must turn red"; fi
  for file in ${tests[n]}; do
    if [ ! -e "$file" ]; then complain "$where: there is no $file"; fi
    if [ "${file%/*}" != "$(dirname "${tests[n]%% *}")" ]; then complain "$where: tests of two programs"; fi
  done
  if [ ! -e "${files[n]}" ]; then complain "$where: there is no ${files[n]:-file}" && return; fi
  if [ -z "${finds[n]}" ]; then complain "$where: say what is to be found" && return; fi
  if [ "${finds[n]}" = "${withs[n]}" ]; then complain "$where: nothing is changed"; fi
  exchanged "$n" "${files[n]}" >/dev/null || code=$?
  case $code in
    1) complain "$where: not (any more) in ${files[n]}: ${finds[n]}" ;;
    2) complain "$where: more than once in ${files[n]}: ${finds[n]}" ;;
  esac
}
twice=$(printf '%s\n' "${names[@]}" | sort | uniq -d)
if [ -n "$twice" ]; then complain "test/mutants: two breaks are called $twice"; fi

case $mode in
  list)
    for n in "${wanted[@]}"; do printf '%-45s %s\n' "${lists[n]}/${names[n]}" "${promises[n]}"; done
    exit $wrong
    ;;
  check)
    for n in "${wanted[@]}"; do check "$n"; done
    exit $wrong
    ;;
esac
if [ $wrong != 0 ]; then exit 1; fi

# The copy holds what the user's files hold now; what is the same keeps its time, and is not built anew.
work=$PWD/build/mutants
copy=$work/source
mkdir -p "$copy"
exec 9>"$work/lock"
flock -n 9 || {
  printf 'run.sh: it runs already\n' >&2
  exit 1
}
list_files '*' >"$work/files"
while IFS= read -r file; do
  if cmp -s "$file" "$copy/$file"; then continue; fi
  mkdir -p "$copy/${file%/*}" 2>/dev/null || true
  cp "$file" "$copy/$file"
done < <(sed 's|^|./|' "$work/files")
(cd "$copy" && find . -path ./build -prune -o -type f -print | sed 's|^\./||' | sort |
  comm -13 <(sort "$work/files") - | xargs -r -d '\n' rm -f --)

log=$work/log
root=$PWD
cd "$copy"
cmake --preset mutate --log-level=WARNING >"$log"

program_of() { # NUMBER
  case ${tests[$1]} in
    test/unit/*)
      local folder=${tests[$1]#test/unit/}
      printf '%s_test' "${folder%%/*}"
      ;;
    *) printf 'story_test' ;;
  esac
}
built=build/mutate/test
build() { # TARGET...
  nice -n 10 cmake --build --preset mutate --target "$@" -- --quiet -k 0 >"$log" 2>&1
}
run_tests() { # NUMBER
  local n=$1 program sources='' file
  program=$(program_of "$n")
  if [ -n "${quotas[n]}" ]; then
    LPP_QUOTA_TYPES=${quotas[n]} LPP_QUOTA_CASES=${cases[n]} \
      test/quota/run.sh "$built/unit/$program" >"$log" 2>&1
    return
  fi
  for file in ${tests[n]}; do sources+=${sources:+,}"*/$file"; done
  local folder=unit most=60
  if [ "$program" = story_test ]; then folder=integration most=300; fi
  # In a shell of its own, which says of a crash what there is to say.
  (
    timeout -k 5 $most "$built/$folder/$program" --source-file="$sources" \
      ${cases[n]:+--test-case="${cases[n]}"} --no-path-filenames=true --no-colors=true
    exit $?
  ) >"$log" 2>&1
}

targets=()
for n in "${wanted[@]}"; do targets+=("$(program_of "$n")"); done
mapfile -t targets < <(printf '%s\n' "${targets[@]}" | sort -u)
printf 'building %s; the first time takes some minutes\n' "${targets[*]}"
build "${targets[@]}" || {
  tail -n 30 "$log" >&2
  printf 'run.sh: it does not build as it is\n' >&2
  exit 1
}

# Whether the tests are green as things are, each command once: else every break would seem to be killed.
declare -A before=()
key_of() { printf '%s|%s|%s' "${tests[$1]}" "${cases[$1]}" "${quotas[$1]}"; }
look_before() { # NUMBER
  local code=0
  run_tests "$1" || code=$?
  if [ $code = 3 ] && [ -n "${quotas[$1]}" ]; then
    printf away
  elif [ $code = 0 ] && { [ -n "${quotas[$1]}" ] || grep -qE 'test cases: +[1-9]' "$log"; }; then
    printf green
  else
    tail -n 30 "$log" >&2
    printf red
  fi
}
for n in "${wanted[@]}"; do
  key=$(key_of "$n")
  if [ -z "${before[$key]:-}" ]; then before[$key]=$(look_before "$n"); fi
done

counts=()
tell() { # NUMBER RESULT SECONDS [WHY]
  counts+=("$2")
  printf '%-14s %-45s %3d s  %s\n' "$2" "${lists[$1]}/${names[$1]}" "$3" "${4:-}"
}
break_it() { # NUMBER
  local n=$1 file=${files[$1]} begin=$SECONDS code=0 why
  if [ "${needs[n]}" = root ] && [ "$(id -u)" != 0 ]; then tell "$n" 'not here' 0 'needs root' && return; fi
  case ${before[$(key_of "$n")]} in
    away) tell "$n" 'not here' 0 'needs a kernel of its own, as test/quota has' && return ;;
    red) tell "$n" 'red before' 0 'its tests fail, or there are none, without the break' && return ;;
  esac
  exchanged "$n" "$file" >"$work/broken" || { tell "$n" 'text not found' 0 "$file" && return; }
  cp "$file" "$work/whole"
  cp "$work/broken" "$file"
  # Broken files are not to fill the cache; that the former one is whole again is there.
  if ! CCACHE_READONLY=1 build "$(program_of "$n")"; then
    grep -aE 'error:' "$log" | head -n 3 >&2 || true
    tell "$n" 'does not build' $((SECONDS - begin)) "$file"
  else
    code=0
    run_tests "$n" || code=$?
    why=$(grep -aE '^TEST CASE: ' "$log" | head -n 1 | sed -E 's/^TEST CASE: +//' || true)
    if [ $code = 124 ] || [ $code = 137 ]; then why="hangs${why:+: $why}"; fi
    if [ $code = 0 ]; then
      tell "$n" SURVIVED $((SECONDS - begin)) "${promises[n]}"
    else
      tell "$n" killed $((SECONDS - begin)) "$why"
    fi
  fi
  cp "$work/whole" "$file"
}
for n in "${wanted[@]}"; do break_it "$n"; done

cd "$root"
printf '%s\n' "${counts[@]}" | sort | uniq -c | awk '
  { count = $1; $1 = ""; sub(/^ /, ""); text = text (text == "" ? "" : ", ") count " " $0 }
  END { print "mutants: " text }'
for result in "${counts[@]}"; do
  case $result in killed | 'not here') ;; *) exit 1 ;; esac
done
