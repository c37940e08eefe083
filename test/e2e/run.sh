#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [doctest arguments...]    Run the end-to-end tests on a real control plane.
#
# Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler (cluster/README.md) and a
# real node, applies deploy/local-path-storage.yaml, and runs the daemon as a process that has a
# token of the manifest's ServiceAccount and nothing more. Where the machine cannot run a node, a
# hollow kubelet takes its place and the tests that need directories are left out. Without arguments
# the API server is also asked about the examples and the chart (../chart/dry-run.sh), and a cluster of
# its own is restored from a backup (restored.sh). At the end its
# audit log tells whether the daemon's account asked for more than the manifest grants.
# Everything is taken down then; after a failure the logs are kept.
#
#   LPP_BUILD_DIR            CMake's build directory (build/dev)
#   LPP_E2E_EXISTING=1       contract cases only, on the cluster of $KUBECONFIG; nothing is started
#   LPP_E2E_KEEP=1           leave the cluster running
#   LPP_E2E_NO_INSTALL=1     do not install missing packages
#   LPP_CHAOS_SECONDS=N      random faults for so long, not only for 60 steps
#   LPP_CHAOS_SEED=N         another schedule of them
#   LPP_LARGE_OBJECTS=N      so many foreign objects of 1.3 MiB, not only 64
#   CI=true                  a real node is demanded
#
# Exit: 0 passed, 1 failed, 3 cannot be run on this machine (says why).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${LPP_BUILD_DIR:-$root/build/dev}
program=$build/test/e2e/e2e_test
daemon=$build/src/local-path-provisioner
hollow=$build/test/hollow/lpp-hollow-kubelet
helper=$build/test/e2e/volume-helper
rights=$build/test/integration/lpp-rights

say() { printf 'e2e: %s\n' "$*" >&2; }

# Only the settings: the functions are the cluster scripts' own.
settings() {
  bash -c '. "$1/cluster/env.sh"; printf "%s\n" "$LPP_E2E_STATE" "$LPP_E2E_NODE" "${POD_SUBNET%0/*}1"' _ "$here"
}

totals() { # LOG    doctest's line of totals in the form of the other suites
  sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
    /^\[doctest\] test cases:/ { gsub(/[^0-9]+/, " "); passed += $2; failed += $3; skipped += $4; seen = 1 }
    END { if (!seen) failed = 1
          printf "e2e: %d passed, %d failed, %d skipped\n", passed, failed, skipped }'
}

for file in "$program" "$daemon" "$hollow" "$rights"; do
  [ -x "$file" ] || { say "$file is missing: build it, or set LPP_BUILD_DIR"; exit 1; }
done

if [ "${LPP_E2E_EXISTING:-}" = 1 ]; then
  export LPP_E2E_KUBECONFIG=${KUBECONFIG:?LPP_E2E_EXISTING needs KUBECONFIG}
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "$program" --source-file="*contract_*" "$@" 2>&1 | tee "$log"
  result=${PIPESTATUS[0]}
  totals "$log"
  exit "$result"
fi

mapfile -t found < <(settings)
[ ${#found[@]} = 3 ] || exit 1
state=${found[0]}
export LPP_E2E_NODE=${found[1]}
export LPP_E2E_POD_GATEWAY=${found[2]} # at which pods reach this machine
export LPP_E2E_STATE=$state
hollow_pid='' test_pid='' result=1

# shellcheck disable=SC2317 # the trap calls it
finish() {
  trap - EXIT INT TERM
  local pid
  for pid in $test_pid $hollow_pid; do
    kill -TERM "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
  done
  if [ "${LPP_E2E_KEEP:-}" = 1 ]; then
    say "the cluster is left running: KUBECONFIG=$state/admin.kubeconfig; end it with $here/cluster/down.sh --wipe"
  elif [ "$result" = 0 ] || [ "$result" = 3 ]; then
    "$here/cluster/down.sh" --wipe >/dev/null || result=1
  else
    "$here/cluster/down.sh" || true
    say "failed; the logs are in $state/log"
  fi
  exit "$result"
}
trap finish EXIT
trap 'result=130; exit 130' INT TERM

cannot() { # what a step's exit code means for all
  result=$1
  exit "$result"
}

if [ "${LPP_E2E_NO_INSTALL:-}" != 1 ]; then "$here/cluster/install-deps.sh" || cannot $?; fi
"$here/cluster/up.sh" --fresh || cannot $?
kubectl=("$state/bin/kubectl" --kubeconfig "$state/admin.kubeconfig")

selection=()
left_out=() # patterns of test cases
"$here/cluster/node.sh" up
case $? in
  0)
    selection=("--source-file-exclude=*hollow_*")
    # A disk that holds limits, where this machine's kernel has some.
    if LPP_E2E_LIMITS=$("$here/cluster/limits.sh" up); then
      export LPP_E2E_LIMITS LPP_E2E_LIMITS_DISK=$state/limits
      say "limits are tried on $LPP_E2E_LIMITS"
    else
      say "skipped: limits on a real disk, see above; test/quota/run.sh tries them in a kernel of its own"
      left_out+=("*disk that holds limits*")
    fi
    # The image of examples/distroless, which is not built with sanitizers.
    if [ -x "$helper" ]; then
      "$here/cluster/node.sh" image registry.example.com/volume-helper:1 "$helper" || cannot 1
    else
      left_out+=("*distroless*")
    fi
    # The daemon in an image as the Dockerfile makes it, for the pods of agents. A sanitizer may not do
    # all it wants in one.
    if grep -q 'lib[at]san' <<<"$(ldd "$daemon")"; then
      selection[0]+=",*node_agents_*,*node_quota_*"
      left_out+=("*by agents")
    else
      LPP_E2E_IMAGE=registry.example.com/local-path-provisioner:e2e
      LPP_E2E_OTHER_IMAGE=$LPP_E2E_IMAGE-2
      export LPP_E2E_IMAGE LPP_E2E_OTHER_IMAGE
      "$root/scripts/collect-runtime.sh" "$daemon" "$state/rootfs" || cannot 1
      for image in "$LPP_E2E_IMAGE" "$LPP_E2E_OTHER_IMAGE"; do
        "$here/cluster/node.sh" image "$image" "$state/rootfs" || cannot 1
      done
      rm -rf "$state/rootfs"
    fi
    ;;
  3)
    if [ "${CI:-}" = true ]; then
      say "a real node cannot be had here, see above; in CI that is a failure"
      exit 1
    fi
    say "NO REAL NODE here, see above: a hollow kubelet takes its place, and the tests of crashes"
    say "and of a StatefulSet's data are left out"
    selection=("--source-file-exclude=*node_*")
    export LPP_E2E_NODE=hollow-0
    "$hollow" --kubeconfig "$state/admin.kubeconfig" --nodes 1 --delay-ms 100 \
      >"$state/log/hollow-kubelet.log" 2>&1 &
    hollow_pid=$!
    ;;
  *) cannot 1 ;;
