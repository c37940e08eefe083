#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# image.sh: builds the container image $IMAGE (default: local-path-provisioner:v<version>) with
# docker if its daemon answers, else with buildah, which is installed if need be.
#
#   BASE=IMAGE          build environment instead of debian:12-slim; "local" = made here by debootstrap,
#                       for machines that reach a Debian mirror but no registry (buildah, root)
#   PLATFORM=linux/arm64   another architecture, if this machine can run its programs (binfmt); several
#                       with commas between them become a manifest list of that name (buildah)
#   BUILDER=docker|buildah   this one, instead of docker where its daemon answers
#   SOURCE=https://...  where this repository is hosted, for the labels of the image
#   NO_CACHE=1          build every step again, whatever earlier builds left
#
# The same sources, base image and packages give the same image: times are those of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
image=${IMAGE:-local-path-provisioner:v$version}
revision=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

name=(-t "$image")
builder=${BUILDER:-}
case ${PLATFORM:-} in
  *,*)
    name=(--manifest "$image")
    if [ "${BASE:-}" = local ] || [ "$builder" = docker ]; then
      echo 'image: several platforms need buildah, and a base image that has them all' >&2
      exit 2
    fi
    builder=buildah ;;
esac
arguments=("${name[@]}" --build-arg "VERSION=$version" --build-arg "REVISION=$revision"
  --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH")
if [ -n "${PLATFORM:-}" ]; then arguments+=(--platform "$PLATFORM"); fi

if [ -n "${SOURCE:-}" ]; then
  arguments+=(--label "org.opencontainers.image.source=$SOURCE" --label "org.opencontainers.image.url=$SOURCE")
fi
if [ "${NO_CACHE:-}" = 1 ]; then arguments+=(--no-cache); fi

if [ -z "$builder" ]; then
  builder=buildah
  if [ "${BASE:-}" != local ] && docker info >/dev/null 2>&1; then builder=docker; fi
fi
if [ "$builder" = docker ]; then
  build=(docker build)
elif command -v buildah >/dev/null || scripts/install-deps.sh image && command -v buildah >/dev/null; then
  # chroot: works in containers and virtual machines too, where namespaces are not to be had.
  build=(buildah build --isolation "${BUILDAH_ISOLATION:-chroot}" --timestamp "$SOURCE_DATE_EPOCH")
  # Kept steps of one platform would be taken for another: what begins with nothing is the same there.
  if [ "${name[0]}" = -t ]; then build+=(--layers); fi
else
  echo 'image: neither a running docker nor buildah is here; install one of them' >&2
  exit 3
fi
if [ "${BASE:-}" = local ]; then
  BASE=localhost/local-path-provisioner-base:bookworm
  scripts/base-image.sh "$BASE"
fi
if [ -n "${BASE:-}" ]; then arguments+=(--build-arg "BASE=$BASE"); fi
# What is built is added to a list that is there.
if [ "${name[0]}" = --manifest ]; then buildah manifest rm "$image" >/dev/null 2>&1 || true; fi

"${build[@]}" "${arguments[@]}" . || {
  if [ -z "${BASE:-}" ]; then
    echo 'image: where debian:12-slim cannot be pulled: make image BASE=local' >&2
  fi
  exit 1
}
echo "built: $image"
if [ "${name[0]}" = --manifest ]; then
  echo "push it with: buildah manifest push --all $image docker://$image"
fi
