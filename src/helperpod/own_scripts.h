// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What helper pods run of ours, for any POSIX shell, beside or around the scripts of the
/// ConfigMap. They get what those get (VOL_DIR, VOL_BASE_DIR, VOL_SUB_DIR and the arguments), and
/// whose the directory is: VOL_DISK, VOL_RECORD, VOL_CLAIM_UID, VOL_CLUSTER; what they tell goes to
/// VOL_MESSAGE_PATH.
namespace lpp::helperpod {

/// Before those that look at a disk. No test of a shell tells what is not there from what the disk
/// does not let anybody see; the words of ls do. Then the script fails: nothing goes, and nothing
/// is told to be absent.
inline constexpr const char* kLooks = R"sh(fail() {
  echo "$*" >&2
  exit 1
}
is_there() {
  if [ -e "$1" ] || [ -L "$1" ]; then return 0; fi
  if why=$(LC_ALL=C ls -d -- "$1" 2>&1); then return 0; fi
  case $why in *": No such file or directory" | *": Not a directory") return 1 ;; esac
  fail "whether $1 is there cannot be seen: $why"
}
)sh";

/// Before those that look at the records: how these are read, where they are, whose disk they are
/// on, and whether that is one of the disks that are named.
///
/// member NAME TEXT: the text or number of that name at the top of a JSON object, however somebody
/// has laid it out. Exit: 1 there is none, 2 it is no whole object. No name or id holds an escape:
/// each becomes a letter without meaning, and then quotes part texts from what is between them.
inline constexpr const char* kBesideRecords = R"sh(member() (
  name=$1 text=$2 depth=0 over='' key='' of='' found='' value='' plain=''
  while [ "$text" != "${text#*\\}" ]; do
    rest=${text#*\\}
    text=${text%%\\*}?${rest#?}
  done
  IFS='"'
  set -f
  set -- $text
  while [ $# -gt 0 ]; do
    between=$1
    shift
    while [ -n "$between" ]; do
      rest=${between#?}
      letter=${between%"$rest"}
      between=$rest
      case $letter in [[:space:]]) continue ;; esac
      if [ -n "$over" ]; then exit 2; fi
      case $letter in
        '{' | '[') depth=$((depth + 1)) ;;
        '}' | ']' | ,)
          if [ "$depth" = 1 ]; then
            if [ "$of" = ":$name" ] && [ -n "$plain" ]; then value=$plain; fi
            of='' plain=''
          fi
          if [ "$letter" != , ]; then depth=$((depth - 1)); fi
          if [ "$depth" = 0 ]; then over=yes; fi
          ;;
        :)
          if [ "$depth" = 1 ]; then of=:$key; fi
          if [ "$depth" = 1 ] && [ "$key" = "$name" ]; then found=yes value=''; fi
          ;;
        *) plain=$plain$letter ;;
      esac
    done
    if [ $# = 0 ]; then break; fi
    if [ "$depth" = 1 ] && [ -z "$of" ]; then key=$1; fi
    if [ "$depth" = 1 ] && [ "$of" = ":$name" ]; then value=$1; fi
    shift
  done
  if [ -z "$over" ]; then exit 2; fi
  if [ -z "$found" ]; then exit 1; fi
  printf '%s' "$value"
)
inode_of() {
  if is_there "$1"; then ls -di -- "$1" | { read -r number _ && echo "$number"; }; fi
}
records=${VOL_DIR%/*}/.local-path-provisioner
if [ -n "${VOL_BASE_DIR:-}" ]; then records=$VOL_BASE_DIR/.local-path-provisioner; fi
identity=
if is_there "$records/identity.json"; then
  identity=$(cat -- "$records/identity.json") ||
    fail "whose disk this is cannot be read of $records/identity.json"
fi
disk=$(member disk "$identity") || disk=
is_on_disk() {
  for named; do
    if [ -n "$disk" ] && [ "$named" = "$disk" ]; then return 0; fi
  done
  return 1
}
)sh";

/// Before what resizes a directory or takes it back: not on another disk than VOL_DISK, the one
/// that it was made on or those that it may have been made on; what is on it waits until that is
/// there.
inline constexpr const char* kOnItsDiskOnly = R"sh(if ! is_on_disk $VOL_DISK; then
  fail "the directory is on disk $VOL_DISK, and that is not the one at its base path now:" \
    "mount it there"
fi
)sh";
inline constexpr const char* kTeardown = R"sh(exec /bin/sh /script/teardown "$@"
)sh";
inline constexpr const char* kResize = R"sh(exec /bin/sh /script/resize "$@"
)sh";

/// Takes a directory back only if nothing is in it. Ours and not the cluster's own: a teardown
/// would remove what is there. Folders that a path pattern made around it go too when they are
/// empty. Never through a symbolic link: what it leads to is somebody else's.
inline constexpr const char* kRemoveIfEmpty = R"sh(base=${VOL_DIR%/*} way=${VOL_DIR##*/}
if [ -n "${VOL_BASE_DIR:-}" ]; then base=$VOL_BASE_DIR way=$VOL_SUB_DIR; fi
cd -P -- "$base" || exit 1
said=removed rest=$way
while :; do
  name=${rest%%/*}
  if [ -L "./$name" ]; then said=kept; break; fi
  if ! is_there "./$name"; then said=absent; break; fi
  if [ "$name" = "$rest" ]; then
    rmdir -- "./$name" || said=kept
    break
  fi
  here=$(pwd -P)
  cd -P "./$name" || exit 1
  if [ "$(pwd -P)" != "${here%/}/$name" ]; then exit 1; fi
  rest=${rest#*/}