esac

if [ ${#left_out[@]} != 0 ]; then
  selection+=("--test-case-exclude=$(IFS=, && echo "${left_out[*]}")")
fi

# Would the API server take the examples and what the chart renders? Asked before anything is there.
dry=0
if [ $# = 0 ]; then
  "${kubectl[@]}" create namespace local-path-storage >/dev/null || exit 1
  KUBECONFIG=$state/admin.kubeconfig LPP_KUBECTL=$state/bin/kubectl \
    "$root/test/chart/dry-run.sh" || dry=1
fi

# The whole manifest must be accepted; the Deployment gives way to the process under test.
"${kubectl[@]}" apply -f "$root/deploy/local-path-storage.yaml" >"$state/log/apply.log" 2>&1 ||
  { cat "$state/log/apply.log" >&2; exit 1; }
"${kubectl[@]}" --namespace local-path-storage scale deployment local-path-provisioner --replicas 0 \
  >/dev/null || exit 1
"$here/cluster/serviceaccount-kubeconfig.sh" local-path-storage \
  local-path-provisioner-service-account "$state/daemon.kubeconfig" || exit 1

# It judges the metrics.
if promtool=$("$root/scripts/promtool.sh" 2>/dev/null); then PATH=$PATH:$(dirname "$promtool"); fi
export LPP_E2E_KUBECONFIG=$state/admin.kubeconfig
export LPP_E2E_DAEMON_KUBECONFIG=$state/daemon.kubeconfig
export LPP_E2E_DAEMON=$daemon
export LPP_E2E_HOLLOW=$hollow
export LPP_E2E_VOLUMES=$state/volumes
export LPP_E2E_LOGS=$state/log
export LPP_E2E_SEPARATE_NAMESPACE=$state/separate-namespace.yaml
"${kubectl[@]}" kustomize "$root/examples/separate-namespace" >"$LPP_E2E_SEPARATE_NAMESPACE" || exit 1

exec 3> >(tee "$state/log/e2e.log")
tee_pid=$!
"$program" --duration=true "${selection[@]}" "$@" >&3 2>&1 3>&- &
test_pid=$!
wait "$test_pid"
result=$?
test_pid=
exec 3>&-
# The totals are in what is still on its way; something that was left behind may keep it open.
for _ in $(seq 100); do
  if ! kill -0 "$tee_pid" 2>/dev/null; then break; fi
  sleep 0.1
done

restored=0
if [ $# = 0 ]; then "$here/restored.sh" || restored=$?; fi
if [ "$restored" = 3 ] && [ "${CI:-}" != true ]; then restored=0; fi

# Whatever the daemon asked for is what the manifest grants. That all of it is needed is for
# integration.rights to say: some of it is asked for only when things go wrong in a certain way.
"$rights" --user system:serviceaccount:local-path-storage:local-path-provisioner-service-account \
  --part "$root/deploy/local-path-storage.yaml" "$root/deploy/capacity/rbac.yaml" \
  "$root/deploy/agents/rbac.yaml" -- "$state/log/audit.log" || result=1

[ "$result" = 0 ] && [ "$dry" = 0 ] && [ "$restored" = 0 ] || result=1
totals "$state/log/e2e.log"
exit "$result"
