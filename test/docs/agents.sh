# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # walk.sh reads them, or sets them
# Sourced by walk.sh: docs/agents.md, docs/adopt.md and docs/node-lost.md, with an agent on the node. Its
# pod finds the provisioner's by an alias: there is no Service address here. And it looks at its disk more
# often than once a minute, so that this takes no longer.
base=$LPP_E2E_STATE/volumes
sed -i "s|/opt/local-path-provisioner|$base|" deploy/agents/daemonset.yaml
if [ "$(findmnt -no PROPAGATION -T "$base")" != shared ]; then
  sed -i '/mountPropagation/d' deploy/agents/daemonset.yaml # as the page says
fi
# An image and a configuration of one's own, which "Going back" must leave as they are.
sed -i "s|^    newTag: .*|    newName: ${REGISTRY_IMAGE%:*}\n    newTag: $version|" deploy/kustomization.yaml
cat >>deploy/kustomization.yaml <<YAML
patches:
  - patch: |-
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: local-path-config, namespace: local-path-storage}
      data:
        config.json: |-
          {"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["$base"]}],
           "cmdTimeoutSeconds": 90}
YAML
doc docs/agents.md <<'C'
kubectl kustomize examples/node-agents | local-path-provisioner check -f -
C
says 'Result:    ok'
doc docs/agents.md <<'C'
kubectl apply -k examples/node-agents
C
reach_api
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
provisioner=
one_is_left() { # of the pods: the former one ends
  provisioner=$(kubectl -n local-path-storage get pod -l app.kubernetes.io/name=local-path-provisioner \
    -o jsonpath='{.items[*].metadata.name}')
  [[ $provisioner != *' '* ]]
}
wait_until 180 'the former provisioner to end' kubelet one_is_left
address=$(kubectl -n local-path-storage get pod "$provisioner" -o jsonpath='{.status.podIP}')
kubectl -n local-path-storage patch daemonset local-path-provisioner-agent -p \
  '{"spec": {"template": {"spec": {"hostAliases": [{"ip": "'"$address"'",
    "hostnames": ["local-path-provisioner-agents.local-path-storage.svc"]}],
    "containers": [{"name": "agent", "args": ["--usage-interval=2s"]}]}}}}' >/dev/null
tells() { # TEXT    on its page of metrics
  kubectl get --raw "/api/v1/namespaces/local-path-storage/pods/$provisioner:8080/proxy/metrics" | grep "$1" >/dev/null
}
wait_until 180 'the agent to be connected' kubelet tells '^local_path_provisioner_agents_connected 1'
doc docs/agents.md <<'C'
kubectl -n local-path-storage rollout status daemonset local-path-provisioner-agent --timeout=3m
C
doc docs/agents.md <<'C'
local-path-provisioner check
C
says 'Result:    ok'
doc docs/agents.md <<'C'
kubectl -n local-path-storage get pods -l app.kubernetes.io/name=local-path-provisioner-agent
C
says 'Running'
# The one of before the patch above may be ending still.
kubectl -n local-path-storage rollout status daemonset local-path-provisioner-agent --timeout=180s >/dev/null
agent_pod=$(kubectl -n local-path-storage get pod -l app.kubernetes.io/name=local-path-provisioner-agent \
  -o jsonpath='{.items[0].metadata.name}')
doc docs/sizes.md <<'C'
kubectl -n local-path-storage get pods -l app.kubernetes.io/name=local-path-provisioner-agent -o wide
C
says "$LPP_E2E_NODE"
doc docs/sizes.md <<'C'
kubectl -n local-path-storage exec AGENT_POD -- local-path-provisioner node usage --base BASE_PATH
C
says ' free, '
# On a node without an agent, with ctr at this node's containerd.
export CONTAINERD_ADDRESS=$LPP_E2E_STATE/node/containerd.sock CONTAINERD_SNAPSHOTTER=$snapshotter
doc docs/sizes.md <<'C'
sudo mkdir -p /mnt/image
C
doc docs/sizes.md <<'C'
sudo ctr -n k8s.io images mount registry.example.com/storage/local-path-provisioner:v0.1.0 /mnt/image
C
doc docs/sizes.md <<'C'
sudo /mnt/image/lib64/ld-linux-x86-64.so.2 --library-path /mnt/image/lib/x86_64-linux-gnu /mnt/image/usr/bin/local-path-provisioner node usage --base BASE_PATH
C
says ' free, '
doc docs/sizes.md <<'C'
sudo ctr -n k8s.io images unmount --rm /mnt/image
C
unset CONTAINERD_ADDRESS CONTAINERD_SNAPSHOTTER

