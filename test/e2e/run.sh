#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [doctest arguments...]    Run the end-to-end tests on a real control plane.
#
# In two parts beside each other, each with a cluster of its own:
#   node     with a real node: what needs directories, containers, a kubelet (node_*_test.cpp)
#   plane    with a hollow kubelet: the rest (contract_*, either_*, hollow_*)
# Each starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler (cluster/README.md),
# applies deploy/local-path-storage.yaml, and runs the daemon as a process that has a token of the
# manifest's ServiceAccount and nothing more. At the end the audit log tells whether that account asked
# for more than the manifest grants. Then all is taken down; after a failure the logs are kept.
#
# Without arguments the API server is also asked about the examples and the chart
# (../chart/dry-run.sh), a cluster is restored from a backup (restored.sh), and the commands of the docs
# are run (../docs/walk.sh): all of it by the plane's part. With arguments a part that has no such test
# is left out.
#
#   LPP_BUILD_DIR            CMake's build directory (build/dev)
#   LPP_E2E_PART=node|plane  only this part
#   LPP_E2E_EXISTING=1       contract cases only, on the cluster of $KUBECONFIG; nothing is started
#   LPP_E2E_KEEP=1           leave the clusters running
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

files_of() { # PART    as doctest leaves the others out
  case $1 in
    node) echo '--source-file-exclude=*/contract_*,*/either_*,*/hollow_*' ;;
    plane) echo '--source-file-exclude=*/node_*' ;;
  esac
}
count_of() { # DOCTEST'S ARGUMENTS
  "$program" --count "$@" | sed -nE 's/.*current filters: ([0-9]+).*/\1/p'
}

totals() { # LOG TESTS    doctest's line of totals in the form of the other suites
  sed 's/\x1b\[[0-9;]*m//g' "$1" | awk -v tests="$2" '
    /^\[doctest\] test cases:/ { gsub(/[^0-9]+/, " "); passed += $2; failed += $3; seen = 1 }
    END { if (!seen) failed = 1
          skipped = seen ? tests - passed - failed : 0
          printf "e2e: %d passed, %d failed, %d skipped\n", passed, failed, skipped }'
}

for file in "$program" "$daemon" "$hollow" "$rights"; do
  [ -x "$file" ] || { say "$file is missing: build it, or set LPP_BUILD_DIR"; exit 1; }
done

if [ "${LPP_E2E_EXISTING:-}" = 1 ]; then
  export LPP_E2E_KUBECONFIG=${KUBECONFIG:?LPP_E2E_EXISTING needs KUBECONFIG}
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  set -- --source-file="*contract_*" "$@"
  "$program" "$@" 2>&1 | tee "$log"
  result=${PIPESTATUS[0]}
  totals "$log" "$(count_of "$@")"
  exit "$result"
fi

