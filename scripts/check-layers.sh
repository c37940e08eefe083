#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check-layers.sh: a folder of src/ includes only what it links, itself or by what it links: the DEPS
# of its lpp_library() are the rule. Headers are read, too: a linker would not notice those that have
# no source file. Each finding is one line.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

folders=$(cd src && printf '%s|' */ | tr -d '/')
folders=${folders%|}
declare -A below=()  # " base k8s ": what a folder may include
found=0

# deps FOLDER: the folders that it links.
deps() { tr '\n' ' ' <"src/$1/CMakeLists.txt" | grep -oE 'lpp_library\([^)]*\)' | grep -oE 'lpp_[a-z0-9]+' |
  sed 's/^lpp_//' | grep -vxE "library|$1"; }

# reach FOLDER: fills below[FOLDER], and says so when a folder reaches itself.
reach() {
  local folder=$1 path=${2:-} dep
  case " $path " in *" $folder "*)
    printf 'src/%s: links itself by%s\n' "$folder" "$path" >&2
    found=1
    return ;;
  esac
  if [ -n "${below[$folder]:-}" ]; then return; fi
  local all=" "
  for dep in $(deps "$folder"); do
    reach "$dep" "$path $folder"
    all+="$dep ${below[$dep]:- }"
  done
  below[$folder]=$all
}

for list in src/*/CMakeLists.txt; do
  folder=$(basename "$(dirname "$list")")
  reach "$folder"
  while IFS=: read -r file line include; do
    used=${include#*[\"<]}
    while [[ $used == ../* ]]; do used=${used#../}; done
    used=${used%%/*}
    case " $folder${below[$folder]} " in
      *" $used "*) ;;
      *)
        printf '%s:%s: src/%s may not use src/%s, which it does not link\n' "$file" "$line" "$folder" "$used" >&2
        found=1 ;;
    esac
  done < <(grep -rnE --include='*.h' --include='*.cpp' \
    "^ *# *include +[\"<](\.\./)*($folders)/" "src/$folder")
done
exit $found