# Two volumes of which nothing but the directories is left.
claims() { # apply|delete
  for claim in data logs; do
    echo '---'
    sed "s/local-path-claim/$claim/; s/volume-test/$claim/" examples/pod-with-volume.yaml
  done | kubectl -n web "$1" -f - "${@:2}" >/dev/null
}
forget() {
  local volume volumes
  volumes=$(kubectl -n web get pvc -o jsonpath='{range .items[*]}{.spec.volumeName}{" "}{end}')
  for volume in $volumes; do
    kubectl patch pv "$volume" -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}' >/dev/null
  done
  claims delete --grace-period=1 --ignore-not-found
  # shellcheck disable=SC2086 # names
  kubectl delete pv $volumes >/dev/null
}
claims apply
kubectl -n web wait --for=condition=Ready pod/data pod/logs --timeout=180s >/dev/null
volume=$(kubectl -n web get pvc data -o jsonpath='{.spec.volumeName}')
old=$(kubectl get pv "$volume" -o jsonpath='{.spec.hostPath.path}')
forget
# Something has to change on the disk for the agent to tell all that is there before ten minutes are over,
# and to change again when it told too early: then these had volumes still.
by_hand=0
mkdir "$base/by-hand-0"
orphans() {
  [ "$(local-path-provisioner volumes --orphans | grep -c NoVolume)" = "$1" ] && return
  mv "$base/by-hand-$by_hand" "$base/by-hand-$((++by_hand))" # left to right
  sleep 3
  return 1
}
wait_until 180 'the directories to be told' kubelet orphans 2
doc docs/agents.md <<'C'
local-path-provisioner volumes --orphans
C
says 'NoVolume'
doc docs/adopt.md <<'C'
local-path-provisioner adopt --node worker-7 --all --from-records --dry-run
C
doc docs/adopt.md <<'C'
local-path-provisioner adopt --node worker-7 --all --from-records
C
says 'adopted'
claims apply
kubectl -n web wait --for=condition=Ready pod/data pod/logs --timeout=180s >/dev/null
if [ "$(kubectl -n web get pvc data -o jsonpath='{.spec.volumeName}')" != "$volume" ] ||
  [ "$(kubectl -n web exec data -- wc -l /data/started)" != '2 /data/started' ]; then
  failed=$((failed + 1))
  echo 'FAILED: the claim has not got its directory back' >&2
fi
forget
doc docs/adopt.md <<'C'
local-path-provisioner adopt --node worker-7 --path /opt/local-path-provisioner/old --claim web/data --size 10Gi
C
says 'adopted'
kubectl delete pv "$volume" >/dev/null
wait_until 180 'the directories to be told' kubelet orphans 2
doc docs/adopt.md <<'C'
local-path-provisioner sweep --node worker-7 --all --dry-run
C
[ -d "$old" ] || { failed=$((failed + 1)); echo 'FAILED: it was not dry' >&2; }
doc docs/adopt.md <<'C'
local-path-provisioner sweep --node worker-7 --path /opt/local-path-provisioner/old
C
says 'removed'
doc docs/adopt.md <<'C'
local-path-provisioner sweep --node worker-7 --all --yes
C
says 'removed'
rmdir "$base/by-hand-$by_hand"
if compgen -G "$base/pvc-*_web_*" >/dev/null; then
  failed=$((failed + 1))
  echo 'FAILED: a directory is left' >&2
fi

# A volume of a node that is gone: the node of this cluster stays.
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: PersistentVolume
metadata:
  name: lost
  annotations: {pv.kubernetes.io/provisioned-by: rancher.io/local-path}
spec:
  capacity: {storage: 128Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Delete
  storageClassName: local-path
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: web, name: lost}
  hostPath: {path: /opt/local-path-provisioner/lost}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [worker-2]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lost, namespace: web}
spec:
  storageClassName: local-path
  volumeName: lost
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 128Mi}}
YAML
wait_bound web lost
doc docs/node-lost.md <<'C'
kubectl apply -f deploy/node-lost.yaml
C
worker_2=worker-2
doc docs/node-lost.md <<'C'
local-path-provisioner release --node worker-2 --dry-run
C
says 'lost'
doc docs/node-lost.md <<'C'
local-path-provisioner release --node worker-2 --yes
C
worker_2=
kubectl -n web wait --for=delete pvc/lost --timeout=180s >/dev/null
gone pv lost
gone -f deploy/node-lost.yaml

doc docs/agents.md <<'C'
kubectl -n local-path-storage delete daemonset local-path-provisioner-agent --wait
C
# The docs' next command has 30 s, as long as the pod may take to end.
kubectl -n local-path-storage wait --for=delete pod -l app.kubernetes.io/name=local-path-provisioner-agent \
  --timeout=180s >/dev/null
doc docs/agents.md <<'C'
kubectl -n local-path-storage wait --for=delete pod -l app.kubernetes.io/name=local-path-provisioner-agent
C
doc docs/agents.md <<'C'
kubectl apply -k deploy
C
kept() { # WHAT OBJECT JSONPATH TEXT
  kubectl -n local-path-storage get "$2" -o jsonpath="$3" | grep -F -- "$4" >/dev/null && return
  failed=$((failed + 1))
  echo "FAILED: without agents it has not kept its $1" >&2
}
kept image deployment/local-path-provisioner '{.spec.template.spec.containers[0].image}' "$REGISTRY_IMAGE"
kept configuration configmap/local-path-config '{.data.config\.json}' cmdTimeoutSeconds
doc docs/agents.md <<'C'
kubectl -n local-path-storage delete serviceaccount,service,secret,configmap,role,rolebinding --ignore-not-found local-path-provisioner-agent local-path-provisioner-agents local-path-provisioner-agents-tls local-path-provisioner-agents-ca
C
doc docs/agents.md <<'C'
kubectl delete clusterrole,clusterrolebinding local-path-provisioner-agents --ignore-not-found
C
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
if kubectl get all,cm,secret,clusterrole,clusterrolebinding -A -o name | grep -v node-agents | grep 'provisioner-agent'; then
  failed=$((failed + 1))
  echo 'FAILED: this is left of agents' >&2
fi
gone -f deploy/local-path-storage.yaml