done
if [ "$said" != kept ]; then
  cd -P -- "$base" || exit 1
  while [ "$way" != "${way%/*}" ]; do
    way=${way%/*}
    if [ -e "./$way" ]; then rmdir -- "./$way" 2>/dev/null || break; fi
  done
fi
echo "directory: $said" >/dev/termination-log
)sh";

/// Around the teardown of a volume whose base path holds records, made by an agent or by our own
/// program, once their agent does not remove it any more. Nothing is removed on another disk than
/// VOL_DISK ("" = not known), nor what is by its record the directory of another claim than
/// VOL_CLAIM_UID. What an agent had begun to remove has left its place for a folder beside the
/// records, VOL_RECORD names it: the teardown goes on there, and what stands in the place by now is
/// somebody else's, unless the record tells its inode, or may: the root of every btrfs subvolume
/// shows 256, and the record tells its number. By its state the record tells, too, of one that
/// could not leave its place and is emptied there. Then what our own program would take away goes:
/// folders of a path pattern that are empty, and the record, if it is the claim's and tells of no
/// limit. That a script cannot lift: such a record stays for an agent that comes back. Whose claim
/// a volume was made for is not known ("") once it is bound to another one: then it is what the
/// record tells in its place, and of what is left beside the records only what the record tells to
/// have been taken so, or names no claim of; else, and while something else stands in the place,
/// nobody can tell. What is recorded and cannot be read is nobody's.
inline constexpr const char* kTeardownBesideRecords =
    R"sh(if [ -n "$VOL_DISK" ] && ! is_on_disk "$VOL_DISK"; then
  fail "the volume is on disk $VOL_DISK, and that is not the one at its base path now:" \
    "mount it there; if it is gone for good, take the annotation" \
    "local.path.provisioner/disk off the volume"
fi
if [ -d "$records" ] && ! (cd -- "$records" && [ -r . ]) 2>/dev/null; then
  fail "whose directory $VOL_DIR is nobody can tell: the records in $records cannot be read"
fi
gone=$records/gone.$VOL_RECORD begun=
if is_there "$gone"; then begun=yes; fi
file=$records/volume.$VOL_RECORD.json record='' uid=''
if is_there "$file"; then
  record=$(cat -- "$file") && uid=$(member uid "$record") ||
    fail "whose directory $VOL_DIR is cannot be read of its record, $file"
fi
inode=$(inode_of "$VOL_DIR") || exit
is_recorded= ours=
if [ -n "$record" ]; then
  if [ "$(member inode "$record")" = "${inode:-none}" ]; then is_recorded=yes; fi
  if [ "$inode" = 256 ]; then is_recorded=perhaps; fi
  case $uid in '' | "$VOL_CLAIM_UID") ours=yes ;; esac
  if [ -n "$begun" ] && [ -z "$VOL_CLAIM_UID" ] && [ "$(member takenForAny "$record")" = true ]; then
    ours=yes
  fi
fi
if [ -n "$record" ] && { [ -z "$uid" ] || [ -z "$VOL_CLAIM_UID" ]; }; then
  if [ -z "$begun" ]; then
    ours=${ours:-$is_recorded}
  elif [ -n "$inode" ] && [ "$is_recorded" != yes ] ||
    { [ -z "$ours" ] && ! rmdir -- "$gone" 2>/dev/null; }; then
    fail "what is left of $VOL_DIR may be in $gone, and whether that is this volume's nobody" \
      "can tell by the record, $file: move out of it what is needed, and remove it by hand"
  else
    [ -n "$ours" ] || ours=yes begun=
  fi
fi
if [ -z "$ours" ]; then
  if [ -n "$record" ] && [ -n "$VOL_CLAIM_UID" ] && [ -n "$inode$begun" ]; then
    why="$VOL_DIR is by its record the directory of another claim"
    if [ -z "$is_recorded" ] && [ -n "$begun" ]; then
      why="$why, and that one's removal has not ended: move what is needed out of $gone, remove"
      why="$why that by hand, then the record, $file, and what is in the place by now goes; or"
    elif [ -z "$is_recorded" ]; then
      why="$why, and that one is not there any more: if what is there by now is not its data, put"
      why="$why back from a backup, remove the record by hand, $file, and it goes; or"
    else
      why="$why:"
    fi
    fail "$why set the volume's reclaim policy to Retain to keep it"
  fi
  # Empty, a removal that could not even begin has left it, and a setup would make nothing beside it.
  if [ -z "$record" ] && [ -n "$begun" ] && ! why=$(rmdir -- "$gone" 2>&1); then
    fail "what is left of $VOL_DIR may be in $gone, and whether that is this volume's nobody can" \
      "tell ($why): move out of it what is needed, and remove it by hand"
  fi
  exec /bin/sh /script/teardown "$@"
fi
tidy() {
  if is_there "$VOL_DIR" || is_there "$gone"; then return; fi
  if [ -n "$uid" ] && [ "$(member project "$record")" = 0 ]; then
    rm -f -- "$file"
  fi
  if [ -z "${VOL_BASE_DIR:-}" ]; then return; fi
  cd -P -- "$VOL_BASE_DIR" || return
  base=$(pwd -P) way=$VOL_SUB_DIR
  while [ "$way" != "${way%/*}" ]; do
    way=${way%/*}
    if [ ! -e "./$way" ] && [ ! -L "./$way" ]; then continue; fi
    there=$(cd -P -- "./$way" 2>/dev/null && pwd -P) || return
    if [ "$there" != "${base%/}/$way" ]; then return; fi
    rmdir -- "./$way" 2>/dev/null || return
  done
}
if [ -z "$begun" ]; then
  /bin/sh /script/teardown "$@" || exit
  tidy
  exit 0
fi
left=
for part in "$gone/volume" "$gone"/deep.*; do
  if [ ! -d "$part" ] || [ -L "$part" ]; then continue; fi
  left=${left:-${part##*/}}
  (
    shift 2
    VOL_DIR=$part VOL_BASE_DIR='' VOL_SUB_DIR='' /bin/sh /script/teardown -p "$part" "$@"
  ) || exit
