#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cached-tidy.sh [clang-tidy arguments...] -- COMPILER [arguments...]: clang-tidy, but not again for what
# it had nothing to say of: the source with all that it includes, the way it is compiled, the checks and
# the program itself.
# What passed is kept as an empty file in ${XDG_CACHE_HOME:-~/.cache}/lpp-tidy, for a month.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lpp-tidy

compile=() after=
for argument in "$@"; do
  if [ -n "$after" ]; then compile+=("$argument"); fi
  if [ "$argument" = -- ]; then after=yes; fi
done

# Only the includes are put in their place: comments (NOLINT) and macros stay as they are written.
if text=$("${compile[@]}" -E -frewrite-includes -o - 2>/dev/null | sed "s|$root||g" | sha256sum); then
  key=$({
    printf '%s\n' "$text" "${@//"$root"/}"
    clang-tidy --version
    sha256sum <"$root/.clang-tidy"
  } | sha256sum)
  key=${key%% *}
  if [ -e "$cache/$key" ]; then
    touch "$cache/$key"
    exit 0
  fi
fi

said=$(clang-tidy "$@" 2>&1) || {
  printf '%s\n' "$said"
  exit 1
}
if [ -n "$said" ]; then printf '%s\n' "$said"; fi
if [ -n "${key:-}" ] && ! grep -qE '(warning|error): ' <<<"$said"; then
  mkdir -p "$cache"
  find "$cache" -type f -mtime +30 -delete
  : >"$cache/$key"
fi
