# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # walk.sh reads them
# Sourced by walk.sh: docs/sizes.md, on a disk with limits that is a file: XFS where this machine's kernel
# has its quota, else btrfs, in which `df` and the kubelet tell of the whole disk. Its first commands are
# run on an XFS by ../quota/demo.sh, too, which needs no such kernel.
limits=$("$CLUSTER_DIR/limits.sh" up) || limits=
sed -i "s|/opt/local-path-provisioner|$LPP_E2E_STATE/limits|" deploy/quota/config.yaml
# The policy of the commands above knows another directory.
sed "s|$LPP_E2E_STATE/volumes|$LPP_E2E_STATE/limits|" deploy/admission-policy.yaml | kubectl apply -f - >/dev/null
if [ "$limits" = xfs ]; then
  umount "$LPP_E2E_STATE/limits"
  truncate -s 0 "$LPP_E2E_STATE/limits.image" && truncate -s 600M "$LPP_E2E_STATE/limits.image" # as a new disk
  sdb=$(losetup --find --show "$LPP_E2E_STATE/limits.image")
doc docs/sizes.md <<'C'
sudo mkfs.xfs /dev/sdb
C
doc docs/sizes.md <<'C'
sudo mkdir -p /opt/local-path-provisioner
C
doc docs/sizes.md <<'C'
sudo mount -o prjquota /dev/sdb /opt/local-path-provisioner
C
else
  skipped=$((skipped + 3))
  echo "skipped: XFS with quota cannot be mounted here; ${limits:-nothing that holds limits} in its place"
fi
doc docs/sizes.md <<'C'
kubectl apply -k examples/hard-quota
C
reach_api
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=60s >/dev/null
if [ -n "$limits" ]; then
doc docs/sizes.md <<'C'
kubectl apply -f examples/pod-with-limit.yaml
C
doc docs/sizes.md <<'C'
kubectl wait --for=condition=Ready pod/limited --timeout=2m
C
expected=1
doc docs/sizes.md <<'C'
kubectl exec limited -- dd if=/dev/zero of=/data/full bs=1M count=200
C
  holds() { # FILE LEAST MOST    as many MiB as dd could write
    local size
    size=$(($(kubectl exec limited -- stat -c %s "/data/$1") >> 20))
    [ "$size" -ge "$2" ] && [ "$size" -le "$3" ] && return
    failed=$((failed + 1))
    echo "FAILED: dd has written $size MiB, not $2 to $3" >&2
  }
  holds full 61 64
doc docs/sizes.md <<'C'
kubectl exec limited -- df -h /data
C
  if [ "$limits" = xfs ]; then says '64.0M'; fi
doc docs/sizes.md <<'C'
kubectl patch pvc limited -p '{"spec":{"resources":{"requests":{"storage":"128Mi"}}}}'
C
doc docs/sizes.md <<'C'
kubectl wait pvc/limited --for=jsonpath='{.status.capacity.storage}'=128Mi --timeout=2m
C
doc docs/sizes.md <<'C'
kubectl exec limited -- dd if=/dev/zero of=/data/more bs=1M count=32
C
  holds more 32 32
  if [ "$limits" = xfs ]; then
    kubectl exec limited -- df -h /data | grep '128.0M' >/dev/null || {
      failed=$((failed + 1))
      echo "FAILED: df does not show that it has grown" >&2
    }
  fi
  stats() { # to the end of it: kubectl must not fail for want of a reader
    kubectl get --raw "/api/v1/nodes/$LPP_E2E_NODE/proxy/metrics" |
      grep 'kubelet_volume_stats_used_bytes{.*"limited"' >/dev/null
  }
  wait_until 60 'what the kubelet tells of the volume' kubelet stats
doc docs/sizes.md <<'C'
local-path-provisioner volumes
C
  says 'limited'
  says '128Mi'
  if [ "$limits" = xfs ]; then says '75%'; fi
doc docs/sizes.md <<'C'
kubectl get --raw /api/v1/nodes/worker-2/proxy/metrics | grep 'kubelet_volume_stats_.*"limited"'
C
  says 'kubelet_volume_stats_used_bytes'
  if [ "$limits" = xfs ]; then says '1.34217728e+08'; fi
doc docs/sizes.md <<'C'
kubectl delete -f examples/pod-with-limit.yaml
C
  kubectl wait --for=delete pv --all --timeout=60s >/dev/null
  if compgen -G "$LPP_E2E_STATE/limits/pvc-*" >/dev/null; then
    failed=$((failed + 1))
    echo "FAILED: the directory is left" >&2
  fi
else
  skipped=$((skipped + 10))
fi
gone -k examples/hard-quota
kubectl apply -f deploy/admission-policy.yaml >/dev/null
"$CLUSTER_DIR/limits.sh" down
