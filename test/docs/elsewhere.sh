# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by walk.sh: the commands of the docs that it does not run, each with how it is covered.

# ---- README.md
other README.md 'needs kind; walk.sh runs the script with a real containerd in its place' <<'C'
make load TO=kind
C
other README.md 'by hand on a fresh Debian 12, before a release' <<'C'
make demo
C
other README.md '.ci/run' <<'C'
make test
C

# ---- docs/install.md
other docs/install.md 'test/image/run.sh' <<'C'
make image IMAGE=registry.example.com/storage/local-path-provisioner:v0.1.0
C
other docs/install.md 'no registry here; into an archive instead, below' <<'C'
buildah push registry.example.com/storage/local-path-provisioner:v0.1.0
C
other docs/install.md 'needs kind and docker' <<'C'
kind create cluster
C
other docs/install.md 'needs kind; walk.sh runs the script with a real containerd in its place' <<'C'
make load TO=kind
C
other docs/install.md 'needs k3d' <<'C'
k3d cluster create --k3s-arg '--disable=local-storage@server:*'
C
other docs/install.md 'needs k3d; the script is that of kind' <<'C'
make load TO=k3d
C
other docs/install.md 'needs OpenShift; test/chart/dry-run.sh asks a real API server' <<'C'
oc apply -k examples/openshift
C
other docs/install.md 'test/image/run.sh' <<'C'
make image
C
other docs/install.md 'needs docker and a registry' <<'C'
docker pull rancher/library-busybox:1.32.1
C
other docs/install.md 'needs docker and a registry' <<'C'
docker save -o images.tar local-path-provisioner:v0.1.0 rancher/library-busybox:1.32.1
C
other docs/install.md 'as above, with names of its own' <<'C'
buildah push local-path-provisioner:v0.1.0 docker-archive:image.tar:docker.io/library/local-path-provisioner:v0.1.0
C
other docs/install.md 'needs a registry' <<'C'
buildah pull docker.io/rancher/library-busybox:1.32.1
C
other docs/install.md 'needs a registry' <<'C'
buildah push docker.io/rancher/library-busybox:1.32.1 docker-archive:busybox.tar:docker.io/rancher/library-busybox:1.32.1
C
other docs/install.md 'needs a registry' <<'C'
buildah manifest push --all registry.example.com/storage/local-path-provisioner:v0.1.0 docker://registry.example.com/storage/local-path-provisioner:v0.1.0
C
other docs/install.md 'needs the emulator of another architecture' <<'C'
make image PLATFORM=linux/amd64,linux/arm64 IMAGE=registry.example.com/storage/local-path-provisioner:v0.1.0
C

# ---- docs/sizes.md: test/quota takes them from the page, so that they are these
other docs/sizes.md 'test/quota/run.sh' <<'C'
mkfs.xfs /dev/sdb
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
mkdir -p /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
mount -o prjquota /dev/sdb /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
findmnt /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
local-path-provisioner node make --base /mnt/disk --path data --size 64Mi --quota hard
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
dd if=/dev/zero of=/mnt/disk/data/full bs=1M count=200
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
df -h /mnt/disk/data
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
mkfs.ext4 -O project,quota -E quotatype=prjquota /dev/sdb
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
umount /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
tune2fs -O project,quota -Q prjquota /dev/sdb
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
setpriv --bounding-set -sys_resource dd if=/dev/zero of=/mnt/disk/data/full bs=1M count=200
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
mkfs.btrfs /dev/sdb
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
mount /dev/sdb /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
btrfs quota enable /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
btrfs quota rescan -w /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
btrfs qgroup show -r /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
local-path-provisioner node usage --base /mnt/disk
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
local-path-provisioner node resize --base /mnt/disk --path data --size 128Mi --quota hard
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
local-path-provisioner node list --base /mnt/disk --json
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
local-path-provisioner node remove --base /mnt/disk --path data
C
other docs/sizes.md 'test/quota/run.sh' <<'C'
local-path-provisioner node adopt --base /mnt/disk --path old --size 64Mi
C

# ---- docs/runbook.md
other docs/runbook.md 'in the background, the line above' <<'C'
kubectl -n local-path-storage port-forward deployment/local-path-provisioner 8080
C

# ---- deploy/chart/local-path-provisioner/README.md
other deploy/chart/local-path-provisioner/README.md 'the same as in docs/install.md' <<'C'
kubectl create namespace local-path-storage
C
other deploy/chart/local-path-provisioner/README.md 'the same as in docs/install.md' <<'C'
kubectl label namespace local-path-storage pod-security.kubernetes.io/enforce=privileged
C
other deploy/chart/local-path-provisioner/README.md 'as in docs/install.md, with another image' <<'C'
helm -n local-path-storage install local-path-provisioner deploy/chart/local-path-provisioner --set image.repository=registry.example.com/local-path-provisioner
C

