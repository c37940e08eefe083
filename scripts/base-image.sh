#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# base-image.sh NAME: makes a minimal Debian 12 image NAME for buildah, by debootstrap, for machines
# that reach a Debian mirror but no registry of images. Root is needed. An image that is there is kept.
# Settings of apt (mirror, proxy, certificates) are those of this machine, during the build only: the
# base is no part of the final image.
set -euo pipefail

if [ $# != 1 ]; then
  echo 'usage: base-image.sh NAME' >&2
  exit 2
fi
name=$1
if buildah inspect --type image "$name" >/dev/null 2>&1; then exit 0; fi
if [ "$(id -u)" != 0 ]; then
  echo 'base-image: needs root' >&2
  exit 3
fi
"$(dirname "$0")/install-deps.sh" image

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# shellcheck disable=SC2016 # apt-get's own placeholders
targets=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages')
mirror=${MIRROR:-$(awk '$1 == "bookworm" { print $2; exit }' <<<"$targets")}
if [ -z "$mirror" ]; then
  echo 'base-image: apt knows no mirror of bookworm: set MIRROR to the URL of one' >&2
  exit 3
fi
debootstrap --variant=minbase --include=ca-certificates bookworm "$root/base" "$mirror" >"$root/log" 2>&1 || {
  tail -n 5 "$root/log" >&2
  exit 1
}
cp -r /etc/apt/apt.conf.d/. "$root/base/etc/apt/apt.conf.d/"
if [ -d /usr/local/share/ca-certificates ]; then
  cp -r /usr/local/share/ca-certificates/. "$root/base/usr/local/share/ca-certificates/"
  chroot "$root/base" update-ca-certificates >/dev/null 2>&1
fi
container=$(buildah from scratch)
buildah add -q "$container" "$root/base" / >/dev/null
buildah commit -q "$container" "$name" >/dev/null
buildah rm "$container" >/dev/null
echo "base-image: made $name" >&2
