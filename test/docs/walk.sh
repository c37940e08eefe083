#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# walk.sh    Run the commands of the docs as they stand there, on a real control plane and node.
#
# The daemon runs as the docs install it: as the Deployment's pod, from an image. `doc FILE` runs the
# command that follows; `other FILE REASON` in elsewhere.sh says how one is covered that is not run here. A unit test
# (../unit/app/docs_commands_test.cpp) compares all of them with the code blocks of README.md and
# docs/, so that none is forgotten and none is kept that the docs do not have any more.
#
# Part of `make e2e`. Needs what ../e2e/cluster needs, buildah and socat, which are installed, and helm: one that is not on PATH is built from the
# modules of ../chart/helm, and without Go its commands are left out. Takes three minutes, or five. LPP_BUILD_DIR is
# CMake's build directory (build/dev).
#
# Exit: 0 every command did what it should, 1 one did not, 3 this machine cannot run it (says why, and how
# many commands are left out), which ../e2e/run.sh takes for a failure in CI. There helm must be had, too.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=test/e2e/cluster/env.sh
. "$root/test/e2e/cluster/env.sh"
# shellcheck source=test/e2e/cluster/process.sh
. "$CLUSTER_DIR/process.sh"
build=${LPP_BUILD_DIR:-$root/build/dev}
program=$build/src/local-path-provisioner
[ -x "$program" ] || die "$program is missing: build it, or set LPP_BUILD_DIR"
passed=0 failed=0 skipped=0 result=1
left_out() { # REASON
  echo "skipped: docs: $1"
  echo "docs: 0 passed, 0 failed, $(cat "$here/walk.sh" "$here/limits.sh" "$here/agents.sh" | grep -c '^doc ') skipped"
  result=3
  exit 3
}
if [ "${LPP_E2E_NO_INSTALL:-}" != 1 ]; then
  "$CLUSTER_DIR/install-deps.sh" docs || left_out 'the packages of the docs cannot be installed, see above'
fi
for tool in buildah socat jq; do
  command -v "$tool" >/dev/null || left_out "there is no $tool (Debian package $tool)"
done
# shellcheck disable=SC2317 # the trap calls it
finish() {
  trap - EXIT
  buildah rmi "$IMAGE" "$REGISTRY_IMAGE" >/dev/null 2>&1 || true
  if [ "$result" = 0 ]; then "$CLUSTER_DIR/down.sh" --wipe; else "$CLUSTER_DIR/down.sh"; fi
  exit "$result"
}
version=v$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
IMAGE=local-path-provisioner:$version
REGISTRY_IMAGE=registry.example.com/storage/local-path-provisioner:$version
trap finish EXIT
trap 'exit 130' INT TERM