done
rmdir -- "$gone" || exit
stands=
case $is_recorded:$left in
  ?*:) stands=yes ;;
  yes:deep.*) if [ "$(member state "$record")" = removing ]; then stands=yes; fi ;;
esac
if [ -n "$stands" ]; then /bin/sh /script/teardown "$@" || exit; fi
tidy
exit 0
)sh";

/// Around the setup of a claim's volume where agents may have worked: what is by its record the
/// directory of another cluster's claim becomes no claim's here. VOL_CLUSTER is this cluster; ""
/// where it is not known, and then nothing of that kind can be told apart. VOL_DISK is the disks
/// that volumes of the base path name: on another one nothing is made. On the right one the folders
/// of a path pattern are, which a setup may count on: where the disk is not compared the kubelet
/// makes them. A link among them is left to the setup. What a setup has found of a former claim of
/// this cluster is the claim's from then on, as where an agent finds it: nothing is on record of
/// what scripts make. A record of a limit on just that directory stays, which only an agent can
/// lift. While a removal of what was there has not ended nothing is made: nobody could tell the two
/// apart any more.
inline constexpr const char* kSetupBesideRecords =
    R"sh(refuse() {
  echo "$2" >&2
  printf '%s\ndirectory: absent\n' "$2" >"${VOL_MESSAGE_PATH:-/dev/termination-log}"
  exit "$1"
}
if [ -n "${VOL_DISK:-}" ] && ! is_on_disk $VOL_DISK; then
  why="volumes of this base path are on disk $VOL_DISK, and that is not there now: mount it,"
  why="$why or if its data is given up take the annotation local.path.provisioner/disk off"
  refuse 4 "$why all volumes that name it"
