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
kubectl -n local-path-storage rollout status deployment local-path-provisioner --timeout=180s >/dev/null
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
  holds() { # POD FILE LEAST MOST    as many MiB as dd could write
    local size
    size=$(($(kubectl exec "$1" -- stat -c %s "/data/$2") >> 20))
    [ "$size" -ge "$3" ] && [ "$size" -le "$4" ] && return
    failed=$((failed + 1))
    echo "FAILED: dd has written $size MiB, not $3 to $4" >&2
  }
  holds limited full 61 64
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
  holds limited more 32 32
  if [ "$limits" = xfs ]; then
    kubectl exec limited -- df -h /data | grep '128.0M' >/dev/null || {
      failed=$((failed + 1))
      echo "FAILED: df does not show that it has grown" >&2
    }
  fi
  # The kubelet looks every few seconds: on XFS its figures must be those of after the growth and of both files.
  stats() { # to the end of it: kubectl must not fail for want of a reader
    kubectl get --raw "/api/v1/nodes/$LPP_E2E_NODE/proxy/metrics" | awk -v limits="$limits" '
      /^kubelet_volume_stats_used_bytes[{].*"limited"/ { used = $2 }
      /^kubelet_volume_stats_capacity_bytes[{].*"limited"/ { size = $2 }
      END { exit !(used > 0 && (limits != "xfs" || (size == 134217728 && used >= 0.745 * size))) }'
  }
  wait_until 180 'what the kubelet tells of the volume' kubelet stats
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
  # A volume of the class without a limit gets one, while its pod runs.
  kubectl apply -f examples/pod-with-volume.yaml >/dev/null
  kubectl wait --for=condition=Ready pod/volume-test --timeout=180s >/dev/null
  volume=$(kubectl get pvc local-path-claim -o jsonpath='{.spec.volumeName}')
  directory=$(basename "$(kubectl get pv "$volume" -o jsonpath='{.spec.hostPath.path}')")
  if [ "$limits" = xfs ]; then
doc docs/sizes.md <<'C'
local-path-provisioner node adopt --base /opt/local-path-provisioner --path DIRECTORY --size 128Mi
C
    says 'adopted'
  else # a plain directory of btrfs cannot have one
    skipped=$((skipped + 1))
  fi
doc docs/sizes.md <<'C'
kubectl annotate pv VOLUME local.path.provisioner/quota=hard
C
  says 'annotated'
  kubectl patch storageclass local-path -p '{"allowVolumeExpansion":true}' >/dev/null
  kubectl patch pvc local-path-claim -p '{"spec":{"resources":{"requests":{"storage":"192Mi"}}}}' >/dev/null
  if [ "$limits" = xfs ]; then
    kubectl wait pvc/local-path-claim --for=jsonpath='{.status.capacity.storage}'=192Mi --timeout=180s >/dev/null
    kubectl exec volume-test -- dd if=/dev/zero of=/data/full bs=1M count=250 >/dev/null 2>&1 || true
    holds volume-test full 189 192
  else
    refused() { kubectl get events --field-selector reason=VolumeResizeFailed -o name | grep . >/dev/null; }
    wait_until 180 'the growth that would not hold to fail' kubelet refused
  fi
  kubectl delete -f examples/pod-with-volume.yaml --grace-period=1 >/dev/null
  kubectl wait --for=delete pv --all --timeout=180s >/dev/null
  if compgen -G "$LPP_E2E_STATE/limits/pvc-*" >/dev/null; then
    failed=$((failed + 1))
    echo "FAILED: the directory is left" >&2
  fi
else
  skipped=$((skipped + 12))
fi
gone -k examples/hard-quota
kubectl apply -f deploy/admission-policy.yaml >/dev/null
"$CLUSTER_DIR/limits.sh" down
