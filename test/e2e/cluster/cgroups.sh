# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The node's own control group, $NODE_CGROUP, in every hierarchy of the machine; sourced after
# env.sh. Everything a pod runs is in it, so that one look finds all of it, whatever else died,
# and another kubelet on the same machine is not disturbed.

CGROUP2=/sys/fs/cgroup # where version 2 is mounted, if it is in charge
ENABLED_CONTROLLERS=/run/lpp-e2e/controllers # by us, at the top of version 2
END_SECONDS=60 # for what ends when it is killed: it needs a processor for that

_cgroup_v2() { [ "$(stat -f -c %T "$CGROUP2")" = cgroup2fs ]; }

# One line for each hierarchy, that of version 2 included.
_cgroup_mounts() { awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts | sort -u; }

_cgroup_dirs() {
  local mount
  for mount in $(_cgroup_mounts); do
    if [ -d "$mount/$NODE_CGROUP" ]; then echo "$mount/$NODE_CGROUP"; fi
  done
}

make_cgroups() { # fails with a sentence on stdout
  local mount file controller enabled
  if _cgroup_v2; then
    mkdir -p "$CGROUP2/$NODE_CGROUP" 2>/dev/null ||
      { echo "$CGROUP2 cannot be written"; return 1; }
    enabled=" $(cat "$CGROUP2/cgroup.subtree_control") "
    for controller in $(<"$CGROUP2/cgroup.controllers"); do
      case $controller in cpuset | cpu | io | memory | hugetlb | pids) ;; *) continue ;; esac
      case $enabled in
        *" $controller "*) ;;
        *)
          (echo "+$controller" >"$CGROUP2/cgroup.subtree_control") 2>/dev/null ||
            { echo "the cgroup controller $controller cannot be enabled at the top"; return 1; }
          echo "$controller" >>"$ENABLED_CONTROLLERS" ;;
      esac
      (echo "+$controller" >"$CGROUP2/$NODE_CGROUP/cgroup.subtree_control") 2>/dev/null ||
        { echo "the cgroup controller $controller cannot be handed to pods"; return 1; }
    done
    return 0
  fi
  for controller in cpu cpuset memory pids; do
    awk -v c="$controller" '$3 == "cgroup" && index("," $4 ",", "," c ",") {found = 1}
      END {exit !found}' /proc/mounts ||
      { echo "no cgroup controller $controller is mounted"; return 1; }
  done
  for mount in $(_cgroup_mounts | grep -vxF "$CGROUP2"); do
    mkdir -p "$mount/$NODE_CGROUP" 2>/dev/null || { echo "$mount cannot be written"; return 1; }
    for file in cpuset.cpus cpuset.mems; do # a new cpuset is empty and takes no process
      [ ! -e "$mount/$file" ] || cat "$mount/$file" >"$mount/$NODE_CGROUP/$file"
    done
  done
}

cgroup_processes() {
  local dir
  for dir in $(_cgroup_dirs); do
    find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null || true
  done | sort -u
}

kill_cgroup() {
  local began=$SECONDS pids
  while pids=$(cgroup_processes) && [ -n "$pids" ]; do
    if [ $((SECONDS - began)) -ge "$END_SECONDS" ]; then
      say "these processes of pods do not end: ${pids//$'\n'/ }"
      return 1
    fi
    # shellcheck disable=SC2086  # a list of numbers
    kill -KILL $pids 2>/dev/null || true
    sleep 0.05
  done
}

remove_cgroups() {
  local began=$SECONDS dir dirs
  while dirs=$(_cgroup_dirs) && [ -n "$dirs" ]; do
    if [ $((SECONDS - began)) -ge "$END_SECONDS" ]; then
      say "these cgroups cannot be removed:" "$dirs"
      return 1
    fi
    for dir in $dirs; do
      find "$dir" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    done
    [ -z "$(_cgroup_dirs)" ] || sleep 0.05
  done
}

restore_controllers() {
  local controller
  [ -s "$ENABLED_CONTROLLERS" ] || return 0
  while read -r controller; do
    (echo "-$controller" >"$CGROUP2/cgroup.subtree_control") 2>/dev/null || true
  done <"$ENABLED_CONTROLLERS"
}

other_nodes() { # does another instance have a node on this host?
  local mount dir
  for mount in $(_cgroup_mounts); do
    for dir in "$mount"/lpp-e2e*; do
      if [ -d "$dir" ] && [ "$dir" != "$mount/$NODE_CGROUP" ]; then return 0; fi
    done
  done
  return 1
}
