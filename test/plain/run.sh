#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [container|chroot|user|elsewhere]...: the demo and the tests that run containers, in places
# where bubblewrap cannot make a sandbox. Without a name: all. From the dev build, as root.
#
#   container  with the capabilities and system calls that Docker and Podman leave by default
#   chroot     in a directory with the machine's files, but without /etc/hosts, that is no mount point
#   user       there, as an ordinary user, without sudo and with it
#   elsewhere  started from another directory
# Exit: 0 all is well, 1 something failed or was skipped, 2 usage, 3 not possible here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=$PWD
build=build/dev
tests=$here/$build/test
daemon=$here/$build/src/local-path-provisioner

say() { printf 'plain: %s\n' "$*"; }
cannot() { printf 'plain: cannot be run: %s\n' "$*" >&2; exit 3; }
failed() { say "FAILED: $*"; exit 1; }

log=$(mktemp)
root=
clean_up() {
  rm -f "$log"
  # Nothing is mounted below it: the mount namespace has ended with the programs in it.
  if [ -n "$root" ]; then rm -rf --one-file-system "$root"; fi
}
trap clean_up EXIT

# Each place has a function of its own that runs a command there and sets these.
place=
show() { # COMMAND...   Runs it in the place, shows what it says and keeps it in $log.
  say "$*"
  "$place" "$@" 2>&1 | tee "$log" | sed '/^skipped: under bubblewrap, /d'
}
by_proot() { # Of the last command: it has noticed.
  grep -q 'containers run under proot' "$log" || failed 'that was not proot'
}

passed=0
check() { # PROGRAM [FILTER...]   A doctest program. It skips nothing but tests of bubblewrap itself.
  show "$tests/$1" "${@:2}"
  if grep '^skipped: ' "$log" | grep -v ': under bubblewrap, '; then failed 'skipped without need'; fi
  local count
  count=$(sed -nE 's/.*test cases: .*\| +([0-9]+) passed.*/\1/p' "$log")
  [ "${count:-0}" != 0 ] || failed 'no such test'
  passed=$((passed + count))
}
stories() { # BEGINNING...
  local names
  names=$(printf '%s*,' "$@")
  check integration/story_test --test-case="${names%,}"
}

here_confined() { "$tests/plain/lpp-confine" "$@"; }
in_container() {
  place=here_confined
  show make --no-print-directory demo
  by_proot
  check devcluster/devcluster_node_test
  stories 'a claim with a pod becomes a directory' \
    'a setup script that fails' 'a teardown script that fails' \
    'folders of a path pattern' 'a link that was left on the way' \
    'a daemon asked to stop while helper pods run' 'what was begun before a crash' \
    'a leader that is stopped hands over' 'both replicas are killed'
  show "$tests/chaos/lpp-chaos" --daemon "$daemon" --seconds 10 --seed 1
  by_proot
}

make_root() {
  if [ -n "$root" ]; then return; fi
  root=$(mktemp -d "$here/build/plain-root.XXXXXX")
  chmod 755 "$root"
  mkdir -p "$root"/{proc,usr,dev,tmp,root,home,var/lib,var/cache} "$root$here/$build"
  chmod 1777 "$root/tmp"
  local link name
  for link in /bin /sbin /lib*; do
    if [ -L "$link" ]; then cp -a "$link" "$root$link"; fi
  done
  for name in null zero full random urandom tty; do cp -a "/dev/$name" "$root/dev/$name"; done
  cp -a /etc "$root/etc"
  rm -f "$root/etc/hosts"
  cp -a /var/lib/dpkg "$root/var/lib/dpkg"
  find . -mindepth 1 -maxdepth 1 ! -name build ! -name .git -exec cp -a -t "$root$here" {} +
  # The large files are only read: links, where that is possible.
  built -size +1023k -exec cp -al --parents -t "$root$here/$build" {} + 2>/dev/null ||
    built -size +1023k -exec cp -a --parents -t "$root$here/$build" {} +
  built -size -1024k -exec cp -a --parents -t "$root$here/$build" {} +
}
built() { # FIND'S WORDS    Of the build, but for what tests write that run meanwhile.
  (cd "$build" && find . \( -name Testing -o -name 'rights-*' \) -prune -o ! -type d "$@")
}
user=0
in_root() { # COMMAND...   With /proc and /usr, which exist nowhere else; sudo does not.
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount sh -c '
    set -eu
    mount -t proc proc "$1/proc"
    mount --bind /usr "$1/usr"
    if [ -e "$1/usr/bin/sudo" ]; then mount --bind /dev/null "$1/usr/bin/sudo"; fi
    root=$1 here=$2 user=$3
    shift 3
    exec chroot --userspec="$user:$user" "$root" env -i HOME=/tmp PATH="/home/bin:$PATH" \
      sh -c "cd \"\$0\" && exec \"\$@\"" "$here" "$@"' sh "$root" "$here" "$user" "$@"
}
in_chroot() { # USER
  make_root
  place=in_root user=$1
  find "$root$here" \( -type d -o -links 1 \) -exec chown -h "$user:$user" {} +
  show make --no-print-directory demo
  by_proot
  stories 'a claim with a pod becomes a directory'
}

as_user() {
  in_chroot 65534
  check devcluster/devcluster_node_test
  # What is missing is named, with the command that would install it; sudo is asked to.
  sed -i '/^Package: proot$/,/^$/d' "$root/var/lib/dpkg/status"
  if show make --no-print-directory demo; then failed 'it did not miss proot'; fi
  grep -q 'As root: apt-get install --no-install-recommends proot$' "$log" || failed 'not named'
  mkdir "$root/home/bin"
  # shellcheck disable=SC2016 # the file's own
  printf '#!/bin/sh\necho "sudo $*" >&2\nexit 1\n' >"$root/home/bin/sudo"
  chmod 755 "$root/home/bin/sudo"
  if show make --no-print-directory demo; then failed 'sudo had refused'; fi
  grep -q '^sudo .*apt-get .*install proot$' "$log" || failed 'sudo was not asked'
  rm -rf --one-file-system "$root"
  root=
}

in_slash() { env -C / "$@"; }
from_elsewhere() {
  place=in_slash
  show "$tests/devcluster/lpp-demo" --daemon "$daemon"
  show "$tests/chaos/lpp-chaos" --daemon "$daemon" --seconds 2 --seed 1
}

if [ $# = 0 ]; then set -- container chroot user elsewhere; fi
for way in "$@"; do
  case $way in
    container | chroot | user | elsewhere) ;;
    *) sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
if [ "$(id -u)" != 0 ]; then cannot 'only root can make the places'; fi
[ -x "$tests/plain/lpp-confine" ] || cannot 'nothing is built: make plain does it'
# The tests of other machines, whatever this one is for.
unset CI
for way in "$@"; do
  printf '\n--- %s ---\n' "$way"
  begin=$SECONDS
  case $way in
    container) in_container ;;
    chroot)
      in_chroot 0
      check integration/integration_test
      ;;
    user) as_user ;;
    elsewhere) from_elsewhere ;;
  esac
  say "$way took $((SECONDS - begin)) s"
done
printf 'plain: %d passed, 0 failed\n' "$passed"
