# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Container images out of the machine's static busybox; sourced after env.sh. Nothing is fetched.

PAUSE_IMAGE=localhost/pause:e2e
BUSYBOX_IMAGES=(docker.io/library/busybox:latest docker.io/library/busybox:stable
  docker.io/rancher/library-busybox:1.32.1)

_architecture() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

_image_config() { # COMMAND_JSON LAYER_SHA256
  jq -n --arg arch "$(_architecture)" --argjson command "$1" --arg layer "sha256:$2" '{
    architecture: $arch, os: "linux", created: "2020-01-01T00:00:00Z",
    config: {Env: ["PATH=/bin:/usr/bin"], Cmd: $command},
    rootfs: {type: "layers", diff_ids: [$layer]}}'
}

# make_images OUT_TAR    An archive as "docker save" writes it: busybox under every wanted name
# (LPP_E2E_IMAGES adds more, full names separated by blanks) and the pause image, on one layer.
make_images() {
  local work root busybox applet layer names
  busybox=$(readlink -f "$(command -v "${LPP_E2E_BUSYBOX:-busybox}")")
  work=$(mktemp -d "$LPP_E2E_STATE/image.XXXXXX")
  root=$work/root
  mkdir -p "$root"/{bin,dev,etc,proc,root,sys,usr/bin}
  mkdir -m 1777 "$root/tmp"
  cp "$busybox" "$root/bin/busybox"
  for applet in $("$busybox" --list); do
    [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
  done
  ln -s ../../bin/busybox "$root/usr/bin/env"
  echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
  echo 'root:x:0:' >"$root/etc/group"
  cat >"$root/bin/pause" <<'SH'
#!/bin/sh
# Holds a pod's namespaces: collects orphans and ends when told to.
trap 'exit 0' TERM INT
while :; do
  sleep 3600 &
  wait $!
done
SH
  chmod 755 "$root/bin/pause" "$root/bin/busybox"

  tar -C "$root" --owner=0 --group=0 --numeric-owner --sort=name -cf "$work/layer.tar" .
  layer=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
  _image_config '["sh"]' "$layer" >"$work/busybox.json"
  _image_config '["/bin/pause"]' "$layer" >"$work/pause.json"
  # shellcheck disable=SC2086  # a list of words
  names=$(printf '%s\n' "${BUSYBOX_IMAGES[@]}" ${LPP_E2E_IMAGES:-} | jq -R . | jq -s .)
  jq -n --argjson names "$names" --arg pause "$PAUSE_IMAGE" '[
    {Config: "busybox.json", Layers: ["layer.tar"], RepoTags: $names},
    {Config: "pause.json", Layers: ["layer.tar"], RepoTags: [$pause]}]' >"$work/manifest.json"
  tar -C "$work" -cf "$1" manifest.json busybox.json pause.json layer.tar
  rm -rf "$work"
}

# make_program_image OUT_TAR NAME PROGRAM    An image with nothing in it but a static program, or what a
# directory holds, as "FROM scratch" makes it. NAME is a full name.
make_program_image() {
  local work layer command='[]' folder=$3 what=.
  work=$(mktemp -d "$LPP_E2E_STATE/image.XXXXXX")
  if [ ! -d "$3" ]; then
    folder=$(dirname "$3")
    what=$(basename "$3")
    command=$(jq -n --arg program "/$what" '[$program]')
  fi
  tar -C "$folder" --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" "$what"
  layer=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
  _image_config "$command" "$layer" >"$work/config.json"
  jq -n --arg name "$2" '[{Config: "config.json", Layers: ["layer.tar"], RepoTags: [$name]}]' \
    >"$work/manifest.json"
  tar -C "$work" -cf "$1" manifest.json config.json layer.tar
  rm -rf "$work"
}
