#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# restored.sh    A cluster that is restored from a backup of before ten volumes removes nothing.
#
# On a control plane of its own, beside another one: etcd's data is copied, ten volumes are made by a
# node agent and written to, and etcd gets the copy back. Provisioner and agent start anew, with a
# short --sweep-after. Every byte must be there after a while, `volumes --orphans` must list the ten,
# and the volume of before the backup must be as it was. Then once more below a provisioner and an
# agent that go on all the time: what they know is newer than what is restored.
# The node is an object, the agent a process.
#
#   LPP_BUILD_DIR      CMake's build directory (build/dev)
#   LPP_RESTORED_WAIT  seconds for which it is watched that nothing goes (20, and half of it)
#
# Exit: 0 passed, 1 failed, 3 cannot be run on this machine (says why).
# Twenty ports, a directory and addresses of its own.
export LPP_E2E_INSTANCE=$(((${LPP_E2E_INSTANCE:-0} + 40) % 100))
unset LPP_E2E_STATE LPP_E2E_NODE LPP_E2E_PORT_BASE LPP_E2E_KUBECONFIG
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=test/e2e/cluster/env.sh
. "$here/cluster/env.sh"
# shellcheck source=test/e2e/cluster/process.sh
. "$here/cluster/process.sh"
# shellcheck source=test/e2e/cluster/agents.sh
. "$here/cluster/agents.sh"

PROGRAM=${LPP_BUILD_DIR:-$root/build/dev}/src/local-path-provisioner
NODE=restored
AGENTS_PORT=$((LPP_E2E_PORT_BASE + 10))
HEALTH_PORT=$((LPP_E2E_PORT_BASE + 11))
BASE=/opt/local-path-provisioner
disk=$LPP_E2E_STATE/disk
volumes=$disk$BASE
[ -x "$PROGRAM" ] || die "$PROGRAM is missing: build it, or set LPP_BUILD_DIR"