# --- both parts ---
if [ -z "${LPP_E2E_PART:-}" ]; then
  parts=()
  for part in node plane; do
    if [ "$(count_of "$(files_of "$part")" "$@")" != 0 ]; then parts+=("$part"); fi
  done
  if [ ${#parts[@]} = 0 ]; then say "no such test: $*"; exit 1; fi
  if [ ${#parts[@]} = 1 ]; then LPP_E2E_PART=${parts[0]} exec "$0" "$@"; fi

  # Once for both; without them each says what is missing.
  no_install=${LPP_E2E_NO_INSTALL:-}
  if [ "$no_install" != 1 ]; then "$here/cluster/install-deps.sh" || exit $?; fi
  "$here/cluster/binaries.sh" >/dev/null || exit $?
  instance=${LPP_E2E_INSTANCE:-0}
  plane_part() {
    local code=0 walked=0
    LPP_E2E_NO_INSTALL=1 LPP_E2E_PART=plane LPP_E2E_INSTANCE=$(((instance + 20) % 100)) "$0" "$@" || code=$?
    if [ $# = 0 ]; then
      LPP_E2E_NO_INSTALL=$no_install LPP_E2E_INSTANCE=$(((instance + 30) % 100)) \
        "$root/test/docs/walk.sh" || walked=$?
      if [ "$walked" = 3 ] && [ "${CI:-}" != true ]; then walked=0; fi
    fi
    [ "$code" = 0 ] && [ "$walked" = 0 ]
  }
  log=$(mktemp)
  plane_part "$@" >"$log" 2>&1 &
  plane=$!
  LPP_E2E_NO_INSTALL=1 LPP_E2E_PART=node "$0" "$@" &
  node=$! result=0
  trap 'rm -f "$log"' EXIT
  trap 'pkill -TERM -P "$plane"; kill -TERM "$plane" "$node"; wait; exit 130' INT TERM
  wait "$node" || result=$?
  if [ "$result" = 3 ] && [ "${CI:-}" != true ]; then result=0; fi
  wait "$plane" || result=1
  cat "$log"
  exit "$result"
fi

# --- one part ---
if [ -z "$(files_of "$LPP_E2E_PART")" ]; then say "LPP_E2E_PART is neither node nor plane"; exit 2; fi
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

selection=("$(files_of "$LPP_E2E_PART")")
left_out=() # patterns of test cases
a_real_node() {
  "$here/cluster/node.sh" up || {
    local code=$?
    [ "$code" = 3 ] || cannot 1
    say "NO REAL NODE here, see above: the tests that need one are left out"
    if [ "${CI:-}" = true ]; then say "in CI that is a failure"; cannot 1; fi
    cannot 3
  }
  # A disk that holds limits, where this machine's kernel has some.
  local limits=0
  LPP_E2E_LIMITS=$("$here/cluster/limits.sh" up) || limits=$?
  if [ "$limits" = 0 ]; then
    export LPP_E2E_LIMITS LPP_E2E_LIMITS_DISK=$state/limits
    say "limits are tried on $LPP_E2E_LIMITS"
  else
    [ "$limits" = 3 ] || cannot 1
    say "skipped: limits on a real disk, see above; test/quota/run.sh tries them in a kernel of its own"
    left_out+=("*disk that holds limits*")
  fi
  local sanitized=no
  if grep -qa '__[at]san_init' "$daemon"; then sanitized=yes; fi
  # The image of examples/distroless, which is not built with sanitizers.
  if [ $sanitized = yes ]; then
    left_out+=("*distroless*")
  else
    "$here/cluster/node.sh" image registry.example.com/volume-helper:1 "$helper" || cannot 1
  fi
  # The daemon in an image as the Dockerfile makes it, for the pods of agents. A sanitizer may not do
  # all it wants in one.
  if [ $sanitized = yes ]; then
    selection[0]+=",*/node_agents_*,*/node_quota_*"
    left_out+=("*by agents")
  else
    LPP_E2E_IMAGE=registry.example.com/local-path-provisioner:e2e
    LPP_E2E_OTHER_IMAGE=$LPP_E2E_IMAGE-2
    export LPP_E2E_IMAGE LPP_E2E_OTHER_IMAGE
    "$root/scripts/collect-runtime.sh" "$daemon" "$state/rootfs" || cannot 1
    local image
    for image in "$LPP_E2E_IMAGE" "$LPP_E2E_OTHER_IMAGE"; do
      "$here/cluster/node.sh" image "$image" "$state/rootfs" || cannot 1
    done
    rm -rf "$state/rootfs"
  fi
}
a_hollow_node() {
  export LPP_E2E_NODE=hollow-0
  "$hollow" --kubeconfig "$state/admin.kubeconfig" --nodes 1 --delay-ms 100 \
    >"$state/log/hollow-kubelet.log" 2>&1 &
  hollow_pid=$!
}
case $LPP_E2E_PART in
  node) a_real_node ;;
  plane) a_hollow_node ;;
esac

if [ ${#left_out[@]} != 0 ]; then
  selection+=("--test-case-exclude=$(IFS=, && echo "${left_out[*]}")")
fi

# Would the API server take the examples and what the chart renders? Asked before anything is there.
dry=0
whole_plane=no
if [ $# = 0 ] && [ "$LPP_E2E_PART" = plane ]; then whole_plane=yes; fi
if [ $whole_plane = yes ]; then
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
if [ $whole_plane = yes ]; then "$here/restored.sh" || restored=$?; fi
if [ "$restored" = 3 ] && [ "${CI:-}" != true ]; then restored=0; fi

# Whatever the daemon asked for is what the manifest grants. That all of it is needed is for
# integration.rights to say: some of it is asked for only when things go wrong in a certain way.
"$rights" --user system:serviceaccount:local-path-storage:local-path-provisioner-service-account \
  --part "$root/deploy/local-path-storage.yaml" "$root/deploy/capacity/rbac.yaml" \
  "$root/deploy/agents/rbac.yaml" -- "$state/log/audit.log" || result=1

# As scripts/run-tests.sh does.
if [ "${CI:-}" = true ] && grep -aq '^skipped: ' "$state/log/e2e.log"; then result=1; fi
[ "$result" = 0 ] && [ "$dry" = 0 ] && [ "$restored" = 0 ] || result=1
totals "$state/log/e2e.log" "$(count_of "$(files_of "$LPP_E2E_PART")" "$@")"
exit "$result"
