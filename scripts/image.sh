#!/usr/bin/env bash
# image.sh: builds the container image $IMAGE (default: local-path-provisioner:v<version>) with
# docker if its daemon answers, else with buildah, which is installed if need be.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
image=${IMAGE:-local-path-provisioner:v$version}

if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
  build=(docker build)
elif command -v buildah >/dev/null || scripts/install-deps.sh image && command -v buildah >/dev/null; then
  build=(buildah build)
else
  echo 'image: neither a running docker nor buildah is here; install one of them' >&2
  exit 3
fi

"${build[@]}" -t "$image" --build-arg VERSION="$version" \
  --build-arg REVISION="$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" .
echo "built: $image"
