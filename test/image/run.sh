#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [COMMIT]    Build the image of a commit (HEAD) twice and see that both are the same, bit for bit.
#
# Each build has a checkout of its own and no cache. The image that stays is NAME (IMAGE, default
# localhost/local-path-provisioner:test). BASE is passed on; "local" where no registry is reached.
# It also says how large the image is, and checks what it promises: no shell, not root, labels, an
# SBOM, a program that runs, and that it can be the image of helper pods. Takes two full builds: a
# quarter of an hour on 2 cores.
#
# Exit: 0 all is well, 1 a check failed, 3 this machine cannot run it (no buildah).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

commit=$(git rev-parse "${1:-HEAD}")
image=${IMAGE:-localhost/local-path-provisioner:test}
command -v buildah >/dev/null || {
  echo 'image: cannot be tested: there is no buildah (scripts/install-deps.sh image)' >&2
  exit 3
}
dangling() { buildah images --all --quiet --no-trunc --filter dangling=true; }
work=$(mktemp -d)
dangling >"$work/before"
container=
# shellcheck disable=SC2317 # the trap calls it
finish() {
  if [ -n "$container" ]; then
    buildah umount "$container" >/dev/null 2>&1 || true
    buildah rm "$container" >/dev/null
  fi
  # The cache of the builds.
  for one in $(dangling); do
    grep -qx "$one" "$work/before" || buildah rmi "$one" >/dev/null 2>&1 || true
  done
  rm -rf "$work"
}
trap finish EXIT

build() { # N    with buildah, whatever else is here: docker has no --timestamp
  git clone -q --no-checkout "$PWD" "$work/$1"
  git -C "$work/$1" checkout -q "$commit"
  IMAGE=$image-$1 NO_CACHE=1 BUILDER=buildah "$work/$1/scripts/image.sh" >"$work/log" 2>&1 || {
    tail -n 30 "$work/log" >&2
    exit 1
  }
}
build 1
sleep 1 # so that a time that got in would differ
build 2

failed=0
check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then
    printf 'image: ok: %s\n' "$what"
  else
    printf 'image: FAILED: %s\n' "$what" >&2
    failed=$((failed + 1))
  fi
}
id() { buildah inspect --type image --format '{{.FromImageID}}' "$1"; }
check "built twice, the same: $(id "$image-1")" [ "$(id "$image-1")" = "$(id "$image-2")" ]

buildah tag "$image-2" "$image"
config=$(buildah inspect --type image "$image" | jq .OCIv1)
has() { jq -e "$1" <<<"$config" >/dev/null; }
check 'not root' has '.config.User == "65532:65532"'
check 'labels' has '.config.Labels | (."org.opencontainers.image.version" | length > 0) and
  (."org.opencontainers.image.revision" | length > 0)'
container=$(buildah from "$image")
root=$(buildah mount "$container")
names_program() {
  jq -e '.packages[0].name == "local-path-provisioner"' \
    "$root/usr/share/sbom/local-path-provisioner.spdx.json" >/dev/null
}
check 'an SBOM that names the program' names_program
shells=$(find "$root" -name '*sh' -perm /111 -type f)
check 'no shell' [ -z "$shells" ]
check 'the program runs' chroot --userspec=65532:65532 "$root" local-path-provisioner version
# As a helper pod runs it: root, one command, the action among the scripts' options.
works_as_helper() {
  local node=(chroot "$root" /usr/bin/local-path-node -p /tmp/base/volume -s 1048576 -m Filesystem -a)
  mkdir "$root/tmp/base" && "${node[@]}" create && [ -d "$root/tmp/base/volume" ] &&
    "${node[@]}" delete --if-empty && [ ! -e "$root/tmp/base/volume" ] && rm -r "$root/tmp/base"
}
check 'it does the work of helper pods, without a shell' works_as_helper
echo "image: $(du -sm --apparent-size "$root" | cut -f 1) MiB"
buildah rmi "$image-1" "$image-2" >/dev/null
echo "image: $((7 - failed)) passed, $failed failed"
[ $failed = 0 ]