# ---- CONTRIBUTING.md
other CONTRIBUTING.md '.ci/run' <<'C'
make test
C
other CONTRIBUTING.md '.ci/run' <<'C'
make lint
C
other CONTRIBUTING.md '.ci/run' <<'C'
make e2e
C
other CONTRIBUTING.md '.ci/run' <<'C'
cmake --preset dev
C
other CONTRIBUTING.md '.ci/run builds all' <<'C'
cmake --build --preset dev --target provisioner_test story_test
C
other CONTRIBUTING.md '.ci/run runs them whole' <<'C'
build/dev/test/unit/provisioner_test --source-file='*/claim_decision_test.cpp'
C
other CONTRIBUTING.md '.ci/run runs them whole' <<'C'
build/dev/test/integration/story_test --test-case='a claim may ask for a volume of type local*'
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
cmake --preset dev -B build/debug -DCMAKE_CXX_FLAGS_DEBUG='-O0 -g'
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
cmake --build build/debug --target local-path-provisioner
C
other CONTRIBUTING.md '.ci/run builds all' <<'C'
cmake --build --preset dev --target lpp-devcluster
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
build/dev/test/devcluster/lpp-devcluster --kubeconfig-out /tmp/kubeconfig
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
export KUBECONFIG=/tmp/kubeconfig
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
kubectl apply -f deploy/local-path-storage.yaml
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
gdb --args build/debug/src/local-path-provisioner --debug start --kubeconfig /tmp/kubeconfig
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
chmod +x /tmp/daemon-in-gdb
C
other CONTRIBUTING.md 'by hand: it is for a person at a debugger' <<'C'
LPP_DAEMON=/tmp/daemon-in-gdb LPP_KEEP_TEMP=1 build/dev/test/integration/story_test --test-case='a claim may ask for a volume of type local*pods'
C

# ---- docs/performance.md
other docs/performance.md 'by hand: its results are the page' <<'C'
make bench
C
other docs/performance.md 'by hand: its results are the page' <<'C'
PEER_BIN=/path/to/other make bench BENCH_FLAGS="--full --repeat 5"
C
other docs/performance.md 'by hand: its result is on the page' <<'C'
test/bench/plot.py build/bench/runs.jsonl docs/performance.svg
C

# ---- docs/nodes.md
other docs/nodes.md 'needs a machine with SELinux' <<'C'
semanage fcontext -a -t container_file_t '/opt/local-path-provisioner(/.*)?'
C
other docs/nodes.md 'needs a machine with SELinux' <<'C'
restorecon -R /opt/local-path-provisioner
C

# ---- docs/backup.md
other docs/backup.md 'test/e2e/restored.sh, where the provisioner is a process' <<'C'
kubectl -n local-path-storage rollout restart deployment local-path-provisioner
C
other docs/backup.md 'needs Velero and an object store' <<'C'
velero install --use-node-agent --provider aws --plugins velero/velero-plugin-for-aws:VERSION --bucket BUCKET --secret-file CREDENTIALS --use-volume-snapshots=false
C
other docs/backup.md 'needs Velero and an object store' <<'C'
velero backup create web --include-namespaces web --default-volumes-to-fs-backup
C
other docs/backup.md 'needs Velero and an object store' <<'C'
velero restore create --from-backup web
C

# ---- docs/agents.md
other docs/agents.md 'test/chart/dry-run.sh asks a real API server; an agent of the manifest runs here' <<'C'
helm -n local-path-storage upgrade local-path-provisioner deploy/chart/local-path-provisioner --reuse-values --set agents.enabled=true
C
other docs/agents.md 'test/unit/cli/check_agents_test.cpp, of what test/chart compares' <<'C'
kubectl kustomize examples/node-agents-with-limits | local-path-provisioner check -f -
C
other docs/agents.md 'test/chart/dry-run.sh asks a real API server; limits by agents: test/e2e/node_quota_test.cpp' <<'C'
kubectl apply -k examples/node-agents-with-limits
C
other docs/agents.md 'ctest: demo.agents' <<'C'
make demo-agents
C
other docs/agents.md 'docs/runbook.md has it, too' <<'C'
kubectl -n local-path-storage port-forward deployment/local-path-provisioner 8080
C

# ---- test/e2e/cluster/README.md
other test/e2e/cluster/README.md 'test/e2e/run.sh does the same' <<'C'
test/e2e/cluster/install-deps.sh && test/e2e/cluster/up.sh && test/e2e/cluster/node.sh up
C
other test/e2e/cluster/README.md 'test/e2e/run.sh does the same' <<'C'
export KUBECONFIG=/tmp/lpp-e2e/admin.kubeconfig
C
other test/e2e/cluster/README.md 'test/e2e/run.sh does the same' <<'C'
/tmp/lpp-e2e/bin/kubectl get nodes
C
other test/e2e/cluster/README.md 'test/e2e/run.sh does the same' <<'C'
test/e2e/cluster/down.sh --wipe
C