# What stands for the words in capitals of the docs.
filled_in() {
  local text
  text=$(cat)
  text=${text//RELEASE/local-path-provisioner}
  text=${text//-n NAMESPACE CLAIM/-n web data}
  text=${text//local-path-provisioner:NEW/local-path-provisioner:$version}
  text=${text//worker-2/${worker_2:-$LPP_E2E_NODE}}
  text=${text//worker-7/$LPP_E2E_NODE}
  text=${text//\/mnt\/disks/$LPP_E2E_STATE/volumes}
  text=${text//\/usr\/local\/bin/$work/bin}
  text=${text//\/dev\/sdb/${sdb:-}}
  text=${text//\/opt\/local-path-provisioner\/old/${old:-}}
  text=${text//\/opt\/local-path-provisioner/$LPP_E2E_STATE/limits}
  text=${text//pv VOLUME /pv ${volume:-} }
  text=${text//AGENT_POD/${agent_pod:-}}
  text=${text//BASE_PATH/$LPP_E2E_STATE/volumes}
  text=${text//\/mnt\/image/$LPP_E2E_STATE/node/image}
  text=${text//--path DIRECTORY/--path ${directory:-}}
  printf '%s\n' "$text"
}
expected=0 # the exit code that the next command should have
doc() { # FILE, and the command on standard input
  local command code=0
  command=$(filled_in)
  case $command in
    helm\ * | *app.kubernetes.io/instance=*) # what a release has made
      command -v helm >/dev/null || { skipped=$((skipped + 1)); echo "skipped, no helm: $command"; return; } ;;
  esac
  (set -o pipefail; eval "$command") >"$work/output" 2>&1 </dev/null || code=$?
  if [ "$code" = "$expected" ]; then
    passed=$((passed + 1))
    printf '%s $ %s\n' "$1" "$command"
    head -n 4 "$work/output" | cut -c 1-150 | sed 's/^/    /'
  else
    failed=$((failed + 1))
    printf 'FAILED, exit code %s: %s $ %s\n' "$code" "$1" "$command" >&2
    tail -n 20 "$work/output" >&2
  fi
  expected=0
}
other() { cat >/dev/null; } # FILE REASON, and the command on standard input: it is not run here
says() { # TEXT    the last command must have said that
  if ! grep -qF -- "$1" "$work/output"; then
    failed=$((failed + 1))
    printf 'FAILED: the command above does not say "%s"\n' "$1" >&2
    tail -n 20 "$work/output" >&2
  fi
}
sudo() { "$@"; }
# Pods of this node reach no Service address: there is no kube-proxy.
reach_api() {
  kubectl -n local-path-storage set env deployment/local-path-provisioner \
    KUBERNETES_SERVICE_HOST="${POD_SUBNET%.*}.1" KUBERNETES_SERVICE_PORT="$PORT_FOR_PODS" >/dev/null
}
# 180 s, here and below: a pod of the examples takes its 30 s of grace to end, what waits for that comes after
# it, and the machine may be busy.
wait_bound() { # NAMESPACE CLAIM
  kubectl -n "$1" wait --for=jsonpath='{.status.phase}'=Bound pvc "$2" --timeout=180s >/dev/null
}
gone() { # what was made for one way to install it
  kubectl delete "$@" --ignore-not-found --wait --timeout=180s >/dev/null
}
volumes_gone() { # NAMESPACE    those of its claims, which are not there any more
  kubectl get pv -o jsonpath="{range .items[?(@.spec.claimRef.namespace==\"$1\")]}pv/{.metadata.name} {end}" |
    xargs -r kubectl wait --for=delete --timeout=180s >/dev/null
}

# e2e demands them in CI.
for step in "up.sh --fresh" "node.sh up"; do
  code=0
  # shellcheck disable=SC2086 # words
  "$CLUSTER_DIR"/$step || code=$?
  if [ "$code" = 3 ]; then left_out 'there is no real node here, see above'; fi
  [ "$code" = 0 ] || die "$step failed"
done
PORT_FOR_PODS=$((LPP_E2E_PORT_BASE + 10))
start socat socat "TCP-LISTEN:$PORT_FOR_PODS,fork,reuseaddr" "TCP:127.0.0.1:$PORT_API"
work=$LPP_E2E_STATE/walk
mkdir -p "$work/bin" "$work/clusters/prod" "$work/overlay" "$work/build/release/src"
ln -s "$BIN/kubectl" "$work/bin/"
ln -s "$program" "$work/build/release/src/local-path-provisioner"
export PATH=$work/bin:$PATH KUBECONFIG=$ADMIN_KUBECONFIG
cp -r "$root/deploy" "$root/examples" "$work/"
cd "$work"
if ! command -v helm >/dev/null && command -v go >/dev/null; then
  (cd "$root/test/chart/helm" && go build -mod=readonly -o "$work/bin/helm" helm.sh/helm/v3/cmd/helm) ||
    echo 'helm cannot be built: its commands are left out' >&2
fi
if [ "${CI:-}" = true ] && ! command -v helm >/dev/null; then die 'there is no helm; in CI that is a failure'; fi
# "Set the directories of your nodes": not those of this machine.
sed -i "s|/opt/local-path-provisioner|$LPP_E2E_STATE/volumes|" deploy/local-path-storage.yaml \
  deploy/admission-policy.yaml
sed -i "s|worker-2|$LPP_E2E_NODE|" examples/move-volume.yaml
for folder in overlay clusters/prod; do cp -r deploy "$folder/"; done

# ---- the image and the program ---------------------------------------------------------------------
# The same files as `make image` puts together, built in seconds.
"$root/scripts/collect-runtime.sh" "$program" "$work/rootfs"
container=$(buildah from scratch) || left_out 'buildah makes no image here, see above'
buildah add -q "$container" "$work/rootfs" / >/dev/null
buildah config --user 65532:65532 --env PATH=/usr/bin --entrypoint '["local-path-provisioner"]' \
  --cmd start "$container"
buildah commit -q "$container" "$IMAGE" >/dev/null
buildah rm "$container" >/dev/null
buildah tag "$IMAGE" "$REGISTRY_IMAGE"
# As `make load` brings it to the nodes; the real containerd stands for that of kind and K3s.
snapshotter=$(ctr --address "$LPP_E2E_STATE/node/containerd.sock" plugins ls |
  awk '$1 ~ /snapshotter/ && $NF == "ok" && ($2 == "overlayfs" || $2 == "native") { print $2; exit }')
import="exec ctr --address $LPP_E2E_STATE/node/containerd.sock -n k8s.io images import --snapshotter $snapshotter"
cat >"$work/bin/k3s" <<SH
#!/bin/sh
[ "\$1 \$2 \$3 \$#" = "ctr images import 4" ] || exit 2
$import "\$4"
SH
cat >"$work/bin/kind" <<SH
#!/bin/sh
[ "\$1 \$2 \$4 \$5 \$#" = "load image-archive --name kind 5" ] || exit 2
$import "\$3"
SH
chmod +x "$work/bin/k3s" "$work/bin/kind"
"$root/scripts/load-image.sh" k3s >>"$LOG/import.log"
IMAGE=$REGISTRY_IMAGE "$root/scripts/load-image.sh" kind >>"$LOG/import.log"
doc docs/install.md <<'C'
sudo install build/release/src/local-path-provisioner /usr/local/bin/
C
doc docs/install.md <<'C'
sudo ln -s local-path-provisioner /usr/local/bin/kubectl-local_path
C
doc docs/install.md <<'C'
sudo ln -s local-path-provisioner /usr/local/bin/kubectl_complete-local_path
C
doc docs/install.md <<'C'
source <(local-path-provisioner completion bash)
C

# ---- manifest --------------------------------------------------------------------------------------
doc docs/install.md <<'C'
local-path-provisioner check -f deploy/local-path-storage.yaml
C
doc docs/install.md <<'C'
kubectl apply -f deploy/local-path-storage.yaml
C
reach_api
doc docs/install.md <<'C'
kubectl -n local-path-storage rollout status deployment local-path-provisioner
C
# In force for all helper pods that follow.
doc docs/install.md <<'C'
kubectl apply -f deploy/admission-policy.yaml -f deploy/network-policy.yaml
C
outside='{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "outside"}, "spec": {"containers":
  [{"name": "a", "image": "b"}], "volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]}}'
wait_until 180 'the admission policy to be in force' kube-apiserver bash -c \
  "! kubectl -n local-path-storage create --dry-run=server -f - <<<'$outside' 2>/dev/null"
doc docs/install.md <<'C'
local-path-provisioner check
C
says 'Result:    ok'
doc docs/install.md <<'C'
kubectl apply -f examples/pod-with-volume.yaml
C
wait_bound default local-path-claim
doc docs/install.md <<'C'
local-path-provisioner volumes
C
says 'local-path-claim'
says 'Bound'
doc docs/sizes.md <<'C'
kubectl patch storageclass local-path -p '{"allowVolumeExpansion":true}'
C
doc docs/sizes.md <<'C'
kubectl patch pvc local-path-claim -p '{"spec":{"resources":{"requests":{"storage":"256Mi"}}}}'
C
# The docs' next command has 30 s, which may be too few for a busy machine.
kubectl wait pvc/local-path-claim --for=jsonpath='{.status.capacity.storage}'=256Mi --timeout=180s >/dev/null
doc docs/sizes.md <<'C'
kubectl wait pvc/local-path-claim --for=jsonpath='{.status.capacity.storage}'=256Mi
C
doc docs/install.md <<'C'
kubectl annotate storageclass local-path storageclass.kubernetes.io/is-default-class=true
C

# ---- ask and operate -------------------------------------------------------------------------------
kubectl create namespace web >/dev/null
sed "s/local-path-claim/data/; s/volume-test/writer/" examples/pod-with-volume.yaml | kubectl -n web apply -f - >/dev/null
wait_bound web data
doc README.md <<'C'
kubectl apply -f deploy/local-path-storage.yaml
C
doc README.md <<'C'
local-path-provisioner volumes -n web data
C
says 'Bound'
doc README.md <<'C'
local-path-provisioner history --since 12h
C
says 'volume provisioned'
doc README.md <<'C'
local-path-provisioner check
C
doc docs/troubleshoot.md <<'C'
local-path-provisioner volumes -n NAMESPACE CLAIM
C
doc docs/troubleshoot.md <<'C'
local-path-provisioner check
C
doc docs/operate.md <<'C'
local-path-provisioner volumes -A
C
says 'web'
# By the links of docs/install.md, kubectl completes the command, and the names in the cluster.
kubectl __complete local-path volumes -n web d >"$work/output" 2>/dev/null || true
says 'data'
for key in config.json helperPod.yaml; do
  kubectl -n local-path-storage get configmap local-path-config -o json | jq -r ".data[\"$key\"]" >"$key"
done
doc docs/configure.md <<'C'
local-path-provisioner check --config config.json --helper-pod-file helperPod.yaml
C
doc docs/configure.md <<'C'
local-path-provisioner explain-path web/data --node worker-2 --config config.json
C
echo 'resources: [deploy]' >clusters/prod/kustomization.yaml
doc docs/operate.md <<'C'
kubectl kustomize clusters/prod | local-path-provisioner check --strict -f -
C
ln -s bin/local-path-provisioner .
doc docs/operate.md <<'C'
./local-path-provisioner version
C
doc docs/operate.md <<'C'
./local-path-provisioner check
C
doc docs/operate.md <<'C'
kubectl -n local-path-storage set image deployment/local-path-provisioner local-path-provisioner=registry.example.com/storage/local-path-provisioner:NEW
C
doc docs/operate.md <<'C'
kubectl -n local-path-storage rollout status deployment local-path-provisioner
C
doc docs/operate.md <<'C'
./local-path-provisioner volumes -A
C
says 'Bound'
# The next command takes the first one that is listed.
wait_until 180 'the former provisioner to end' kubelet sh -c \
  'kubectl -n local-path-storage get pod -l app.kubernetes.io/name=local-path-provisioner -o name | wc -l | grep -x 1'
doc docs/operate.md <<'C'
kubectl -n local-path-storage debug -it --image=busybox:stable --target=local-path-provisioner "$(kubectl -n local-path-storage get pod -l app.kubernetes.io/name=local-path-provisioner -o name | head -n 1)" -- kill -USR2 1
C
wait_until 180 'the debug lines to be switched on' kubelet sh -c \
  'kubectl -n local-path-storage logs deployment/local-path-provisioner -c local-path-provisioner | grep "each step is logged"'
# Stand-ins for the kinds of the Prometheus operator.
for kind in PodMonitor PrometheusRule; do
  plural=$(tr '[:upper:]' '[:lower:]' <<<"${kind}s")
  jq -n --arg kind "$kind" --arg plural "$plural" '{apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition", metadata: {name: "\($plural).monitoring.coreos.com"},
    spec: {group: "monitoring.coreos.com", scope: "Namespaced",
      names: {kind: $kind, plural: $plural, singular: ($kind | ascii_downcase)},
      versions: [{name: "v1", served: true, storage: true, schema: {openAPIV3Schema:
        {type: "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}' | kubectl apply -f - >/dev/null
done
kubectl wait --for=condition=Established crd --all --timeout=180s >/dev/null
doc docs/metrics.md <<'C'
kubectl apply -f deploy/monitoring/podmonitor.yaml -f deploy/monitoring/prometheusrule.yaml
C
if port_free 8080; then
  start forward kubectl -n local-path-storage port-forward deployment/local-path-provisioner 8080
  wait_until 180 'the forwarded port' forward curl -s localhost:8080/readyz
doc docs/runbook.md <<'C'
curl 'localhost:8080/readyz?verbose'
C
  says 'readyz check passed'
  stop forward
fi

# ---- back up, and move by hand -----------------------------------------------------------------------
kubectl -n web wait --for=condition=Ready pod/writer --timeout=180s >/dev/null
kubectl -n web exec writer -- sh -c 'mkdir -m 2750 /data/deep && echo kept >/data/deep/file && ln -s deep/file /data/link'
doc docs/backup.md <<'C'
kubectl -n web exec writer -- tar -C /data -czf - . >data.tar.gz
C
kubectl -n web exec writer -- rm -rf /data/deep /data/link
doc docs/backup.md <<'C'
kubectl -n web exec -i writer -- tar -C /data -xzpf - <data.tar.gz
C
check_copy() { # POD
  [ "$(kubectl -n web exec "$1" -- sh -c 'cat /data/link; stat -c %a /data/deep')" = $'kept\n2750' ] || {
    failed=$((failed + 1))
    echo "FAILED: the copy in $1 is not the same" >&2
  }
}
check_copy writer
doc docs/nodes.md <<'C'
kubectl -n web apply -f examples/move-volume.yaml
C
doc docs/nodes.md <<'C'
kubectl -n web wait --for=condition=Ready pod/move-from pod/move-to --timeout=2m
C
doc docs/nodes.md <<'C'
kubectl -n web exec move-from -- tar -C /data -cf - . | kubectl -n web exec -i move-to -- tar -C /data -xpf -
C
doc docs/nodes.md <<'C'
kubectl -n web exec move-from -- sh -c 'cd /data && find . -type f -exec md5sum {} + | sort' >before
C
doc docs/nodes.md <<'C'
kubectl -n web exec move-to -- sh -c 'cd /data && find . -type f -exec md5sum {} + | sort' | diff before -
C
check_copy move-to
gone -n web pod/move-from pod/move-to pvc/data-new
wait_until 180 'the volume of data-new to be gone' kubelet sh -c '! kubectl get pv | grep data-new >/dev/null'

# ---- migrating -------------------------------------------------------------------------------------
doc docs/migrating.md <<'C'
kubectl get pvc -A | grep -v Bound
C
expected=1 # there is none
doc docs/migrating.md <<'C'
kubectl get pv | grep -E 'Released|Failed|Terminating'
C
doc docs/migrating.md <<'C'
kubectl -n local-path-storage get pods
C
doc docs/migrating.md <<'C'
kubectl -n local-path-storage scale deployment local-path-provisioner --replicas=0
C
doc docs/migrating.md <<'C'
kubectl -n local-path-storage wait --for=delete pod -l app=local-path-provisioner --timeout=2m
C
doc docs/migrating.md <<'C'
kubectl -n local-path-storage get configmap local-path-config -o yaml >config-before.yaml
C
expected=1 # there are differences
doc docs/migrating.md <<'C'
kubectl diff -f deploy/local-path-storage.yaml
C
doc docs/migrating.md <<'C'
kubectl apply -f deploy/local-path-storage.yaml
C
doc docs/migrating.md <<'C'
kubectl -n local-path-storage rollout status deployment local-path-provisioner
C
doc docs/migrating.md <<'C'
kubectl -n local-path-storage logs deployment/local-path-provisioner
C
kubectl delete -f examples/pod-with-volume.yaml >/dev/null
doc docs/migrating.md <<'C'
kubectl apply -f examples/pod-with-volume.yaml
C
wait_bound default local-path-claim
doc docs/migrating.md <<'C'
kubectl delete -f examples/pod-with-volume.yaml
C
volumes_gone default # it is not stopped here, and finishes what the command lists
doc docs/migrating.md <<'C'
kubectl get pv -o jsonpath='{range .items[?(@.metadata.annotations.pv\.kubernetes\.io/provisioned-by=="rancher.io/local-path")]}{.metadata.name}{"\n"}{end}' | xargs -I{} kubectl patch pv {} --type=strategic -p '{"metadata":{"$deleteFromPrimitiveList/finalizers":["external-provisioner.volume.kubernetes.io/finalizer"]}}'
C
gone -n web pod/writer pvc/data
kubectl wait --for=delete pv --all --timeout=180s >/dev/null
# As kind leaves it: another provisioner under this name in this namespace, with the class standard.
kubectl delete -f deploy/local-path-storage.yaml --wait >/dev/null
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: local-path-storage}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: local-path-config, namespace: local-path-storage}
data:
  config.json: '{"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/var/local-path-provisioner"]}]}'
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: local-path-provisioner, namespace: local-path-storage}
spec:
  selector: {matchLabels: {app: local-path-provisioner}}
  template:
    metadata: {labels: {app: local-path-provisioner}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: local-path-provisioner, image: "registry.example.com/former:1"}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
YAML
doc docs/install.md <<'C'
kubectl -n local-path-storage delete deployment local-path-provisioner
C
kubectl apply -f deploy/local-path-storage.yaml >/dev/null
reach_api
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
sed '/storageClassName/d' examples/pod-with-volume.yaml | kubectl apply -f - >/dev/null # the default class
wait_bound default local-path-claim
kubectl delete -f examples/pod-with-volume.yaml --wait >/dev/null
kubectl wait --for=delete pv --all --timeout=180s >/dev/null
kubectl delete storageclass standard >/dev/null
doc docs/install.md <<'C'
kubectl delete -f deploy/local-path-storage.yaml
C
gone namespace local-path-storage # it is on its way

# ---- kustomize and Helm ----------------------------------------------------------------------------
awk '/^## Kustomize/ { on = 1 } on && /^```$/ { exit } yaml { print } on && /^```yaml/ { yaml = 1 }' \
  "$root/docs/install.md" >overlay/kustomization.yaml
cd overlay
doc docs/install.md <<'C'
kubectl kustomize . | local-path-provisioner check -f -
C
doc docs/install.md <<'C'
kubectl apply -k .
C
reach_api
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
gone -k .
cd "$work"
# The overlay for K3s; its directory is not used on this machine.
mkdir k3s
cp -r deploy k3s/
awk '/^## K3s/ { on = 1 } on && yaml && /^ *```$/ { exit } yaml { print } on && /^ *```yaml/ { yaml = 1 }' \
  "$root/docs/migrating.md" | sed 's/^   //' >k3s/kustomization.yaml
kubectl apply -k k3s >/dev/null
reach_api
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
local-path-provisioner check >/dev/null || { failed=$((failed + 1)); local-path-provisioner check || true; }
gone -k k3s
. "$root/test/docs/limits.sh"
doc docs/capacity.md <<'C'
kubectl apply -k examples/free-space
C
reach_api
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
local-path-provisioner check >/dev/null || { failed=$((failed + 1)); local-path-provisioner check || true; }
gone -k examples/free-space
kubectl delete csidriver local-path-capacity --ignore-not-found >/dev/null
. "$root/test/docs/agents.sh"
doc docs/install.md <<'C'
kubectl create namespace local-path-storage
C
doc docs/install.md <<'C'
kubectl label namespace local-path-storage pod-security.kubernetes.io/enforce=privileged
C
doc docs/install.md <<'C'
helm -n local-path-storage install local-path-provisioner deploy/chart/local-path-provisioner --set image.repository=registry.example.com/storage/local-path-provisioner
C
if command -v helm >/dev/null; then
  reach_api
  kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
  local-path-provisioner check >/dev/null || { failed=$((failed + 1)); local-path-provisioner check || true; }
fi
doc docs/migrating.md <<'C'
helm -n local-path-storage get values RELEASE -o yaml >values.yaml
C
doc docs/migrating.md <<'C'
kubectl -n local-path-storage scale deployment -l app.kubernetes.io/instance=RELEASE --replicas=0
C
doc docs/migrating.md <<'C'
helm -n local-path-storage upgrade RELEASE deploy/chart/local-path-provisioner -f values.yaml
C
# Beside another one, which K3s has in a namespace of its own.
if command -v helm >/dev/null; then helm -n local-path-storage uninstall local-path-provisioner --wait >/dev/null; fi
doc docs/install.md <<'C'
helm -n local-path-storage install disks deploy/chart/local-path-provisioner --set storageClass.name=disks --set 'nodePathMap[0].node=DEFAULT_PATH_FOR_NON_LISTED_NODES' --set 'nodePathMap[0].paths={/mnt/disks}'
C
if command -v helm >/dev/null; then
  kubectl -n local-path-storage set env deployment/disks-local-path-provisioner \
    KUBERNETES_SERVICE_HOST="${POD_SUBNET%.*}.1" KUBERNETES_SERVICE_PORT="$PORT_FOR_PODS" >/dev/null
  kubectl -n local-path-storage rollout status deployment disks-local-path-provisioner --timeout=180s >/dev/null
  sed 's/storageClassName: .*/storageClassName: disks/' examples/pod-with-volume.yaml | kubectl apply -f - >/dev/null
  wait_bound default local-path-claim
  local-path-provisioner check >/dev/null || { failed=$((failed + 1)); local-path-provisioner check || true; }
  kubectl delete -f examples/pod-with-volume.yaml --wait >/dev/null
  kubectl wait --for=delete pv --all --timeout=180s >/dev/null
  helm -n local-path-storage uninstall disks --wait >/dev/null
  kubectl delete -f deploy/admission-policy.yaml >/dev/null
  gone namespace local-path-storage
fi
# In two namespaces, with the policy of the release.
doc docs/install.md <<'C'
helm -n local-path-provisioner install local-path-provisioner deploy/chart/local-path-provisioner --create-namespace --set helperNamespace.name=local-path-storage --set helperNamespace.create=true --set admissionPolicy.enabled=true --set image.repository=registry.example.com/storage/local-path-provisioner
C
if ! command -v helm >/dev/null; then kubectl create namespace local-path-provisioner >/dev/null; fi
doc docs/install.md <<'C'
kubectl label namespace local-path-provisioner pod-security.kubernetes.io/enforce=restricted
C
if command -v helm >/dev/null; then
  helm -n local-path-provisioner upgrade local-path-provisioner deploy/chart/local-path-provisioner --reuse-values \
    --set 'nodePathMap[0].node=DEFAULT_PATH_FOR_NON_LISTED_NODES' \
    --set "nodePathMap[0].paths={$LPP_E2E_STATE/volumes}" >/dev/null
  kubectl -n local-path-provisioner set env deployment/local-path-provisioner \
    KUBERNETES_SERVICE_HOST="${POD_SUBNET%.*}.1" KUBERNETES_SERVICE_PORT="$PORT_FOR_PODS" >/dev/null
  kubectl -n local-path-provisioner rollout status deployment local-path-provisioner --timeout=180s >/dev/null
  kubectl apply -f examples/pod-with-volume.yaml >/dev/null
  wait_bound default local-path-claim
  local-path-provisioner check >/dev/null || { failed=$((failed + 1)); local-path-provisioner check || true; }
fi

. "$root/test/docs/elsewhere.sh"

echo "docs: $passed passed, $failed failed, $skipped skipped"
[ "$failed" != 0 ] || result=0