fi
gone=$records/gone.$VOL_RECORD
if is_there "$gone"; then
  why="the removal of what was at $VOL_DIR has not ended, $gone is there: if nothing is at it any"
  refuse 1 "$why more, move what is needed out of that, and remove it by hand"
fi
record_file=$records/volume.$VOL_RECORD.json former='' record=''
if is_there "$record_file"; then
  record=$(cat -- "$record_file") || fail "whose $VOL_DIR is cannot be read of $record_file"
fi
uid=$(member uid "$record") || uid=none
if [ -n "$record" ] && [ -n "$identity" ] && [ "$uid" != "$VOL_CLAIM_UID" ]; then
  cluster=$(member cluster "$identity")
  case $?:$cluster in
    1: | "0:${VOL_CLUSTER:-?}") former=$uid ;;
    *)
      why="$VOL_DIR is by its record the directory of another claim, and its disk is another"
      why="$why cluster's than '${VOL_CLUSTER:-}', or nobody knows"
      refuse 1 "$why: adopt it, or remove it by hand"
      ;;
  esac
fi
(
  cd -P -- "${VOL_BASE_DIR:-.}" || exit
  umask 022
  way=${VOL_SUB_DIR:-}
  while [ "$way" != "${way#*/}" ]; do
    name=${way%%/*} above=$PWD
    way=${way#*/}
    if [ -L "./$name" ]; then exit 0; fi
    mkdir -p "./$name" || exit
    cd -P "./$name" || exit
    if [ "$PWD" != "${above%/}/$name" ]; then exit 1; fi
  done
) || exit
# It is the first process, and hears of the pod's end.
if [ -z "$former" ]; then exec /bin/sh /script/setup "$@"; fi
inode=$(inode_of "$VOL_DIR") || exit
found=
case ${inode:-none} in 256 | "$(member inode "$record")") found=yes ;; esac
/bin/sh /script/setup "$@" || exit
if ! is_there "$gone"; then
  # Our own program, in a setup, notes the claim.
  record=$(cat -- "$record_file" 2>/dev/null) || :
  limit=$(member project "$record") || :
  if [ "$(member uid "$record")" = "$former" ] && { [ -z "$found" ] || [ "$limit" = 0 ]; }; then
    rm -f -- "$record_file" || exit
  fi
fi
exit 0
)sh";

}  // namespace lpp::helperpod