# shellcheck disable=SC2317 # the trap calls it
finish() {
  local code=$?
  trap - EXIT INT TERM
  if [ "$code" = 0 ] || [ "$code" = 3 ]; then
    "$CLUSTER_DIR/down.sh" --wipe >/dev/null 2>&1 || code=1
  else
    "$CLUSTER_DIR/down.sh" >/dev/null 2>&1 || true
    say "restored: failed; the logs are in $LOG"
  fi
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

claim() { # NAME [ANNOTATIONS]
  cat <<YAML
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: $1
  namespace: default
  annotations: {${2-volume.kubernetes.io/selected-node: $NODE}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: local-path
  resources: {requests: {storage: 1Mi}}
YAML
}

bound() { # NUMBER
  [ "$(kctl get pvc -o jsonpath='{.items[*].status.phase}' | grep -o Bound | wc -l)" = "$1" ]
}

directory_of() { # CLAIM -> its directory, on this machine
  local path
  path=$(kctl get pv "$(kctl get pvc "$1" -o jsonpath='{.spec.volumeName}')" \
    -o jsonpath='{.spec.hostPath.path}{.spec.local.path}')
  [ -n "$path" ] && printf '%s' "$disk$path"
}

fill() { # CLAIM
  local directory
  directory=$(directory_of "$1")
  [ -d "$directory" ] || die "there is no directory of claim $1"
  mkdir "$directory/below"
  head -c 20000 /dev/urandom >"$directory/below/data"
  echo "what a tenant has written into $1" >"$directory/note"
}

select_node() { # CLAIM
  kctl annotate --overwrite pvc "$1" "volume.kubernetes.io/selected-node=$NODE" >/dev/null
}

# Every file of the volumes; what the agent keeps beside them may change.
everything() {
  (cd "$volumes" && find . -path ./.local-path-provisioner -prune -o -type f -print0 | sort -z |
    xargs -0 sha256sum && find . -path ./.local-path-provisioner -prune -o -type d -print | sort)
}

ready() { [ "$(curl -s -o /dev/null -w '%{http_code}' --max-time 1 "http://127.0.0.1:$HEALTH_PORT/ready")" = 200 ]; }

all_start() { # provisioner and agent
  start provisioner "$PROGRAM" start --config "$LPP_E2E_STATE/config.json" \
    --kubeconfig "$LPP_E2E_STATE/daemon.kubeconfig" --namespace local-path-storage --agents \
    --agents-port "$AGENTS_PORT" --health-port "$HEALTH_PORT"
  wait_until 90 "the provisioner's readiness" provisioner ready
  wait_until 90 "the authority of the agents" provisioner agents_take_ca
  agents_start "$NODE" "$disk" "$AGENTS_PORT" --usage-interval 1s --sweep-after 1s
  agents_wait "$NODE"
}

orphans() { "$PROGRAM" volumes --orphans -o json --kubeconfig "$ADMIN_KUBECONFIG"; }
are_listed() { # NUMBER    so many of them as what was lost
  local found
  found=$(orphans | jq '[.. | objects | select(.why? == "NoVolume")] | length') && [ "$found" = "$1" ]
}

nothing_goes() { # SECONDS
  local second
  for ((second = $1; second > 0; second--)); do
    sleep 1
    [ "$(everything)" = "$kept" ] || die "something went: $(diff <(echo "$kept") <(everything))"
  done
}

control_plane_stops() { # and nothing else
  stop kube-scheduler
  stop kube-controller-manager
  stop kube-apiserver 2 quietly
  stop etcd
}

if [ "${LPP_E2E_NO_INSTALL:-}" != 1 ]; then "$CLUSTER_DIR/install-deps.sh" controlplane || exit $?; fi
"$CLUSTER_DIR/up.sh" --fresh
mkdir -p "$volumes"
jq -n --arg folder "$BASE" '{nodePathMap:
  [{node: "DEFAULT_PATH_FOR_NON_LISTED_NODES", paths: [$folder]}]}' >"$LPP_E2E_STATE/config.json"
kctl apply -f "$root/deploy/local-path-storage.yaml" >"$LOG/apply.log"
kctl --namespace local-path-storage scale deployment local-path-provisioner --replicas 0 >/dev/null
agents_allow "$root"
"$CLUSTER_DIR/serviceaccount-kubeconfig.sh" local-path-storage \
  local-path-provisioner-service-account "$LPP_E2E_STATE/daemon.kubeconfig"

# The node, its agent's pod, and a pod that stands for the provisioner's process: `volumes` looks for
# it where pods are. The API server speaks to no pod on 127.0.0.1.
address=$(hostname -I | cut -d ' ' -f 1)
[ -n "$address" ] || cannot "this machine has no address but that of the loopback device"
kctl apply -f - >>"$LOG/apply.log" <<YAML
apiVersion: v1
kind: Node
metadata:
  name: $NODE
  labels: {kubernetes.io/hostname: $NODE}
---
apiVersion: v1
kind: Pod
metadata:
  name: local-path-provisioner
  namespace: local-path-storage
  labels: {app: local-path-provisioner}
spec:
  nodeName: $NODE
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 0
  containers:
    - name: local-path-provisioner
      image: local-path-provisioner
      ports: [{name: health, containerPort: $HEALTH_PORT}]
YAML
kctl --namespace local-path-storage patch pod local-path-provisioner --subresource status --type merge \
  -p "{\"status\": {\"phase\": \"Running\", \"podIP\": \"$address\", \"podIPs\": [{\"ip\": \"$address\"}]}}" >/dev/null
agents_pods "$NODE"

all_start
claim before | kctl apply -f - >/dev/null
wait_until 90 "the volume of before" provisioner bound 1
fill before

# The backup.
"$CLUSTER_DIR/down.sh"
cp -a "$LPP_E2E_STATE/etcd" "$LPP_E2E_STATE/backup"
"$CLUSTER_DIR/up.sh"
all_start
claims=()
for i in 0 1 2 3 4 5 6 7 8 9; do claims+=("after-$i"); done
for one in "${claims[@]}"; do claim "$one"; done | kctl apply -f - >/dev/null
wait_until 90 "the ten volumes" provisioner bound 11
for one in "${claims[@]}"; do fill "$one"; done
kept=$(everything)
[ "$(grep -c '/note$' <<<"$kept")" = 11 ] || die "not every volume holds what was written: $kept"

# It is restored; whatever asked it has to look again.
"$CLUSTER_DIR/down.sh"
mv "$LPP_E2E_STATE/etcd" "$LPP_E2E_STATE/lost"
mv "$LPP_E2E_STATE/backup" "$LPP_E2E_STATE/etcd"
"$CLUSTER_DIR/up.sh"
all_start
bound 1 || die "the backup does not hold the one volume of before"
wait_until 90 "the list of the ten" provisioner are_listed 10
nothing_goes "${LPP_RESTORED_WAIT:-20}"
are_listed 10 || die "not the ten are listed: $(orphans)"
[ -s "$(directory_of before)/note" ] || die "the volume of before has lost its data"
# Claims of today are served beside them.
claim today | kctl apply -f - >/dev/null
wait_until 90 "a volume of today" provisioner bound 2
[ "$(everything | grep -c '/note$')" = 11 ] || die "a new volume has cost an old one its data"

# The second time: only the control plane stops. The backup knows a claim that has no volume yet.
claim waiting "" | kctl apply -f - >/dev/null
control_plane_stops
cp -a "$LPP_E2E_STATE/etcd" "$LPP_E2E_STATE/backup"
"$CLUSTER_DIR/up.sh"
claims=()
for i in 0 1 2 3 4; do claims+=("later-$i"); done
for one in "${claims[@]}"; do claim "$one"; done | kctl apply -f - >/dev/null
select_node waiting
wait_until 90 "the volumes of later" provisioner bound 8
for one in waiting "${claims[@]}"; do fill "$one"; done
kept=$(everything)
[ "$(grep -c '/note$' <<<"$kept")" = 17 ] || die "not every volume holds what was written: $kept"
had=$(directory_of waiting)
control_plane_stops
mv "$LPP_E2E_STATE/etcd" "$LPP_E2E_STATE/lost-later"
mv "$LPP_E2E_STATE/backup" "$LPP_E2E_STATE/etcd"
"$CLUSTER_DIR/up.sh"
bound 2 || die "the backup does not hold the two volumes of before"
nothing_goes "$((${LPP_RESTORED_WAIT:-20} / 2))"
# The API server sends them nothing before its versions are beyond those that they have seen.
for i in {1..200}; do
  printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: filler-%s, namespace: default}\n' "$i"
done | kctl create -f - >/dev/null
claim tomorrow | kctl apply -f - >/dev/null
wait_until 90 "a volume of tomorrow" provisioner bound 3
for one in provisioner "agent-$NODE"; do alive "$one" || die "$one has ended: $LOG/$one.log"; done
# What was restored they see when the provisioner is restarted (docs/backup.md).
stop provisioner
all_start
wait_until 90 "the list of the fifteen" provisioner are_listed 15 # not that of a claim that is there
select_node waiting
wait_until 90 "the volume of the claim that waits" provisioner bound 4
[ "$(directory_of waiting)" = "$had" ] || die "the claim that waits has another directory"
[ "$(everything | grep -c '/note$')" = 17 ] || die "a new volume has cost an old one its data"
"$PROGRAM" volumes --orphans --kubeconfig "$ADMIN_KUBECONFIG"
say "restored: passed, twice; nothing of seventeen volumes has gone, those not known are listed"
