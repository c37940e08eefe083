#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# load-image.sh kind|k3d|k3s [CLUSTER]: puts the image $IMAGE (default: local-path-provisioner:v<version>)
# into the nodes of a cluster on this machine, so that no registry is needed. `make image` has built it.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
image=${IMAGE:-local-path-provisioner:v$version}
to=${1:-}
cluster=${2:-}
case $to in
  kind | k3d | k3s) ;;
  *) echo "load: which cluster? make load TO=kind, TO=k3d or TO=k3s" >&2; exit 2 ;;
esac
command -v "$to" >/dev/null || { echo "load: there is no $to on PATH" >&2; exit 3; }

archive=$(mktemp --suffix=.tar)
trap 'rm -f "$archive"' EXIT
rm -f "$archive" # buildah does not write into a file that is there
if docker image inspect "$image" >/dev/null 2>&1; then
  docker save -o "$archive" "$image"
elif command -v buildah >/dev/null && buildah inspect --type image "$image" >/dev/null 2>&1; then
  # containerd knows short names by their long ones only
  case $image in
    */*) long=$image ;;
    *) long=docker.io/library/$image ;;
  esac
  buildah push -q "$image" "docker-archive:$archive:$long"
else
  echo "load: there is no image $image here; make image builds it" >&2
  exit 1
fi

case $to in
  kind) kind load image-archive "$archive" --name "${cluster:-kind}" ;;
  k3d) k3d image import "$archive" -c "${cluster:-k3s-default}" ;;
  k3s)
    sudo=sudo
    if [ "$(id -u)" = 0 ]; then sudo=; fi
    $sudo k3s ctr images import "$archive"
    ;;
esac
echo "loaded: $image into $to"
